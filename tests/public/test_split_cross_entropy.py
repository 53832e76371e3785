"""Cross entropy with smoothing and a penalty on the normalizer, over a vocabulary in parts.

After Dao-AILab/flash-attention, `flash_attn/ops/triton/cross_entropy.py`: heuristics on a number,
`.to(tl.int64)` of a stride that may be 1, conditions on constexprs inside of expressions, results
of four branches, a loaded value that is changed, and gradients in place.
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


@triton.heuristics({"SMOOTHED": lambda args: args["smoothing"] > 0.0})
@triton.jit
def loss_kernel(
    loss_ptr, lse_ptr, penalty_ptr, logits_ptr, labels_ptr, smoothing, scale, penalty, ignored,
    classes, first_class, columns, row_stride,
    BLOCK: tl.constexpr, SMOOTHED: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    logits_ptr = logits_ptr + row * row_stride.to(tl.int64)
    sum_logits = 0.0
    top = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        logits = (
            tl.load(logits_ptr + column, mask=column < columns, other=-float("inf")).to(tl.float32)
            * scale
        )
        if SMOOTHED:
            sum_logits += tl.sum(tl.where(column < columns, logits, 0.0))
        higher = tl.maximum(top, tl.max(logits))
        total = tl.exp(top - higher) * total + tl.sum(tl.exp(logits - higher))
        top = higher
    lse = tl.log(total) + top
    tl.store(lse_ptr + row, lse)
    label = tl.load(labels_ptr + row)
    if label == ignored:
        loss = 0.0
        z_loss = 0.0
    else:
        label -= first_class
        if label >= 0 and label < columns:
            mine = tl.load(logits_ptr + label) * scale
            if SMOOTHED:
                loss = (
                    (lse if not SPLIT else 0.0)
                    - smoothing * sum_logits / classes
                    - (1 - smoothing) * mine
                )
            else:
                loss = (lse if not SPLIT else 0.0) - mine
        else:
            if SMOOTHED:
                loss = smoothing * ((lse if not SPLIT else 0.0) - sum_logits / classes)
            else:
                loss = 0.0
        if not SPLIT:
            z_loss = penalty * lse * lse
            loss += z_loss
        else:
            z_loss = 0.0
    tl.store(loss_ptr + row, loss)
    if not SPLIT:
        tl.store(penalty_ptr + row, z_loss)


@triton.heuristics({"SMOOTHED": lambda args: args["smoothing"] > 0.0})
@triton.jit
def gradient_kernel(
    d_logits_ptr, d_loss_ptr, logits_ptr, lse_ptr, labels_ptr, smoothing, scale, penalty, ignored,
    classes, first_class, columns, row_stride, d_row_stride, d_loss_stride,
    BLOCK: tl.constexpr, SMOOTHED: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    logits_ptr = logits_ptr + row * row_stride.to(tl.int64)
    d_logits_ptr = d_logits_ptr + row * d_row_stride.to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(labels_ptr + row)
    if label != ignored:
        d_loss = tl.load(d_loss_ptr + row * d_loss_stride)
    else:
        d_loss = 0.0
    logits = (
        tl.load(logits_ptr + column, mask=column < columns, other=-float("inf")).to(tl.float32)
        * scale
    )
    lse = tl.load(lse_ptr + row)
    share = tl.exp(logits - lse)
    share += 2.0 * penalty * lse * share
    label -= first_class
    if SMOOTHED:
        share = tl.where(column == label, share - (1.0 - smoothing), share) - smoothing / classes
    else:
        share = tl.where(column == label, share - 1.0, share)
    tl.store(d_logits_ptr + column, (d_loss * scale) * share, mask=column < columns)


class CrossEntropy(torch.autograd.Function):
    """Over columns that lie in several parts, as they do on several devices."""

    @staticmethod
    def forward(
        ctx: Any, parts: int, labels: Any, smoothing: float, scale: float, penalty: float,
        logits: Any,
    ) -> Any:  # fmt: skip
        (rows, classes), device = logits.shape, logits.device
        pieces = [piece.contiguous() for piece in logits.chunk(parts, -1)]
        losses = torch.empty(parts, rows, device=device)
        lse, penalties = torch.empty_like(losses), torch.zeros_like(losses)
        first = 0
        for i, piece in enumerate(pieces):
            loss_kernel[(rows,)](
                losses[i], lse[i], penalties[i], piece, labels, smoothing, scale, penalty, -100,
                classes, first, piece.shape[1], piece.stride(0), BLOCK=32, SPLIT=parts > 1,
                num_warps=4,
            )  # fmt: skip
            first += piece.shape[1]
        loss, whole = losses.sum(0), lse.logsumexp(0)
        if parts > 1:
            loss = loss + whole + penalty * whole.square()
            loss = loss.masked_fill(labels == -100, 0.0)
        ctx.save_for_backward(labels, whole, *pieces)
        ctx.settings = smoothing, scale, penalty, -100, classes
        return loss

    @staticmethod
    def backward(ctx: Any, d_loss: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        labels, lse, *pieces = ctx.saved_tensors
        first = 0
        for piece in pieces:  # in place
            rows, columns = piece.shape
            grid = lambda meta: (rows, triton.cdiv(columns, meta["BLOCK"]))  # noqa: B023
            gradient_kernel[grid](
                piece, d_loss, piece, lse, labels, *ctx.settings, first, columns, piece.stride(0),
                piece.stride(0), d_loss.stride(0), BLOCK=32, num_warps=4,
            )  # fmt: skip
            first += columns
        return None, None, None, None, None, torch.cat(pieces, -1)


@pytest.mark.parametrize(("parts", "smoothing"), [(1, 0.0), (1, 0.1), (3, 0.1), (3, 0.0)])
def test_losses_and_gradients_over_parts(device: str, parts: int, smoothing: float) -> None:
    rows, classes, scale, penalty = 5, 77, 0.7, 1e-2
    logits = torch.randn(rows, classes, device=device) * 3
    labels = torch.tensor([3, -100, 76, 40, 25], device=device)
    wide = logits.double().requires_grad_()
    entropy = torch.nn.functional.cross_entropy(
        wide * scale, labels, reduction="none", label_smoothing=smoothing
    )
    squared = (wide * scale).logsumexp(-1).square() * (labels != -100)
    expected = entropy + penalty * squared
    logits.requires_grad_()
    found = CrossEntropy.apply(parts, labels, smoothing, scale, penalty, logits)
    weights = torch.randn(rows, device=device)
    expected.backward(weights.double())
    found.backward(weights.expand(1, rows).squeeze(0))
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(logits.grad.double(), wide.grad, rtol=1e-5, atol=1e-5)
