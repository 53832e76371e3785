"""Element-wise mathematics; `tl.math`. Most names are in `tl` too.

Functions of floats take fp64, fp32, fp16, bf16 and fp8. The 16- and 8-bit types are computed in
fp32 and rounded back (Triton refuses them). Integer tensors are an error, InvalidOperation;
literals become fp32.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.language.compile_time import constexpr
from tilewright.language.core import Operand
from tilewright.language.stub_dispatch import builtin
from tilewright.language.tensors import member, tensor


class PropagateNan(Enum):
    """Treatment of NaN in `maximum` ...: NONE returns the other operand, ALL the NaN."""

    NONE = 0
    ALL = 0xFFFF


@member
@builtin
def exp(x: Operand) -> tensor:
    """e to the power of x. On a GPU fp32 is off by up to 1.25 ulp for each unit of x, as exp2 of a
    rounded product; `libdevice.exp` is not."""
    ...


@member
@builtin
def exp2(x: Operand) -> tensor:
    """2 to the power of x."""
    ...


@member
@builtin
def log(x: Operand) -> tensor:
    """Natural logarithm."""
    ...


@member
@builtin
def log2(x: Operand) -> tensor:
    """Logarithm to base 2."""
    ...


@member
@builtin
def sin(x: Operand) -> tensor:
    """Sine of x radians."""
    ...


@member
@builtin
def cos(x: Operand) -> tensor:
    """Cosine of x radians."""
    ...


@builtin
def tanh(x: Operand) -> tensor:
    """Hyperbolic tangent."""
    ...


@member
@builtin
def erf(x: Operand) -> tensor:
    """Error function."""
    ...


@member
@builtin
def sqrt(x: Operand) -> tensor:
    """Square root, at most 1 ulp off."""
    ...


@member
@builtin
def sqrt_rn(x: Operand) -> tensor:
    """Square root, correctly rounded."""
    ...


@member
@builtin
def rsqrt(x: Operand) -> tensor:
    """1 / sqrt(x)."""
    ...


@member
@builtin
def floor(x: Operand) -> tensor:
    """Largest integer not above x."""
    ...


@member
@builtin
def ceil(x: Operand) -> tensor:
    """Smallest integer not below x."""
    ...


@member
@builtin
def abs(x: Operand) -> tensor:
    """|x| of any number type; the most negative integer stays."""
    ...


@member
@builtin
def sigmoid(x: Operand) -> tensor:
    """1 / (1 + exp(-x))."""
    ...


@builtin
def fma(x: Operand, y: Operand, z: Operand) -> tensor:
    """x * y + z, of floats, rounded once. Operands broadcast and promote."""
    ...


@builtin
def fdiv(
    x: Operand,
    y: Operand,
    ieee_rounding: bool | constexpr = False,
    approx: bool | constexpr = False,
) -> tensor:
    """x / y of floats; 16-bit operands give fp32. ieee_rounding: rounded correctly.

    approx: on a GPU, fp32 quotients are 0 or NaN for |y| above 2^126 or below 2^-126. Errors:
    InvalidOperation for integers.
    """
    ...


@builtin
def div_rn(x: Operand, y: Operand) -> tensor:
    """x / y of floats, correctly rounded; 16-bit operands give fp32."""
    ...


@builtin
def umulhi(x: Operand, y: Operand) -> tensor:
    """High half of the product of two 32- or 64-bit integers, whose bits count as unsigned ones
    whatever their types: umulhi(-1, 2) is 1. The result has their common type.

    Errors: InvalidOperation for narrower integers, DTypeMismatch for floats.
    """
    ...


@builtin
def maximum(
    x: Operand, y: Operand, propagate_nan: PropagateNan | constexpr = PropagateNan.NONE
) -> Any:
    """The larger of x and y; operands broadcast and promote, literals are weak."""
    ...


@builtin
def minimum(
    x: Operand, y: Operand, propagate_nan: PropagateNan | constexpr = PropagateNan.NONE
) -> Any:
    """The smaller of x and y; operands broadcast and promote, literals are weak."""
    ...


@builtin
def clamp(
    x: Operand,
    min: Operand,
    max: Operand,
    propagate_nan: PropagateNan | constexpr = PropagateNan.NONE,
) -> tensor:
    """x limited to [min, max]; undefined where min > max. With NONE a NaN in x gives `min`."""
    ...


@builtin
def add(x: Operand, y: Operand, sanitize_overflow: bool | constexpr = True) -> Any:
    """x + y. sanitize_overflow=False: not checked for overflow in debug mode."""
    ...


@builtin
def sub(x: Operand, y: Operand, sanitize_overflow: bool | constexpr = True) -> Any:
    """x - y. sanitize_overflow=False: not checked for overflow in debug mode."""
    ...


@builtin
def mul(x: Operand, y: Operand, sanitize_overflow: bool | constexpr = True) -> Any:
    """x * y. sanitize_overflow=False: not checked for overflow in debug mode."""
    ...


@member
@builtin
def logical_and(x: Operand, y: Operand) -> tensor:
    """int1: both sides are not zero. Both are evaluated."""
    ...


@member
@builtin
def logical_or(x: Operand, y: Operand) -> tensor:
    """int1: one side is not zero. Both are evaluated."""
    ...
