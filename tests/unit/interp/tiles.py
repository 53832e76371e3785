"""Building and evaluating single ops on arrays, for tests of the reference rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.eager import EagerBuilder
from tilewright.interp import (
    NUMPY_DTYPES,
    ConcreteValue,
    Machine,
    Memory,
)
from tilewright.ir.types import DType, TileType, all_dtypes, f8e4b15

Array = np.ndarray[Any, np.dtype[Any]]

INTEGERS = [d for d in all_dtypes() if d.is_integer]
FLOATS = [d for d in all_dtypes() if d.is_float and d is not f8e4b15]
"""But f8e4b15, of which NumPy knows nothing."""


def tile(dtype: DType, elements: Any) -> ConcreteValue:
    """Elements (converted by NumPy) as a value of one dimension or more, or a scalar."""
    data = np.asarray(elements).astype(NUMPY_DTYPES[dtype])
    return ConcreteValue(TileType(data.shape, dtype) if data.shape else dtype, data)


def run(op: Any) -> Array:
    """The only result of an op on eager values."""
    value = EagerBuilder(Machine(Memory())).value(op)
    assert isinstance(value, ConcreteValue)
    return value.data


def odd_integers(dtype: DType) -> list[int]:
    """The ends of the range and what is near them and near zero, then random ones."""
    low, high = dtype.min_int, dtype.max_int
    rng = np.random.default_rng(dtype.bits)
    random = [int(x) % (high - low + 1) + low for x in rng.integers(0, 2**62, 12)]
    found = [low, low + 1, low // 2, -3, -2, -1, 0, 1, 2, 3, 7, high // 2, high - 1, high]
    return [x for x in dict.fromkeys([*found, *random]) if low <= x <= high]


def wrapped(value: int, dtype: DType) -> int:
    """An exact integer as an integer type holds it."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.is_signed and value > dtype.max_int else value


def odd_floats(dtype: DType) -> Array:
    """Zeros, denormals, ends of the range, infinities, NaN, then random values of all sizes."""
    numpy = NUMPY_DTYPES[dtype]
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 1 << min(dtype.bits, 62), 200).astype(f"u{dtype.bytes}")
    special = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-7])
    return np.concatenate([special.astype(np.float32).astype(numpy), bits.view(numpy)])


def same(left: Array, right: Array) -> bool:
    """Whether two float arrays are equal, zeros by sign, NaNs as one."""
    x, y = left.astype(np.float64), right.astype(np.float64)
    equal = (x == y) & (np.signbit(x) == np.signbit(y))
    return left.dtype == right.dtype and bool(np.all(equal | (np.isnan(x) & np.isnan(y))))
