"""`tl.extra.cuda`: clocks, places and orders of NVIDIA's GPUs, and the library under their name.

Where one thread runs a program, on CPUs and in the interpreter, the functions say so.
"""

from __future__ import annotations

from tilewright.language.compile_time import constexpr
from tilewright.language.extra import libdevice
from tilewright.language.stub_dispatch import builtin
from tilewright.language.tensors import tensor


@builtin
def globaltimer() -> tensor:
    """int64: a clock in ns that all programs share; on CPUs in ticks of the time-stamp counter."""
    ...


@builtin
def smid() -> tensor:
    """int32: number of the multiprocessor that runs the program; a CPU counts as one, 0."""
    ...


@builtin
def num_threads() -> constexpr:
    """Threads of a program: 32 for each warp; 1 where one thread runs it."""
    ...


@builtin
def num_warps() -> constexpr:
    """Warps of a program; 1 where one thread runs it."""
    ...


@builtin
def gdc_wait() -> None:
    """Wait until the kernel before has ended, in a launch with `launch_pdl=True`; else nothing."""
    ...


@builtin
def gdc_launch_dependents() -> None:
    """Let the next kernel start, in a launch with `launch_pdl=True`; else nothing."""
    ...


__all__ = [
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "num_threads",
    "num_warps",
    "smid",
]
