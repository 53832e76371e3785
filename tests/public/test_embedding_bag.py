"""Weighted sums of rows of a table, whose gradient is gathered by a map from rows to their uses.

After facebookresearch/memory, `lingua/product_key/xformers_embeddingbag.py`: relaxed atomic sums
that count, and whose old values are places to write to, program ids and indices of 64 bits, scalar
loads and stores, loops between bounds that were loaded, one warp for each program.
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


@triton.jit
def bag_kernel(
    out_ptr, index_ptr, table_ptr, weight_ptr,
    width: tl.constexpr, padded: tl.constexpr, bag_size: tl.constexpr,
):  # fmt: skip
    bag = tl.program_id(axis=0).to(tl.int64)
    lane = tl.arange(0, padded)
    total = tl.zeros([padded], dtype=tl.float32)
    for i in range(0, bag_size):
        index = tl.load(index_ptr + bag * bag_size + i).to(tl.int64)
        weight = tl.load(weight_ptr + bag * bag_size + i)
        row = tl.load(table_ptr + lane + index * width, mask=lane < width)
        total = total + row.to(tl.float32) * weight
    tl.store(out_ptr + bag * width + lane, total, mask=lane < width)


@triton.jit
def count_kernel(count_ptr, index_ptr, bag_size: tl.constexpr):
    bag = tl.program_id(axis=0).to(tl.int64)
    for i in range(bag_size):
        index = tl.load(index_ptr + bag * bag_size + i)
        tl.atomic_add(count_ptr + index + 1, 1, sem="relaxed")


@triton.jit
def uses_kernel(use_ptr, place_ptr, index_ptr, bag_size: tl.constexpr):
    bag = tl.program_id(axis=0).to(tl.int64)
    for i in range(bag_size):
        index = tl.load(index_ptr + bag * bag_size + i)
        place = tl.atomic_add(place_ptr + index, 1, sem="relaxed")
        tl.store(use_ptr + place, bag * bag_size + i)


@triton.jit
def gradient_kernel(
    d_table_ptr, d_weight_ptr, first_ptr, use_ptr, table_ptr, weight_ptr, d_out_ptr,
    width: tl.constexpr, padded: tl.constexpr, bag_size: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    first_row = tl.program_id(axis=0).to(tl.int64) * BLOCK
    lane = tl.arange(0, padded)
    for row in range(first_row, first_row + BLOCK):
        total = tl.zeros([padded], dtype=tl.float32)
        values = tl.load(table_ptr + row * width + lane, mask=lane < width, other=0.0)
        values = values.to(tl.float32)
        begin = tl.load(first_ptr + row)
        end = tl.load(first_ptr + row + 1)
        for at in range(begin, end):
            use = tl.load(use_ptr + at).to(tl.int64)
            bag = use // bag_size
            weight = tl.load(weight_ptr + use)
            d = tl.load(d_out_ptr + bag * width + lane, mask=lane < width, other=0.0)
            d = d.to(tl.float32)
            tl.store(d_weight_ptr + use, tl.sum(d * values))
            total = total + weight * d
        tl.store(d_table_ptr + row * width + lane, total, mask=lane < width)


class EmbeddingBag(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, indices: Any, table: Any, weights: Any) -> Any:
        ctx.save_for_backward(indices, table, weights)
        out = torch.empty([indices.shape[0], table.shape[1]], device=table.device)
        bag_kernel[(indices.shape[0],)](
            out, indices, table, weights, width=table.shape[-1],
            padded=triton.next_power_of_2(table.shape[-1]), bag_size=indices.shape[1],
            num_warps=1, num_stages=1,
        )  # fmt: skip
        return out

    @staticmethod
    def backward(ctx: Any, d_out: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        indices, table, weights = ctx.saved_tensors
        (rows, width), (bags, bag_size) = table.shape, indices.shape
        counts = torch.zeros((rows + 1,), dtype=torch.int32, device=indices.device)
        count_kernel[(bags,)](counts, indices, bag_size=bag_size, num_warps=1)
        first = counts.cumsum(dim=-1, dtype=torch.int32)
        places = first.clone()
        uses = torch.empty([bags * bag_size], dtype=torch.int32, device=indices.device)
        uses_kernel[(bags,)](uses, places, indices, bag_size=bag_size, num_warps=1)
        d_table, d_weights = torch.empty_like(table), torch.empty_like(weights)
        block = 3 if rows % 3 == 0 else 1
        gradient_kernel[(rows // block,)](
            d_table, d_weights, first, uses, table, weights, d_out, width=width,
            padded=triton.next_power_of_2(width), bag_size=bag_size, BLOCK=block, num_warps=1,
        )  # fmt: skip
        return None, d_table, d_weights


@pytest.mark.parametrize(("rows", "width"), [(9, 21), (10, 32)])
def test_gradients_are_those_of_weighted_sums(device: str, rows: int, width: int) -> None:
    indices = torch.randint(rows - 2, (7, 3), device=device)
    leaves = [torch.randn(rows, width, device=device), torch.randn(7, 3, device=device)]
    d = torch.randn(7, width, device=device)
    wide = [leaf.double().requires_grad_() for leaf in leaves]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    expected = (wide[0][indices] * wide[1][..., None]).sum(1)
    expected.backward(d.double())
    found = EmbeddingBag.apply(indices, *leaves)
    found.backward(d)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    for mine, true in zip(leaves, wide, strict=True):
        torch.testing.assert_close(mine.grad.double(), true.grad, rtol=1e-5, atol=1e-5)
