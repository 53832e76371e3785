"""`tl.extra.cuda`: clocks, indices and launch control of NVIDIA GPUs, and `libdevice`.

On CPUs and in the interpreter, where one thread runs a program, the functions return values for
that.
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
    """Wait until the preceding kernel has finished, in a launch with `launch_pdl=True`."""
    ...


@builtin
def gdc_launch_dependents() -> None:
    """Allow the next kernel to start, in a launch with `launch_pdl=True`."""
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
