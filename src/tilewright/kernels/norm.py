"""Layer normalization of rows."""

from __future__ import annotations

import tilewright.language as tl
from tilewright.kernels.arrays import Array, empty, strides
from tilewright.kernels.softmax import row_options
from tilewright.runtime import jit, next_power_of_2


@jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, out_stride, columns, eps, BLOCK: tl.constexpr
):  # fmt: skip
    """One row: (x - mean) / sqrt(variance + eps) * weight + bias; BLOCK >= columns."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * x_stride + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centered = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centered * centered, axis=0) / columns
    normal = centered * tl.rsqrt(variance + eps)
    weight = tl.load(weight_ptr + offsets, mask=mask)
    bias = tl.load(bias_ptr + offsets, mask=mask)
    tl.store(out_ptr + row * out_stride + offsets, normal * weight + bias, mask=mask)


def layer_norm(
    x: Array, weight: Array, bias: Array, eps: float = 1e-5, out: Array | None = None
) -> Array:
    """Layer norm along the last dimension of a matrix with contiguous rows; into `out` if given."""
    rows, columns = (int(n) for n in x.shape)
    result = empty(x, (rows, columns)) if out is None else out
    layer_norm_kernel[(rows,)](
        x, weight, bias, result, strides(x)[0], strides(result)[0], columns, eps,
        BLOCK=next_power_of_2(max(columns, 1)), **row_options(columns, int(x.itemsize)),
    )  # fmt: skip
    return result
