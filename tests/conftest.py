"""Set-up of every test: its own disk cache, repeatable properties, skips by need."""

import ctypes
import gc
import importlib.util
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from tests.with_small_caches import SMALL
from tilewright.backends.nvidia.driver import driver_library
from tilewright.runtime.bench import cpu_caches

# the last one tests the others
pytest_plugins = (
    "tests.golden_runner",  # collects tests/golden/**/*.tile, adds --bless
    "tests.tiers",
    "tests.time_limit",
    "tests.required_tools",
    "pytester",
)

# Repeatable: a property that fails in CI fails for everyone. No deadline: machines differ.
hypothesis_settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis_settings.load_profile("repeatable")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection during collection of tests, and freeze the tests afterwards.

    Tests live until the end, so no search for garbage needs to walk them. Full searches are rarer,
    since modules hold more compiled kernels with each test.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(*gc.get_threshold()[:2], 200)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests whose marker names something that this machine lacks."""
    lacking = {"gpu": (_has_gpu, "needs an NVIDIA GPU"), "torch": (_has_torch, "needs torch")}
    for marker, (is_here, reason) in lacking.items():
        needy = [item for item in items if item.get_closest_marker(marker)]
        if marker == "torch":
            _check_that_files_name_torch({item.path for item in needy})
        if needy and not is_here():
            for item in needy:
                item.add_marker(pytest.mark.skip(reason=reason))


def _check_that_files_name_torch(paths: set[Path]) -> None:
    """Check that files with tests marked `torch` name it: `.ci/run` collects no others."""
    silent = [str(path) for path in paths if "torch" not in path.read_text("utf-8").lower()]
    if silent:
        raise pytest.UsageError(f"has tests marked `torch`, and does not name it: {silent}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Compile for the CPU if a test names no target, on machines with a GPU as well.

    Not a fixture, since fixtures of each test are most of pytest's overhead.
    """
    if item.get_closest_marker("gpu") is not None:
        return (yield)
    has_driver, driver_library.has_driver = driver_library.has_driver, lambda: False
    try:
        return (yield)
    finally:
        driver_library.has_driver = has_driver


@pytest.fixture(scope="session", autouse=True)
def _verified_passes() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Verify the invariants of the IR after each pass, in subprocesses as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_VERIFY", "1")
        yield


@pytest.fixture(scope="session", autouse=True)
def _small_caches() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Pretend to have small caches: no test needs exact timings, and flushing large ones takes
    seconds.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_caches, "read_caches", lambda: SMALL)
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:  # pyright: ignore[reportUnusedFunction]
    """Use a disk cache of the run's own; subprocesses inherit it."""
    folder = tmp_path_factory.mktemp("tilewright-cache")
    before = os.environ.get("TILEWRIGHT_CACHE_DIR")
    os.environ["TILEWRIGHT_CACHE_DIR"] = str(folder)
    yield folder
    if before is None:
        del os.environ["TILEWRIGHT_CACHE_DIR"]
    else:
        os.environ["TILEWRIGHT_CACHE_DIR"] = before


def _has_torch() -> bool:
    return importlib.util.find_spec("torch") is not None


def _has_gpu() -> bool:
    """Whether the CUDA driver is installed and sees a device."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 < count.value
