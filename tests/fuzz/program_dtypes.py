"""Number types of the language: promotion, literals and conversions, without the compiler's tables.

A literal has the dtype "int", "float" or "bool"; a pointer into the array `a0` has "*a0".
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilewright.support.data_class import dataclass

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "bfloat16", "float32", "float64")
BOOL = "int1"
NUMBERS = INTEGERS + FLOATS
DTYPES = (*NUMBERS, BOOL)
LITERALS = ("bool", "int", "float")

NUMPY: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(name) for name in (*INTEGERS, "float16", "float32", "float64")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    BOOL: np.dtype(bool),
}
SIGNIFICANT_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


@dataclass(frozen=True)
class Type:
    """Of an expression; shape () is a scalar."""

    dtype: str
    shape: Shape = ()


class Undefined(Exception):
    """A program does what the language gives no meaning, or no single one."""


class Stops(Exception):
    """A program that every device must refuse or stop."""


def is_literal(dtype: str) -> bool:
    return dtype in LITERALS


def is_pointer(dtype: str) -> bool:
    return dtype.startswith("*")


def bits(dtype: str) -> int:
    return 1 if dtype == BOOL else 8 * NUMPY[dtype].itemsize


def signed(dtype: str) -> bool:
    """Whether an integer type has a sign; int1 counts as unsigned."""
    return dtype in SIGNED


def limits(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    if dtype == BOOL:
        return 0, 1
    info = np.iinfo(NUMPY[dtype])
    return int(info.min), int(info.max)


def largest_exact(dtype: str) -> int:
    """Integers up to this size are exact in a float type, and so are their sums in any order."""
    return 1 << SIGNIFICANT_BITS[dtype]


# ---- promotion -----------------------------------------------------------------------------------


def _dominant_float(a: str, b: str) -> str | None:
    for dtype in ("float64", "float32", "float16"):
        if dtype in (a, b):
            return dtype
    if "bfloat16" in (a, b):
        return "bfloat16" if a == b else "float32"
    return None


def promote(a: str, b: str) -> str:
    """The dtype of `a + b` for two tensors."""
    found = _dominant_float(a, b)
    if found is not None:
        return found
    if signed(a) == signed(b):
        return a if bits(a) > bits(b) else b
    plus, minus = (b, a) if signed(a) else (a, b)
    return plus if bits(plus) >= bits(minus) else minus


def literal_dtype(value: Any) -> str:
    """The dtype of a literal by itself."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        fitting = ("int32", "uint32", "int64", "uint64")
        return next(d for d in fitting if limits(d)[0] <= value <= limits(d)[1])
    ordinary = value != value or abs(value) in (0.0, float("inf")) or 2.0**-126 <= abs(value)
    return "float32" if ordinary and not 3.4028234664e38 < abs(value) < float("inf") else "float64"


def argument_dtype(value: Any) -> str:
    """The dtype of a Python number that is passed to a kernel."""
    if isinstance(value, int) and not isinstance(value, bool):
        fitting = ("int32", "int64", "uint64")
        return next(d for d in fitting if limits(d)[0] <= value <= limits(d)[1])
    return "float32" if isinstance(value, float) else BOOL


def index_dtype(dtypes: list[str]) -> str:
    """Of the variable of a loop over bounds of these dtypes."""
    found = "int32"
    for dtype in dtypes:
        found = promote(found, dtype)
    return found


_KIND = {"bool": 0, "int": 1, "float": 2}


def dtype_beside(dtype: str, value: Any, other: str) -> str:
    """What an operand counts as next to a tensor of dtype `other`; `value` if it is a literal."""
    if not is_literal(dtype):
        return dtype
    kind = 2 if other in FLOATS else 0 if other == BOOL else 1
    return other if not is_literal(other) and _KIND[dtype] <= kind else literal_dtype(value)


# ---- values --------------------------------------------------------------------------------------


def convert(x: Any, dtype: str) -> Array:
    """Numbers as another type: floats round to nearest even, integers wrap."""
    x = np.asarray(x)
    target = NUMPY[dtype]
    if x.dtype == target:
        return x
    if dtype == BOOL:
        return np.asarray(x != 0)
    if x.dtype.kind in "biu":
        return _from_integer(x, dtype) if dtype in FLOATS else x.astype(target)
    if dtype in FLOATS:
        return _rounded(x, dtype)
    return _saturated(x, dtype)


def _saturated(x: Array, dtype: str) -> Array:
    """Floats as integers: towards zero, and as near as the type allows; NaN as PTX's `cvt` has
    it."""
    low, high = limits(dtype)
    wide = np.trunc(x.astype(np.float64))
    below, above = wide <= float(low), wide >= float(high)
    found = np.where(below | above | np.isnan(wide), 0.0, wide).astype(NUMPY[dtype])
    found = np.where(below, NUMPY[dtype].type(low), found)
    found = np.where(above, NUMPY[dtype].type(high), found)
    lacks = 8 in (x.dtype.itemsize, NUMPY[dtype].itemsize)
    nan = (low or 1 << (bits(dtype) - 1)) if lacks else 0
    return np.where(np.isnan(wide), NUMPY[dtype].type(nan), found)


def _from_integer(x: Array, dtype: str) -> Array:
    if dtype in ("float32", "float64"):
        return x.astype(dtype)
    if x.dtype.itemsize == 8:
        # Merge the bits that float64 cannot hold, so that the second rounding is the only one.
        rest = (x & x.dtype.type(2047)) != 0
        merged = ((x >> x.dtype.type(11)) | rest.astype(x.dtype)).astype(np.float64) * 2048.0
        exact = x.astype(np.float64)
        x = np.where(np.abs(exact) < 2.0**53, exact, merged)
    return _rounded(x.astype(np.float64), dtype)


def _rounded(x: Array, dtype: str) -> Array:
    if dtype != "bfloat16" or x.dtype != np.float64:
        return x.astype(NUMPY[dtype])
    fraction, exponent = np.frexp(x)
    quantum = np.maximum(exponent - 8, -133)  # the last place; of bfloat16's smallest numbers too
    near = np.ldexp(np.rint(np.ldexp(x, -quantum)), quantum)
    found = np.where(np.isfinite(x) & (fraction != 0), near, x)
    with np.errstate(over="ignore"):
        return found.astype(np.float32).astype(NUMPY[dtype])


def literal(value: Any, dtype: str) -> Array:
    """A literal in the dtype that it takes."""
    if dtype in INTEGERS and not limits(dtype)[0] <= value <= limits(dtype)[1]:
        raise Undefined(f"{value} does not fit {dtype}")
    if dtype in FLOATS:
        return _rounded(np.asarray(float(value)), dtype)
    return np.asarray(value).astype(NUMPY[dtype])


def same_bits(found: Array, expected: Array) -> Array:
    """Where two arrays of one dtype hold the same value; any NaN is like any other."""
    if found.dtype.kind in "biu":
        return np.asarray(found == expected)
    unsigned = np.dtype(f"u{found.dtype.itemsize}")
    equal = found.view(unsigned) == np.ascontiguousarray(expected).view(unsigned)
    with np.errstate(invalid="ignore"):  # signalling NaNs of 16 bits
        return np.asarray(equal | (np.isnan(found) & np.isnan(expected)))
