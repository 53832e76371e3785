"""Convolution in two dimensions as a product with windows, in groups, with strides and padding.

After BobMcDear/attorch, `attorch/conv_kernels.py`: tuned configurations by a helper, a key of
fifteen arguments, loops over constexpr extents, pointers that become tiles by `+=`, quotients and
remainders of tile indices, masks of six conditions without `other`.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.triton_alias.alias_fixture import triton_alias

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

with triton_alias():
    import triton
    import triton.language as tl


def config(pixels: int, inputs: int, outputs: int, warps: int, stages: int) -> Any:
    blocks = {"PIXELS": pixels, "IN_FEATURES": inputs, "OUT_FEATURES": outputs}
    return triton.Config(blocks, num_warps=warps, num_stages=stages)


@triton.autotune(
    configs=[config(64, 16, 16, 4, 2), config(32, 16, 32, 2, 3)],
    key=[
        "batch", "features", "height", "width", "out_features", "out_height", "out_width",
        "kernel_height", "kernel_width", "down", "right", "above", "left", "groups", "fp16",
    ],
)  # fmt: skip
@triton.jit
def convolution_kernel(
    x_ptr, w_ptr, y_ptr, batch, features, height, width, out_features, out_height, out_width,
    x_batch, x_feature, x_row, x_column, w_out, w_in, w_row, w_column,
    y_batch, y_feature, y_row, y_column,
    kernel_height: tl.constexpr, kernel_width: tl.constexpr,
    down: tl.constexpr, right: tl.constexpr, above: tl.constexpr, left: tl.constexpr,
    groups: tl.constexpr, fp16: tl.constexpr,
    PIXELS: tl.constexpr, IN_FEATURES: tl.constexpr, OUT_FEATURES: tl.constexpr,
):  # fmt: skip
    group = tl.program_id(2)
    inputs = features // groups
    outputs = out_features // groups
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    line = pixel // out_width
    image = line // out_height
    feature = tl.program_id(1) * OUT_FEATURES + tl.arange(0, OUT_FEATURES)
    out_row = line % out_height
    out_column = pixel % out_width
    x_ptr += (x_batch * image + x_feature * group * inputs)[:, None]
    w_ptr += (w_out * feature + w_out * group * outputs)[None, :]
    total = tl.zeros((PIXELS, OUT_FEATURES), dtype=tl.float32)
    for h in range(kernel_height):
        for w in range(kernel_width):
            for c in range(0, inputs, IN_FEATURES):
                in_feature = c + tl.arange(0, IN_FEATURES)
                row = h - above + down * out_row
                column = w - left + right * out_column
                x_ptrs = (
                    x_ptr
                    + (x_feature * in_feature)[None, :]
                    + (x_row * row)[:, None]
                    + (x_column * column)[:, None]
                )
                w_ptrs = w_ptr + (w_in * in_feature)[:, None] + (w_row * h) + (w_column * w)
                seen = (
                    (image < batch)[:, None]
                    & (in_feature < inputs)[None, :]
                    & (0 <= row)[:, None]
                    & (row < height)[:, None]
                    & (0 <= column)[:, None]
                    & (column < width)[:, None]
                )
                used = (in_feature < inputs)[:, None] & (feature < outputs)[None, :]
                x = tl.load(x_ptrs, mask=seen)
                weight = tl.load(w_ptrs, mask=used)
                if fp16:
                    x = x.to(tl.float16)
                    weight = weight.to(tl.float16)
                total += tl.dot(x, weight)
    y_ptr += (
        (y_batch * image)[:, None]
        + (y_feature * (group * outputs + feature))[None, :]
        + (y_row * out_row)[:, None]
        + (y_column * out_column)[:, None]
    )
    inside = (image < batch)[:, None] & (feature < outputs)[None, :]
    tl.store(y_ptr, total, mask=inside)


def convolution(x: Any, w: Any, stride: Any, padding: Any, groups: int, fp16: bool) -> Any:
    batch, features, height, width = x.shape
    out_features, _, kernel_height, kernel_width = w.shape
    out_height = 1 + (height + 2 * padding[0] - kernel_height) // stride[0]
    out_width = 1 + (width + 2 * padding[1] - kernel_width) // stride[1]
    y = torch.empty(
        (batch, out_features, out_height, out_width), device=x.device, dtype=torch.float32
    )
    grid = lambda meta: (
        triton.cdiv(batch * out_height * out_width, meta["PIXELS"]),
        triton.cdiv(out_features // groups, meta["OUT_FEATURES"]),
        groups,
    )
    convolution_kernel[grid](
        x, w, y, batch, features, height, width, out_features, out_height, out_width,
        *x.stride(), *w.stride(), *y.stride(), kernel_height, kernel_width,
        *stride, *padding, groups, fp16,
    )  # fmt: skip
    return y


class Convolution(torch.autograd.Function):
    """The gradients are convolutions too: of what comes back by the weights, turned around, and of
    the inputs by what comes back."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, padding: Any) -> Any:
        ctx.save_for_backward(x, w)
        ctx.padding = padding
        return convolution(x, w, (1, 1), padding, 1, False)

    @staticmethod
    def backward(ctx: Any, d: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        x, w = ctx.saved_tensors
        around = [extent - 1 - p for extent, p in zip(w.shape[2:], ctx.padding, strict=True)]
        turned = w.flip(2, 3).transpose(0, 1)
        dx = convolution(d, turned, (1, 1), around, 1, False)
        swapped = x.transpose(0, 1), d.transpose(0, 1)
        dw = convolution(*swapped, (1, 1), ctx.padding, 1, False).transpose(0, 1)
        return dx, dw, None


def test_groups_see_their_own_features(device: str) -> None:
    x, w = torch.randn(2, 6, 7, 9, device=device), torch.randn(10, 3, 3, 2, device=device)
    found = convolution(x, w, (2, 1), (1, 1), 2, True)
    inputs = [t.half().double() for t in (x, w)]
    expected = torch.nn.functional.conv2d(*inputs, stride=(2, 1), padding=(1, 1), groups=2)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


def test_gradients_are_convolutions(device: str) -> None:
    x, w = torch.randn(2, 3, 5, 6, device=device), torch.randn(4, 3, 3, 2, device=device)
    wide = [t.double().requires_grad_() for t in (x, w)]
    leaves = [t.clone().requires_grad_() for t in (x, w)]
    expected = torch.nn.functional.conv2d(*wide, padding=(1, 0))
    d = torch.randn(expected.shape, device=device)
    expected.backward(d.double())
    found = Convolution.apply(*leaves, (1, 0))
    found.backward(d)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    for mine, true in zip(leaves, wide, strict=True):
        torch.testing.assert_close(mine.grad.double(), true.grad, rtol=1e-5, atol=1e-5)
