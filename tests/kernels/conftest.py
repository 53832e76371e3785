"""The devices that every kernel test runs on, repeatable random numbers, and programs of torch."""

import fcntl
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kernels.devices import DEVICES, Device
from tests.qemu import MACHINES, ForeignCpu
from tests.time_limit import unlimited
from tilewright.triton_alias import install

Outcomes = dict[str, dict[str, Any]]
"""What a program of torch says of each case."""

_USUAL = ["interpreter", "cpu", "emulated", pytest.param("nvidia", marks=pytest.mark.gpu)]
_CHOSEN = os.environ.get("KERNEL_TEST_DEVICES", "").split()
"""Devices to test instead of the usual ones, such as `aarch64`: see `tests/qemu`."""


@pytest.fixture(params=_CHOSEN or _USUAL)
def device(request: pytest.FixtureRequest) -> Device:
    """One of the devices; see `tests/kernels/devices.py`."""
    name: str = request.param
    return ForeignCpu(name) if name in MACHINES else DEVICES[name]()


@pytest.fixture(autouse=True)
def _quiet_references() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """References are computed for infinities and NaNs too."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers of the test's own: other tests get others, another run gets the same."""
    case: Any = request.node
    return np.random.default_rng(zlib.crc32(case.nodeid.encode()))


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Outcomes]:
    """Runs cases where `import triton` is the installed package; caches: of Inductor and ours."""
    packages = tmp_path_factory.mktemp("packages")
    install(packages)

    def run(caches: Path, *arguments: str, script: str = "torch_compile_cases.py") -> Outcomes:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(packages), *sys.path]),
            "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
            "TILEWRIGHT_CACHE_DIR": str(caches / "tilewright"),
        }
        path = Path(__file__).with_name(script)
        command = [sys.executable, "-W", "ignore", str(path), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        lines = map(json.loads, done.stdout.splitlines())
        return {line["name"]: line for line in lines}

    return run


@pytest.fixture(scope="session")
def once(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Callable[[Path], Any]], Any]:
    """Computes something that JSON can hold once for all processes that run the tests; the function
    gets a folder for it. Where it fails, it does for each test that asks."""

    def ask(name: str, compute: Callable[[Path], Any]) -> Any:
        parent = tmp_path_factory.getbasetemp()
        if "PYTEST_XDIST_WORKER" in os.environ:
            parent = parent.parent  # which all workers have
        folder, known = parent / name, parent / name / "outcomes.json"
        folder.mkdir(exist_ok=True)
        with (folder / "lock").open("w") as lock:
            with unlimited():  # another process may compute it
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not known.exists():
                found = compute(folder)
                known.write_text(json.dumps(found))
        return json.loads(known.read_text())

    return ask
