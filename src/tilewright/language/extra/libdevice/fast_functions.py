"""A GPU's own fp32 instructions; elsewhere they are as accurate as the functions without `fast_`.

docs/libdevice.md states their errors.
"""

from __future__ import annotations

from tilewright import language as tl
from tilewright.language.core import Operand
from tilewright.language.extra.libdevice.fp32_notation import LN_2
from tilewright.language.library_functions import Operands, library_function
from tilewright.language.stub_dispatch import builtin
from tilewright.language.tensors import tensor

LOG10_2, LOG2_10 = 0.3010299956639812, 3.321928094887362


@builtin
def fast_dividef(x: Operand, y: Operand) -> tensor:
    """x / y; on a GPU 0 or NaN for |y| above 2^126 or below 2^-126."""
    ...


@library_function(Operands.FLOATS, op="fast_log2")
def fast_log2f(x: tensor) -> tensor:
    """log2(x); off by up to 2^-22 for x near 1."""
    ...


@library_function(Operands.FLOATS, op="fast_sin")
def fast_sinf(x: tensor) -> tensor:
    """sin(x), off by up to 2^-20 within [-pi, pi]."""
    ...


@library_function(Operands.FLOATS, op="fast_cos")
def fast_cosf(x: tensor) -> tensor:
    """cos(x), off by up to 2^-20 within [-pi, pi]."""
    ...


@library_function(Operands.FLOATS, op="fast_tanh")
def fast_tanhf(x: tensor) -> tensor:
    """tanh(x), off by up to 2^-10."""
    ...


@library_function(Operands.FLOATS)
def fast_logf(x: tensor) -> tensor:
    """log(x); off by up to 2^-22 for x near 1."""
    return fast_log2f(x) * LN_2


@library_function(Operands.FLOATS)
def fast_log10f(x: tensor) -> tensor:
    """log10(x); off by up to 2^-23 for x near 1."""
    return fast_log2f(x) * LOG10_2


@library_function(Operands.FLOATS)
def fast_exp10f(x: tensor) -> tensor:
    """10 to the power of x, off by up to 3 |x| ulp."""
    return tl.exp2(x * LOG2_10)


@library_function(Operands.FLOATS)
def fast_tanf(x: tensor) -> tensor:
    """fast_sinf(x) / fast_cosf(x)."""
    return fast_dividef(fast_sinf(x), fast_cosf(x))


@library_function(Operands.FLOATS)
def fast_powf(x: tensor, y: tensor) -> tensor:
    """2 to the power of y log2(x), for x >= 0, by the fast functions."""
    return tl.exp2(y * fast_log2f(x))


fast_expf = tl.exp
