"""The largest or smallest of long rows with their places: in pieces, which a bitonic sort joins.

After FlagOpen/FlagGems, `src/flag_gems/ops/topk.py`: globals that are constexprs, values that a
helper chooses by `is` on dtypes, `argmax` in a loop, `triton.language.core` by its own name, shapes
as constexpr lists, three-dimensional reshapes, exchanges by bits, `raise` where a dtype is unknown,
and grids without parentheses.
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


with triton_alias():
    import triton.language.core as core
    from triton.language.standard import _log2, zeros_like

SMALLEST: tl.constexpr = torch.finfo(torch.float32).min
LARGEST: tl.constexpr = torch.finfo(torch.float32).max
SMALLEST_16: tl.constexpr = torch.finfo(torch.float16).min
LARGEST_16: tl.constexpr = torch.finfo(torch.float16).max


@triton.jit
def end_of(dtype, largest):
    if dtype is tl.float32:
        if largest:
            return LARGEST
        else:  # noqa: RET505
            return SMALLEST
    elif dtype is tl.float16:
        if largest:
            return LARGEST_16
        else:  # noqa: RET505
            return SMALLEST_16


@triton.jit
def pieces_kernel(
    y_ptr, place_ptr, x_ptr, k, N: tl.constexpr, PIECE: tl.constexpr, DESCENDING: tl.constexpr
):
    row, piece, pieces = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    y_ptr += row * pieces * k + piece * k
    place_ptr += row * pieces * k + piece * k
    first = piece * PIECE
    x_ptr += row * N + first
    at = tl.arange(0, PIECE)
    nothing = end_of(x_ptr.dtype.element_ty, largest=not DESCENDING)
    x = tl.load(x_ptr + at, mask=first + at < N, other=nothing).to(tl.float32)
    for i in range(k):
        if DESCENDING:
            best, place = tl.max(x), tl.argmax(x, axis=0)
        else:
            best, place = tl.min(x), tl.argmin(x, axis=0)
        tl.store(y_ptr + i, best)
        tl.store(place_ptr + i, place + first)
        x = tl.where(at == place, end_of(tl.float32, largest=not DESCENDING), x)


@triton.jit
def integer_of(dtype: core.constexpr):
    if core.constexpr(dtype.primitive_bitwidth) == 32:
        return core.int32
    elif core.constexpr(dtype.primitive_bitwidth) == 64:
        return core.int64
    else:
        raise ValueError("no integer of that size")


@triton.jit
def exchanged(x, others, swap):
    kind: core.constexpr = integer_of(x.dtype)
    bits = x.to(kind, bitcast=True)
    return (bits ^ core.where(swap, others, zeros_like(bits))).to(x.dtype, bitcast=True)


@triton.jit
def sides(x, shape: core.constexpr):
    y = core.reshape(x, shape)
    right = core.arange(0, 2)[None, :, None]
    one = core.broadcast_to(tl.sum(y * (1 - right), 1)[:, None, :], shape).to(x.dtype)
    other = core.broadcast_to(tl.sum(y * right, 1)[:, None, :], shape).to(x.dtype)
    return core.reshape(one, x.shape), core.reshape(other, x.shape)


@triton.jit
def difference(one, other):
    kind: core.constexpr = integer_of(one.dtype)
    return one.to(kind, bitcast=True) ^ other.to(kind, bitcast=True)


@triton.jit
def compare_and_swap(x, ids, flip, i: core.constexpr, dims: core.constexpr):
    outer: core.constexpr = x.numel >> dims
    shape: core.constexpr = [outer * 2**i, 2, 2 ** (dims - i - 1)]
    left, right = sides(x, shape)
    left_id, right_id = sides(ids, shape)
    swap = (left > right) ^ flip
    x = exchanged(x, difference(left, right), swap)
    return x, exchanged(ids, difference(left_id, right_id), swap)


@triton.jit
def merge(x, ids, stage: core.constexpr, order: core.constexpr, dims: core.constexpr):
    outer: core.constexpr = x.numel >> dims
    core.static_assert(stage <= dims)
    if order == 2:
        shape: core.constexpr = [outer * 2 ** (dims - 1 - stage), 2, 2**stage]
        flip = core.reshape(core.broadcast_to(core.arange(0, 2)[None, :, None], shape), x.shape)
    else:
        flip = order
    for i in core.static_range(stage):
        x, ids = compare_and_swap(x, ids, flip, i + (dims - stage), dims)
    return x, ids


@triton.jit
def sorted_with_places(x, ids, axis: tl.constexpr, descending: core.constexpr):
    dims: core.constexpr = _log2(x.shape[axis])
    for i in core.static_range(1, dims + 1):
        x, ids = merge(x, ids, i, 2 if i < dims else descending, dims)
    return x, ids


@triton.jit
def joined_kernel(
    y_ptr, place_ptr, found_ptr, at_ptr, axis: tl.constexpr, k: tl.constexpr, N: tl.constexpr,
    BLOCK: tl.constexpr, DESCENDING: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    nothing = end_of(found_ptr.dtype.element_ty, largest=not DESCENDING)
    x = tl.load(found_ptr + row * N + i, mask=i < N, other=nothing).to(tl.float32)
    ids = tl.load(at_ptr + row * N + i, mask=i < N, other=-1).to(tl.int32)
    x, ids = sorted_with_places(x, ids, axis, descending=DESCENDING)
    tl.store(y_ptr + row * k + i, x, mask=i < k)
    tl.store(place_ptr + row * k + i, ids, mask=i < k)


def topk(x: Any, k: int, largest: bool) -> Any:
    rows, n = x.shape
    piece = 32
    pieces = triton.cdiv(n, piece)
    found = torch.empty(rows * pieces * k, device=x.device, dtype=x.dtype)
    at = torch.empty(rows * pieces * k, device=x.device, dtype=torch.int64)
    values = torch.empty((rows, k), device=x.device, dtype=x.dtype)
    places = torch.empty((rows, k), device=x.device, dtype=torch.int64)
    pieces_kernel[rows, pieces](found, at, x, k, n, piece, largest)
    count = pieces * k
    joined_kernel[rows,](
        values, places, found, at, 0, k, count, triton.next_power_of_2(count), largest
    )
    return values, places


@pytest.mark.parametrize(("dtype", "largest"), [("float32", True), ("float16", False)])
def test_values_and_places_are_torch_s(device: str, dtype: str, largest: bool) -> None:
    # no two are equal, so that there is one answer
    row = torch.randperm(77, device=device).to(getattr(torch, dtype)) - 30
    x = torch.stack([row, row.flip(0).roll(7)])
    values, places = topk(x, 5, largest)
    expected = torch.topk(x.double(), 5, largest=largest)
    assert torch.equal(values.double(), expected.values)
    assert torch.equal(places, expected.indices)
