"""Element-wise functions as kernels call them, each with what NumPy makes of it.

`UNARY`, `BINARY` ... map a name to (device function, reference). References take and return arrays
of the element type; floats are computed in float64 (float32 for nothing: rounding a float64 result
to a narrower type once is exact for + - * / and remainders).
"""

# pyright: reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright.language as tl
from tests.kernels.data import is_float
from tilewright import jit

Array = np.ndarray[Any, Any]


@jit
def add(x, y):
    return x + y


@jit
def sub(x, y):
    return x - y


@jit
def mul(x, y):
    return x * y


@jit
def truediv(x, y):
    return x / y


@jit
def floordiv(x, y):
    return x // y


@jit
def mod(x, y):
    return x % y


@jit
def and_(x, y):
    return x & y


@jit
def or_(x, y):
    return x | y


@jit
def xor(x, y):
    return x ^ y


@jit
def lshift(x, y):
    return x << y


@jit
def rshift(x, y):
    return x >> y


@jit
def eq(x, y):
    return x == y


@jit
def ne(x, y):
    return x != y


@jit
def lt(x, y):
    return x < y


@jit
def le(x, y):
    return x <= y


@jit
def gt(x, y):
    return x > y


@jit
def ge(x, y):
    return x >= y


@jit
def minimum(x, y):
    return tl.minimum(x, y)


@jit
def maximum(x, y):
    return tl.maximum(x, y)


@jit
def minimum_nan(x, y):
    return tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)


@jit
def maximum_nan(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@jit
def select(x, y):
    return tl.where(x < y, x, y)


@jit
def neg(x):
    return -x


@jit
def invert(x):
    return ~x


@jit
def absolute(x):
    return tl.abs(x)


@jit
def is_nonzero(x):
    return x != 0


def in_float64(
    function: Callable[..., Array],
) -> Callable[..., Array]:
    """A reference that computes floats in float64 and rounds once."""

    def reference(*args: Array) -> Array:
        with np.errstate(all="ignore"):
            if not is_float(args[0].dtype):
                return function(*args).astype(args[0].dtype)
            return function(*(a.astype(np.float64) for a in args)).astype(args[0].dtype)

    return reference


def _trunc_div(x: Array, y: Array) -> Array:
    """C's quotient: towards zero; zero divides as one."""
    y = np.where(y == 0, y.dtype.type(1), y)
    if x.dtype.kind == "u":
        return x // y
    wide = x.astype(object), y.astype(object)
    quotient = np.abs(wide[0]) // np.abs(wide[1]) * np.sign(wide[0]) * np.sign(wide[1])
    bits = 8 * x.dtype.itemsize
    return ((quotient + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)).astype(x.dtype)


def _trunc_rem(x: Array, y: Array) -> Array:
    if is_float(x.dtype):
        return np.fmod(x, y)
    return x - _trunc_div(x, y) * np.where(y == 0, y.dtype.type(1), y)


BINARY: dict[str, tuple[Any, Callable[[Array, Array], Array]]] = {
    "add": (add, in_float64(np.add)),
    "sub": (sub, in_float64(np.subtract)),
    "mul": (mul, in_float64(np.multiply)),
    "minimum": (minimum, in_float64(np.fmin)),
    "maximum": (maximum, in_float64(np.fmax)),
    "minimum_nan": (minimum_nan, in_float64(np.minimum)),
    "maximum_nan": (maximum_nan, in_float64(np.maximum)),
    "select": (select, lambda x, y: np.where(x < y, x, y)),
}
DIVISION: dict[str, tuple[Any, Callable[[Array, Array], Array]]] = {
    "floordiv": (floordiv, _trunc_div),
    "mod": (mod, _trunc_rem),
}
BITWISE: dict[str, tuple[Any, Callable[[Array, Array], Array]]] = {
    "and": (and_, np.bitwise_and),
    "or": (or_, np.bitwise_or),
    "xor": (xor, np.bitwise_xor),
}
SHIFTS: dict[str, tuple[Any, Callable[[Array, Array], Array]]] = {
    "lshift": (lshift, np.left_shift),
    "rshift": (rshift, np.right_shift),
}
COMPARISONS: dict[str, tuple[Any, Callable[[Array, Array], Array]]] = {
    "eq": (eq, np.equal),
    "ne": (ne, np.not_equal),
    "lt": (lt, np.less),
    "le": (le, np.less_equal),
    "gt": (gt, np.greater),
    "ge": (ge, np.greater_equal),
}
UNARY: dict[str, tuple[Any, Callable[[Array], Array]]] = {
    "neg": (neg, np.negative),
    "abs": (absolute, np.abs),
}
