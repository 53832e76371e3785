"""softmax, as the composition of reductions and exp."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.frontend.dtype_promotion import accumulator_dtype
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.broadcasting import broadcast_value
from tilewright.frontend.semantics.dtype_casts import cast_value
from tilewright.frontend.semantics.math_functions import float_argument
from tilewright.frontend.semantics.numeric_operators import quotient_rounding
from tilewright.frontend.semantics.reductions import extremum_along, sum
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir.types import dtype_of, shape_of
from tilewright.language import tensor


@implements(tl.softmax)
def softmax(
    ctx: Context,
    x: object,
    dim: object = None,
    keep_dims: object = False,
    ieee_rounding: object = False,
) -> tensor:
    value = float_argument(ctx, "softmax", constant_arguments.tile(ctx, "softmax", "x", x))
    value = cast_value(ctx, value, accumulator_dtype(dtype_of(value.type)))
    shape = shape_of(value.type)
    # Triton's default is dimension 0, unlike that of most array libraries.
    axis = constant_arguments.axis(ctx, "softmax", 0 if dim is None else dim, len(shape), "dim")
    is_precise = constant_arguments.flag(ctx, "softmax", "ieee_rounding", ieee_rounding)
    rounding = "nearest" if is_precise else quotient_rounding(ctx)
    # Minus the maximum, exp cannot overflow and the largest weight is 1.
    peak = extremum_along(ctx, "maximum", tensor(value), axis, True).handle
    shifted = ctx.sub(value, broadcast_value(ctx, peak, shape))
    weights = ctx.math("exp", shifted)
    total = sum(ctx, tensor(weights), axis, True).handle
    return tensor(ctx.div(weights, broadcast_value(ctx, total, shape), rounding))
