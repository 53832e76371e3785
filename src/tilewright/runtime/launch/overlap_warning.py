"""Launches whose arrays overlap: an in-order kernel for them, and one warning per kernel.

The compiled kernel lists which arguments must not overlap (`analysis.argument_pairs`). Kernels
without such arguments pay nothing. For the others every launch compares addresses: machine code
(`dispatch_overlap.h`) passes launches with arguments that may overlap to Python, which decides
exactly.

Within one program, accesses through arguments that overlap are in order on backends that compile a
kernel for them (`CommonOptions.may_overlap`), as those of this package do. Between programs there
is no order: the launch warns.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

from tilewright.analysis import ArgumentPair
from tilewright.compiler import CompiledKernel
from tilewright.runtime.arguments.memory_spans import Span, StridedMemory, memory_of
from tilewright.support import Grid, OverlapWarning, caller_outside, import_late

_WORK = 1_000_000
"""Limit of steps to find a common element of two strided arrays; beyond it, they overlap only if
they start at one address."""


class OverlapWatch:
    """The check of one kernel's launches for arrays that overlap; it warns once."""

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._state = ctypes.c_uint64(1)
        self._warned = False
        self._orders = False

    @property
    def watching(self) -> int:
        """Address of a 64-bit word for machine code: 0 if nothing depends on overlaps any more;
        otherwise it changes with each launch whose arrays overlap."""
        return ctypes.addressof(self._state)

    def kernel_for(
        self, kernel: CompiledKernel, grid: Grid, arrays: Sequence[Any], values: Sequence[Any]
    ) -> CompiledKernel:
        """The kernel for these arguments: the in-order one if they overlap and there is one,
        otherwise the given one. Warns if the result depends on the order of accesses.

        arrays, values: the run-time arguments in order, as given and as passed
        """
        if kernel.in_order is not None:
            self._orders, self._state.value = True, self._state.value or 1
        if self._warned and not self._orders:
            return kernel
        overlapping = [pair for pair in kernel.pairs if _is_wrong(pair, arrays, values, grid)]
        if not overlapping:
            return kernel
        # before the warning, which a filter may turn into an exception
        self._state.value += 1
        depends = prod(grid) > 1 or kernel.in_order is None
        self._warn(kernel, [pair for pair in overlapping if depends or not pair.is_element_wise])
        return kernel if kernel.in_order is None else kernel.in_order()

    def _warn(self, kernel: CompiledKernel, pairs: Sequence[ArgumentPair]) -> None:
        """Warn once of arguments that overlap."""
        if self._warned or not pairs:
            return
        self._warned = True
        if not self._orders:
            self._state.value = 0
        names = kernel.metadata.names
        listed = ", ".join(f"'{names[p.first]}' and '{names[p.second]}'" for p in pairs)
        shifted = all(pair.is_element_wise for pair in pairs)
        reason = (
            "Their equal elements are at different addresses"
            if shifted
            else ("It does not use them element by element")
        )
        file, line = caller_outside()
        warnings.warn_explicit(
            f"arguments of '{self._kernel}' overlap in memory: {listed}. {reason}, so an element "
            "may be stored before another program, or another thread, loads it\n"
            "  hint: pass a copy of one of them",
            OverlapWarning,
            file,
            line,
        )


def _is_wrong(pair: ArgumentPair, arrays: Sequence[Any], values: Sequence[Any], grid: Grid) -> bool:
    same = values[pair.first] == values[pair.second]
    if same and pair.may_be_one(values):
        return False
    # Arrays that are used element by element may overlap where no program accesses both.
    if 0 not in grid and not pair.may_meet(values, grid):
        return False
    return overlap(arrays[pair.first], arrays[pair.second], same)


def overlap(first: Any, second: Any, same: bool = False) -> bool:
    """Whether two arrays share an element; same: whether they start at one address, which decides
    if an array does not report its extent."""
    one, other = memory_of(first), memory_of(second)
    if one is None or other is None:
        return same
    # the usual case, decided without importing NumPy
    if not _spans_meet(one.span, other.span):
        return False
    numpy = import_late("numpy")
    try:
        return bool(
            numpy.shares_memory(*(numpy.asarray(_Described(m)) for m in (one, other)), _WORK)
        )
    except numpy.exceptions.TooHardError:
        return same


class _Described:
    """Memory as an array of NumPy, which solves for a common address and reads nothing."""

    def __init__(self, memory: StridedMemory) -> None:
        self.__array_interface__ = {
            "version": 3, "data": (memory.address, True), "shape": memory.shape,
            "strides": memory.strides, "typestr": f"|V{memory.size}",
        }  # fmt: skip


def _spans_meet(one: Span, other: Span) -> bool:
    return one[0] < sum(other) and other[0] < sum(one)
