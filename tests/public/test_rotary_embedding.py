"""Rotary embedding of sequences that may be packed end to end, its halves apart or interleaved.

After Dao-AILab/flash-attention, `flash_attn/ops/triton/rotary.py`: an argument that is a number or
a tensor, optional arrays, pointers that are assigned anew under a constexpr, an early return, a
grid that is a function; the backward pass is the conjugate rotation, in place.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportPossiblyUnboundVariable=false

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.triton_alias.alias_fixture import triton_alias

torch: Any = pytest.importorskip("torch")
# in place through two arguments, of which the kernel loads one lane and stores another
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::tilewright.OverlapWarning"),
]

with triton_alias():
    import triton
    import triton.language as tl


@triton.jit
def rotate_kernel(
    out, x, cos, sin, starts, first_position, length, width, table_length,
    out_batch, out_token, out_head, out_lane, x_batch, x_token, x_head, x_lane,
    LANES: tl.constexpr, POSITIONS_DIFFER: tl.constexpr, PACKED: tl.constexpr,
    INTERLEAVED: tl.constexpr, CONJUGATE: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    block, batch, head = tl.program_id(axis=0), tl.program_id(axis=1), tl.program_id(axis=2)
    half = width // 2
    if not PACKED:
        x = x + batch * x_batch + head * x_head
        out = out + batch * out_batch + head * out_head
    else:
        start = tl.load(starts + batch)
        length = tl.load(starts + batch + 1) - start
        x = x + start * x_token + head * x_head
        out = out + start * out_token + head * out_head
    if block * TOKENS >= length:
        return
    token = block * TOKENS + tl.arange(0, TOKENS)
    if POSITIONS_DIFFER:
        position = token + tl.load(first_position + batch)
    else:
        position = token + first_position
    inside = token[:, None] < length
    if INTERLEAVED:
        lane = tl.arange(0, LANES)
        partner = lane + ((lane + 1) % 2) * 2 - 1
        pair = lane // 2
        table = position[:, None] * half + pair[None, :]
        known = (position[:, None] < table_length) & (pair[None, :] < half)
        c = tl.load(cos + table, mask=known, other=1.0).to(tl.float32)
        s = tl.load(sin + table, mask=known, other=0.0).to(tl.float32)
        row = x + token[:, None] * x_token
        used = inside & (lane[None, :] < width)
        mine = tl.load(row + lane[None, :] * x_lane, mask=used, other=0.0).to(tl.float32)
        used_too = inside & (partner[None, :] < width)
        other = tl.load(row + partner[None, :] * x_lane, mask=used_too, other=0.0).to(tl.float32)
        if CONJUGATE:
            s = -s
        turned = tl.where(lane[None, :] % 2 == 0, mine * c - other * s, mine * c + other * s)
        tl.store(out + (token[:, None] * out_token + lane[None, :] * out_lane), turned, mask=used)
    else:
        lane = tl.arange(0, LANES // 2)
        used = inside & (lane[None, :] < half)
        cos += position[:, None] * half + lane[None, :]
        sin += position[:, None] * half + lane[None, :]
        known = (position[:, None] < table_length) & (lane[None, :] < half)
        c = tl.load(cos, mask=known, other=1.0).to(tl.float32)
        s = tl.load(sin, mask=known, other=0.0).to(tl.float32)
        x += token[:, None] * x_token + lane[None, :] * x_lane
        real = tl.load(x, mask=used, other=0.0).to(tl.float32)
        imaginary = tl.load(x + half * x_lane, mask=used, other=0.0).to(tl.float32)
        if CONJUGATE:
            s = -s
        out += token[:, None] * out_token + lane[None, :] * out_lane
        tl.store(out, real * c - imaginary * s, mask=used)
        tl.store(out + half * out_lane, real * s + imaginary * c, mask=used)


def rotate(
    x: Any, cos: Any, sin: Any, first_position: Any = 0, starts: Any = None,
    longest: int | None = None, interleaved: bool = False, inplace: bool = False,
    conjugate: bool = False,
) -> Any:  # fmt: skip
    packed = starts is not None
    if packed:
        _, heads, _ = x.shape
        batch, length = starts.shape[0] - 1, longest
    else:
        batch, length, heads, _ = x.shape
    table_length, half = cos.shape
    out = x if inplace else x.clone()
    grid = lambda meta: (triton.cdiv(length, meta["TOKENS"]), batch, heads)
    rotate_kernel[grid](
        out, x, cos, sin, starts, first_position, length, 2 * half, table_length,
        0 if packed else out.stride(0), out.stride(-3), out.stride(-2), out.stride(-1),
        0 if packed else x.stride(0), x.stride(-3), x.stride(-2), x.stride(-1),
        triton.next_power_of_2(2 * half), isinstance(first_position, torch.Tensor), packed,
        interleaved, conjugate, 2 if interleaved else 4,
    )  # fmt: skip
    return out


class Rotation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, cos: Any, sin: Any, keywords: Any) -> Any:
        ctx.save_for_backward(cos, sin)
        ctx.keywords = keywords
        return rotate(x, cos, sin, **keywords)

    @staticmethod
    def backward(ctx: Any, d: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        turned = rotate(d.clone(), *ctx.saved_tensors, inplace=True, conjugate=True, **ctx.keywords)
        return turned, None, None, None


def reference(x: Any, cos: Any, sin: Any, positions: Any, interleaved: bool) -> Any:
    """x: (tokens, heads, lanes); positions: of each token."""
    half = cos.shape[1]
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    pairs = turned.unflatten(-1, (half, 2) if interleaved else (2, half))
    real, imaginary = pairs.unbind(-1 if interleaved else -2)
    c, s = cos[positions][:, None], sin[positions][:, None]
    turned = torch.stack(
        [real * c - imaginary * s, real * s + imaginary * c], -1 if interleaved else -2
    )
    return torch.cat([turned.flatten(-2), rest], -1)


def assert_rotated(x: Any, tables: Any, keywords: Any, positions: Any) -> None:
    d = torch.randn_like(x)
    wide = x.double().requires_grad_()
    cos, sin = (table.double() for table in tables)
    flat = reference(wide.flatten(0, -3), cos, sin, positions, keywords["interleaved"])
    flat.view(x.shape).backward(d.double())
    x = x.clone().requires_grad_()
    found = Rotation.apply(x, *tables, keywords)
    found.backward(d)
    torch.testing.assert_close(found.double(), flat.view(x.shape), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(x.grad.double(), wide.grad, rtol=1e-6, atol=1e-6)


def tables_for(device: str, half: int) -> Any:
    angles = torch.rand(20, half, device=device) * 6
    return angles.cos(), angles.sin()


@pytest.mark.parametrize("interleaved", [False, True])
def test_sequences_begin_at_their_positions(device: str, interleaved: bool) -> None:
    x = torch.randn(2, 7, 3, 26, device=device)
    first = torch.tensor([3, 11], device=device)
    positions = (first[:, None] + torch.arange(7, device=device)).flatten()
    keywords = {"first_position": first, "interleaved": interleaved}
    assert x.shape[-1] > 2 * 11
    assert_rotated(x, tables_for(device, 11), keywords, positions)


@pytest.mark.parametrize("interleaved", [False, True])
def test_packed_sequences_are_rotated_one_by_one(device: str, interleaved: bool) -> None:
    x = torch.randn(13, 2, 12, device=device)
    starts = torch.tensor([0, 4, 4, 13], device=device, dtype=torch.int32)
    positions = torch.cat([torch.arange(4), torch.arange(9)]).to(device) + 2
    keywords = {"first_position": 2, "interleaved": interleaved, "starts": starts, "longest": 9}
    assert int(starts.diff().max()) == keywords["longest"]
    assert_rotated(x, tables_for(device, 6), keywords, positions)
