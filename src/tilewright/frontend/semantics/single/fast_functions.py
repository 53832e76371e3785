"""The fast functions of libdevice, from a GPU's own of fp32; elsewhere they are accurate ones."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.frontend.semantics.single.single_notation import LN_2
from tilewright.language import tensor

# Formulas name functions as a kernel would, so that nested ones dispatch to the semantics.
lib = tl.extra.libdevice

LOG10_2, LOG2_10 = 0.3010299956639812, 3.321928094887362


def fast_logf(x: tensor) -> tensor:
    return lib.fast_log2f(x) * LN_2


def fast_log10f(x: tensor) -> tensor:
    return lib.fast_log2f(x) * LOG10_2


def fast_exp10f(x: tensor) -> tensor:
    return tl.exp2(x * LOG2_10)


def fast_tanf(x: tensor) -> tensor:
    return lib.fast_dividef(lib.fast_sinf(x), lib.fast_cosf(x))


def fast_powf(x: tensor, y: tensor) -> tensor:
    return tl.exp2(y * lib.fast_log2f(x))
