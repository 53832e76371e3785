"""Kernels that memory bounds, as users write them, for `cpu/cases.py`."""

# ruff: noqa: D103 -- each is what its name says

import tilewright.language as tl
from tilewright import jit


@jit
def scale_kernel(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)


@jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=at < n)


@jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, stride, columns, eps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < columns
    row = tl.program_id(0) * stride
    x = tl.load(x_ptr + row + at, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    weight = tl.load(weight_ptr + at, mask=mask)
    tl.store(out_ptr + row + at, (x * scale * weight).to(out_ptr.dtype.element_ty), mask=mask)


@jit
def row_sum_kernel(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * stride + at, mask=at < columns, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0).to(out_ptr.dtype.element_ty))


@jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, stride, half, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < half
    row = tl.program_id(0) * stride
    angle = tl.program_id(0) * half + at
    cos, sin = tl.load(cos_ptr + angle, mask=mask), tl.load(sin_ptr + angle, mask=mask)
    x = tl.load(x_ptr + row + at, mask=mask)
    y = tl.load(x_ptr + row + half + at, mask=mask)
    tl.store(out_ptr + row + at, x * cos - y * sin, mask=mask)
    tl.store(out_ptr + row + half + at, y * cos + x * sin, mask=mask)


@jit
def math_kernel(x_ptr, y_ptr, out_ptr, n, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    if FUNCTION == "exp":
        y = tl.exp(x)
    elif FUNCTION == "log":
        y = tl.log(x)
    elif FUNCTION == "sin":
        y = tl.sin(x)
    elif FUNCTION == "erf":
        y = tl.erf(x)
    elif FUNCTION == "rsqrt":
        y = tl.rsqrt(x)
    elif FUNCTION == "tanh":
        y = tl.extra.libdevice.tanh(x)
    elif FUNCTION == "div":
        y = x / tl.load(y_ptr + at, mask=at < n, other=1.0)
    else:
        y = tl.extra.libdevice.pow(x, tl.load(y_ptr + at, mask=at < n))
    tl.store(out_ptr + at, y, mask=at < n)


@jit
def triangle_kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    """Program i sums i + 1 rows: the last one works 512 times as long as the first of 512."""
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0) + 1):
        total += tl.load(x_ptr + row * stride + at)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + at, total)
