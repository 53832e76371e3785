"""Launches that are recorded, and replayed as specs."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.kernels.devices import EmulatedNvidia
from tests.kernels.tutorial_matmul import tutorial_matmul
from tests.unit.aot.kernels import scale
from tilewright.aot import read_spec
from tilewright.backends import GPUTarget
from tilewright.support import TilewrightWarning, settings

X = np.ones(64, "f")


def test_a_block_records_each_variant_once(tmp_path: Path) -> None:
    for _ in range(4):  # native dispatch launches the kernel before the block
        scale[(1,)](X, 16, 2.0, BLOCK=32)
    with scale.record(tmp_path / "spec.toml") as recording:
        for n in (16, 32, 1, 5, 16):
            launched = scale[(1,)](X, n, 2.0, BLOCK=32)
    assert [spec.arguments["n"] for spec in recording.specs] == ["i32:16,>=0", "i32=1", "i32:>=0"]
    scale[(1,)](X, 8, 2.0, BLOCK=32)
    assert len(recording.specs) == 3
    specs = read_spec(tmp_path / "spec.toml")
    assert specs == recording.specs
    assert specs[0].compile().hash == launched.hash


def test_the_setting_records_all_kernels(tmp_path: Path) -> None:
    path = tmp_path / "new" / "all.toml"

    @tilewright.jit
    def local(x):
        tl.store(x, 1)

    scale.variant_cache.by_key.clear()
    with settings().cache.scope(record=path):
        for n in (16, 32, 7):
            scale[(1,)](X, n, 2.0, BLOCK=16)
        with pytest.warns(TilewrightWarning, match="not recorded: .*inside a function"):
            local[(1,)](X)
    specs = read_spec(path)
    assert [spec.arguments["n"] for spec in specs] == ["i32:16,>=0", "i32:>=0"]
    assert {spec.constexprs["BLOCK"] for spec in specs} == {16}


def test_a_launch_on_hopper_is_replayed_with_its_code(tmp_path: Path) -> None:
    """The launch runs in the emulator, which is given the LLVM IR of the kernel."""
    device = EmulatedNvidia()
    a, b, c = (device.array(np.ones((128, 128), np.float16)) for _ in range(3))
    blocks = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 8, "EVEN_K": False}
    with tutorial_matmul.record(tmp_path / "spec.toml"):
        sizes = [128, 128, 128, 128, 1, 128, 1, 128, 1]
        launched = device.launch(tutorial_matmul, (4,), a, b, c, *sizes, **blocks)
    assert (c == 128).all()
    (spec,) = read_spec(tmp_path / "spec.toml")
    replayed = spec.compile(GPUTarget("cuda", 90, 32))
    assert replayed.asm["llir"] == launched.asm["llir"]
    assert "cp.async.bulk.tensor" in replayed.asm["ptx"]
    assert "setmaxnreg.dec" in replayed.asm["ptx"]


def test_kernels_in_c_are_not_recorded(tmp_path: Path) -> None:
    source = "__global__ void one(float *x, int n) { *(x + n) = 1; }"
    path, x = tmp_path / "all.toml", np.zeros(64, "f")
    with (
        settings().cache.scope(record=path),
        pytest.warns(TilewrightWarning, match="not recorded: one: a kernel in Triton-C"),
    ):
        tilewright.c.kernel(source, num_warps=4)[1](x, 3)
    assert x[3] == 1
    assert not path.exists()


PROGRAM = """
import numpy as np
from tests.unit.aot.kernels import scale
for n in range(1, 40):
    scale[(1,)](np.ones(64, "f"), n, 2.0, BLOCK=16)
"""


def test_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "all.toml"
    environment = {"TILEWRIGHT_RECORD": str(path), "PYTHONPATH": ":".join(sys.path)}

    def run(_: int) -> int:
        program = [sys.executable, "-c", PROGRAM]
        return subprocess.run(program, env=environment, check=False).returncode

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(run, range(2))) == [0, 0]
    assert path.read_text().count("version") == 1
    assert path.read_text().count("[[kernel]]") == 8
    assert len(read_spec(path)) == 4
