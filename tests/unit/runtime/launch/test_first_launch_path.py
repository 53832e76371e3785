"""The path of a first launch: five files lead to the compiler, and to the driver of the device."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.runtime import JITFunction, jit

PACKAGE = Path(tilewright.__file__).parent
PATH = [
    "runtime/jit.py",
    "runtime/launch/bound_call.py",
    "runtime/launch/variant_cache.py",
    "runtime/arguments/key_rules.py",
    "compiler/compiled_kernel.py",
]
"""The files to read, in the order in which a first launch reaches them."""
DESTINATIONS = {
    ("runtime/launch/bound_call.py", "bind"): "arguments -> parameters",
    ("runtime/arguments/key_rules.py", "_constant"): "argument -> key",
    ("runtime/arguments/key_rules.py", "key_and_value"): "argument -> key",
    ("compiler/compile.py", "compile_source"): "compiler",
    ("backends/cpu/backend.py", "_load"): "driver loads the kernel",
    ("backends/cpu/driver/cpu_launcher.py", "launch"): "driver runs the grid",
}
"""(file, function) -> what a first launch calls it for."""


def new_double() -> JITFunction:
    @jit
    def double(x, n, BLOCK: tl.constexpr = 8):  # pyright: ignore[reportArgumentType]
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i, i < n) * 2, i < n)

    return double


def new_increment() -> JITFunction:
    @jit
    def increment(x, n, BLOCK: tl.constexpr = 8):  # pyright: ignore[reportArgumentType]
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i, i < n) + 1, i < n)

    return increment


def file_of(frame: FrameType) -> str:
    """The file of the package that holds a function; "" for those elsewhere and in `support`."""
    path = Path(frame.f_code.co_filename)
    is_part = path.is_relative_to(PACKAGE) and not path.is_relative_to(PACKAGE / "support")
    return path.relative_to(PACKAGE).as_posix() if is_part else ""


def callers_of(frame: FrameType) -> list[str]:
    """The files of the package whose functions are active below, the outermost first."""
    callers: list[str] = []
    while frame.f_back is not None:
        frame = frame.f_back
        callers.append(file_of(frame))
    return [file for file in reversed(callers) if file]


def paths_of(launch: Callable[[], object]) -> dict[str, list[str]]:
    """The files that are active when a launch calls each destination, the outermost first; with
    those of destinations that are in `runtime`."""
    paths: dict[str, list[str]] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = file_of(frame) if event == "call" else ""
        aim = DESTINATIONS.get((file, frame.f_code.co_name))
        if aim is not None:
            own = [file] if file.startswith("runtime") else []
            paths.setdefault(aim, []).extend(callers_of(frame) + own)

    sys.setprofile(note)
    try:
        launch()
    finally:
        sys.setprofile(None)
    return paths


@pytest.mark.parametrize("is_cached", [False, True], ids=["compiled", "from the disk cache"])
def test_a_first_launch_is_followed_in_five_files(is_cached: bool) -> None:
    new_increment()[(1,)](np.ones(8, "f"), 8)  # the CPU's backend is loaded
    if is_cached:
        new_double()[(1,)](np.ones(8, "f"), 8)
    kernel, x = new_double(), np.ones(8, "f")
    paths = paths_of(lambda: kernel[(1,)](x, 8))
    assert list(paths) == list(dict.fromkeys(DESTINATIONS.values()))
    files = dict.fromkeys(file for path in paths.values() for file in path)
    assert list(files) == PATH
    assert (x == 2).all()


def test_the_fourth_launch_enters_one_python_function() -> None:
    kernel, x = new_double(), np.ones(8, "f")
    for _ in range(3):
        kernel[(1,)](x, 8)
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        kernel[(1,)](x, 8)
    finally:
        sys.setprofile(None)
    assert entered == ["__getitem__"]
    assert (x == 16).all()
