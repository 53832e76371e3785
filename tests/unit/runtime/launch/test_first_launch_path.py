"""The first launch goes straight down: each file on its way is entered once."""

import sys
from types import FrameType
from typing import Any

import numpy as np

import tilewright.language as tl
from tilewright.runtime import JITFunction, jit

WALK = (
    "runtime/jit.py",
    "launch/launch_function.py",
    "launch/bound_call.py",
    "launch/variant_cache.py",
    "compiler/compile.py",
    "launch/variant.py",
    "driver/cpu_launcher.py",
)
STEPS = {"launch/bound_call.py": "bind", "driver/cpu_launcher.py": "launch"}
"""What counts of a file, if not all: no reading of fields that are computed when first read, and
not that the driver loads the new variant's code."""


def new_double() -> JITFunction:
    @jit
    def double(x, n, BLOCK: tl.constexpr = 8):  # pyright: ignore[reportArgumentType]
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i, i < n) * 2, i < n)

    return double


def file_of(frame: FrameType | None) -> str | None:
    name = frame.f_code.co_filename if frame is not None else ""
    return next((file for file in WALK if name.endswith(file)), None)


def files_entered(kernel: JITFunction, x: np.ndarray) -> list[str]:
    """Files of WALK in the order in which a launch calls functions in them, repeats dropped."""
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        file, function = file_of(frame), frame.f_code.co_name
        if event != "call" or file is None or file == file_of(frame.f_back):
            return
        if STEPS.get(file, function) == function and entered[-1:] != [file]:
            entered.append(file)

    sys.setprofile(note)
    try:
        kernel[(1,)](x, 8)
    finally:
        sys.setprofile(None)
    return entered


def test_the_first_launch_enters_each_file_once() -> None:
    kernel, x = new_double(), np.ones(8, "f")
    new_double()[(1,)](x, 8)  # the CPU's backend is loaded
    _ = kernel.launch_function  # it is made when first needed
    assert files_entered(kernel, x) == list(WALK)
    assert (x == 4).all()


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
