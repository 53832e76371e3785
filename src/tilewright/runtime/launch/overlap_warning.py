"""Warns, once for a kernel, of arrays that overlap though it does not use them element by element.

Which arguments those are is known of the compiled kernel (`analysis.argument_pairs`). Kernels that
have none pay nothing. Of the others every launch compares addresses: machine code does it
(`native_dispatch_overlap.ll`), and passes on to Python what may overlap; here it is found out
exactly.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence
from typing import Any

from tilewright.analysis import ArgumentPair
from tilewright.runtime.arguments.memory_spans import Span, StridedMemory, memory_of
from tilewright.support import OverlapWarning, caller_outside, import_late

_WORK = 1_000_000
"""Steps that finding a common element of two strided arrays may take; beyond that they
overlap only if they begin at one address."""


class OverlapWatch:
    """The check of one kernel's launches for arrays that overlap; it warns once."""

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._flag = ctypes.c_uint64(1)

    @property
    def watching(self) -> int:
        """Address of a 64-bit flag, for machine code: 0 once the warning was given, else 1."""
        return ctypes.addressof(self._flag)

    def check(
        self,
        pairs: Sequence[ArgumentPair],
        names: Sequence[str],
        arrays: Sequence[Any],
        values: Sequence[Any],
    ) -> None:
        """Warn if arguments overlap. All by the position of the run-time argument: pairs; names;
        arrays and numbers as given; addresses and numbers as passed."""
        if not self._flag.value:
            return
        overlapping = [pair for pair in pairs if _is_wrong(pair, arrays, values)]
        if overlapping:
            # before the warning, which a filter may turn into an exception
            self._flag.value = 0
            listed = ", ".join(f"'{names[p.first]}' and '{names[p.second]}'" for p in overlapping)
            file, line = caller_outside()
            warnings.warn_explicit(
                f"arguments of '{self._kernel}' overlap in memory: {listed}. It does not use them "
                "element by element, so an element may be stored before another program, or "
                "another thread, loads it\n  hint: pass a copy of one of them",
                OverlapWarning,
                file,
                line,
            )


def _is_wrong(pair: ArgumentPair, arrays: Sequence[Any], values: Sequence[Any]) -> bool:
    same = values[pair.first] == values[pair.second]
    if same and pair.may_be_one(values):
        return False
    return overlap(arrays[pair.first], arrays[pair.second], same)


def overlap(first: Any, second: Any, same: bool = False) -> bool:
    """Whether two arrays share an element; same: whether they begin at one address, which decides
    where an array does not tell its extent."""
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
    """Memory as NumPy sees an array in it: it solves for a common address and reads nothing."""

    def __init__(self, memory: StridedMemory) -> None:
        self.__array_interface__ = {
            "version": 3, "data": (memory.address, True), "shape": memory.shape,
            "strides": memory.strides, "typestr": f"|V{memory.size}",
        }  # fmt: skip


def _spans_meet(one: Span, other: Span) -> bool:
    return one[0] < sum(other) and other[0] < sum(one)
