"""Warns, once for a kernel, of arrays that overlap though it does not use them element by element.

Which arguments those are is known of the compiled kernel (`analysis.argument_pairs`). Kernels that
have none pay nothing. Of the others every launch compares addresses: machine code does it
(`native_dispatch_overlap.ll`), and passes on to Python what may overlap; here it is found out
exactly.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, cast

from tilewright.analysis import ArgumentPair
from tilewright.runtime.arguments.mock_tensor import TensorWrapper
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
    # zero-copy descriptions: NumPy only solves for a common address and never reads the memory
    described = [_described(array) for array in (first, second)]
    if None in described:
        return same
    one, other = (cast("dict[str, Any]", d) for d in described)
    # the usual case, decided without importing NumPy
    if not _bounds_meet(one, other):
        return False
    numpy = import_late("numpy")
    try:
        return bool(
            numpy.shares_memory(*(numpy.asarray(_Described(d)) for d in (one, other)), _WORK)
        )
    except numpy.exceptions.TooHardError:
        return same


class _Described:
    """Memory as NumPy sees an array in it, without touching it."""

    def __init__(self, interface: Mapping[str, Any]) -> None:
        self.__array_interface__ = interface


def _described(array: Any) -> dict[str, Any] | None:
    """Address, shape and strides in bytes, as in `__array_interface__`."""
    array = array.base if isinstance(array, TensorWrapper) else array
    if hasattr(array, "data_ptr") and hasattr(array, "element_size"):
        return _of_tensor(array)
    interface = getattr(array, "__array_interface__", None)
    interface = interface or getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        return None
    size = int(str(interface["typestr"])[2:])
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    return _memory(interface["data"][0], shape, strides or _contiguous(shape, size), size)


def _of_tensor(tensor: Any) -> dict[str, Any]:
    size = tensor.element_size()
    strides = tuple(step * size for step in tensor.stride())
    return _memory(tensor.data_ptr(), tuple(tensor.shape), strides, size)


def _memory(address: Any, shape: Any, strides: Any, size: int) -> dict[str, Any]:
    return {
        "version": 3, "data": (int(address or 0), True), "shape": shape, "strides": strides,
        "typestr": f"|V{size}",
    }  # fmt: skip


def _contiguous(shape: Sequence[int], size: int) -> tuple[int, ...]:
    strides: list[int] = []
    for extent in reversed(shape):
        strides.insert(0, size)
        size *= extent
    return tuple(strides)


def _bounds_meet(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether there is memory between the first and the last byte of both."""
    (a, b), (c, d) = _bounds(one), _bounds(other)
    return a < d and c < b


def _bounds(interface: Mapping[str, Any]) -> tuple[int, int]:
    start: int = interface["data"][0]
    if 0 in interface["shape"]:
        return start, start
    reach = [(n - 1) * s for n, s in zip(interface["shape"], interface["strides"], strict=True)]
    size = int(interface["typestr"][2:])
    return start + sum(r for r in reach if r < 0), start + sum(r for r in reach if r > 0) + size
