"""Linear attention with decay in chunks: states, then results; gradients of the initial states.

After fla-org/flash-linear-attention, `fla/ops/common/chunk_h.py`, `chunk_o.py`: heuristics around
an autotuner, `do_not_specialize`, block pointers of both orders and `boundary_check` without
padding, arguments that are assigned anew, a loop that counts down, Python's `min` with run-time
numbers, launches with all arguments by keyword, and a grid that is a nested function.
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


TUNED = triton.autotune(
    configs=[
        triton.Config({"BK": k, "BV": v}, num_warps=w, num_stages=s)
        for k, v, w, s in [(16, 32, 2, 3), (32, 16, 4, 2)]
    ],
    key=["BT", "DECAYS"],
)


@triton.heuristics(
    {
        "HAS_INITIAL": lambda args: args["h0"] is not None,
        "HAS_FINAL": lambda args: args["ht"] is not None,
        "PACKED": lambda args: args["starts"] is not None,
    }
)
@TUNED
@triton.jit(do_not_specialize=["T"])
def states_kernel(
    k, v, h, g, h0, ht, starts, chunks, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
    BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, DECAYS: tl.constexpr,
    HAS_INITIAL: tl.constexpr, HAS_FINAL: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    i_k, i_v, i_nh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_n, i_h = i_nh // H, i_nh % H
    if PACKED:
        first = tl.load(starts + i_n).to(tl.int32)
        last = tl.load(starts + i_n + 1).to(tl.int32)
        T = last - first  # noqa: N806
        chunk = tl.load(chunks + i_n).to(tl.int32)
    else:
        first = i_n * T
        chunk = i_n * tl.cdiv(T, BT)
    state = tl.zeros([BK, BV], dtype=tl.float32)
    if HAS_INITIAL:
        p_h0 = tl.make_block_ptr(
            h0 + i_nh * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0)
        )
        state = tl.load(p_h0, boundary_check=(0, 1)).to(tl.float32)
    for i_t in range(tl.cdiv(T, BT)):
        p_k = tl.make_block_ptr(
            k + (first * H + i_h) * K, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1)
        )
        p_v = tl.make_block_ptr(
            v + (first * H + i_h) * V, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0)
        )
        at = ((chunk + i_t) * H + i_h).to(tl.int64) * K * V
        p_h = tl.make_block_ptr(h + at, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        tl.store(p_h, state.to(p_h.dtype.element_ty), boundary_check=(0, 1))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_v = tl.load(p_v, boundary_check=(0, 1))
        end = min((i_t + 1) * BT, T) - 1
        if DECAYS:
            g_end = tl.load(g + (first + end) * H + i_h)
            t = i_t * BT + tl.arange(0, BT)
            b_g = tl.load(g + (first + t) * H + i_h, mask=t < T, other=0.0)
            state *= tl.exp(g_end)
            b_v = (b_v * tl.exp(g_end - b_g)[:, None]).to(b_v.dtype)
        state += tl.dot(b_k, b_v)
    if HAS_FINAL:
        p_ht = tl.make_block_ptr(
            ht + i_nh * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0)
        )
        tl.store(p_ht, state.to(p_ht.dtype.element_ty), boundary_check=(0, 1))


@triton.jit(do_not_specialize=["T"])
def results_kernel(
    q, k, v, h, g, o, scale, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
    BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, DECAYS: tl.constexpr,
):  # fmt: skip
    i_v, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    q += (i_b * T * H + i_h) * K
    k += (i_b * T * H + i_h) * K
    v += (i_b * T * H + i_h) * V
    o += (i_b * T * H + i_h) * V
    h += ((i_b * tl.cdiv(T, BT) + i_t) * H + i_h).to(tl.int64) * K * V
    b_o = tl.zeros([BT, BV], dtype=tl.float32)
    b_a = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        p_q = tl.make_block_ptr(q, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0))
        p_k = tl.make_block_ptr(k, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_h = tl.make_block_ptr(h, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        b_q = tl.load(p_q, boundary_check=(0, 1))
        b_o += tl.dot(b_q, tl.load(p_h, boundary_check=(0, 1)))
        b_a += tl.dot(b_q, tl.load(p_k, boundary_check=(0, 1)))
    if DECAYS:
        p_g = tl.make_block_ptr(g + i_b * T * H + i_h, (T,), (H,), (i_t * BT,), (BT,), (0,))
        b_g = tl.load(p_g, boundary_check=(0,))
        b_o = b_o * tl.exp(b_g)[:, None]
        b_a = b_a * tl.exp(b_g[:, None] - b_g[None, :])
    t = i_t * BT + tl.arange(0, BT)
    b_a = tl.where((t[:, None] >= t[None, :]) & (t[:, None] < T) & (t < T), b_a, 0)
    p_v = tl.make_block_ptr(v, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    p_o = tl.make_block_ptr(o, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    b_v = tl.load(p_v, boundary_check=(0, 1))
    b_o = (b_o + tl.dot(b_a.to(b_v.dtype), b_v)) * scale
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


@TUNED
@triton.jit(do_not_specialize=["T"])
def initial_gradient_kernel(
    q, g, do, dh0, scale, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
    BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, DECAYS: tl.constexpr,
):  # fmt: skip
    i_k, i_v, i_nh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_n, i_h = i_nh // H, i_nh % H
    q += (i_n * T * H + i_h) * K
    do += (i_n * T * H + i_h) * V
    d_state = tl.zeros([BK, BV], dtype=tl.float32)
    for i_t in range(tl.cdiv(T, BT) - 1, -1, -1):
        p_q = tl.make_block_ptr(q, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_do = tl.make_block_ptr(do, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        b_q = tl.load(p_q, boundary_check=(0, 1))
        b_q = (b_q * scale).to(b_q.dtype)
        b_do = tl.load(p_do, boundary_check=(0, 1))
        end = min(i_t * BT + BT, T) - 1
        if DECAYS:
            t = i_t * BT + tl.arange(0, BT)
            g_end = tl.load(g + (i_n * T + end) * H + i_h)
            b_g = tl.load(g + (i_n * T + t) * H + i_h, mask=t < T, other=0.0)
            b_q = (b_q * tl.exp(b_g)[None, :]).to(b_q.dtype)
            d_state *= tl.exp(g_end)
        d_state += tl.dot(b_q, b_do.to(b_q.dtype))
    p = tl.make_block_ptr(
        dh0 + i_nh * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0)
    )
    tl.store(p, d_state.to(p.dtype.element_ty), boundary_check=(0, 1))


CHUNK = 16


def states(k: Any, v: Any, g: Any, h0: Any, starts: Any = None, final: bool = True) -> Any:
    """g: sums of the logarithms of decays within each chunk."""
    batch, length, heads, width, value = *k.shape, v.shape[-1]
    if starts is None:
        sequences, chunks, in_all = batch, None, batch * triton.cdiv(length, CHUNK)
    else:
        counts = (starts.diff() + CHUNK - 1) // CHUNK
        chunks = torch.cat([torch.zeros_like(counts[:1]), counts.cumsum(0)])
        sequences, in_all = len(starts) - 1, int(chunks[-1])
    h = k.new_empty(in_all, heads, width, value)
    ht = k.new_empty(sequences, heads, width, value, dtype=torch.float) if final else None

    def grid(meta: Any) -> Any:
        return (triton.cdiv(width, meta["BK"]), triton.cdiv(value, meta["BV"]), sequences * heads)

    states_kernel[grid](
        k=k, v=v, h=h, g=g, h0=h0, ht=ht, starts=starts, chunks=chunks, T=length, H=heads,
        K=width, V=value, BT=CHUNK, DECAYS=g is not None,
    )  # fmt: skip
    return h, ht


class LinearAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, g: Any, h0: Any) -> Any:
        batch, length, heads, width, value = *k.shape, v.shape[-1]
        ctx.scale = width**-0.5
        ctx.save_for_backward(q, g, h0)
        h, ht = states(k, v, g, h0)
        o = torch.empty_like(v)
        grid = (triton.cdiv(value, 16), triton.cdiv(length, CHUNK), batch * heads)
        results_kernel[grid](
            q, k, v, h, g, o, ctx.scale, length, heads, width, value, BT=CHUNK, BK=16, BV=16,
            DECAYS=g is not None,
        )  # fmt: skip
        ctx.mark_non_differentiable(ht)
        return o, ht

    @staticmethod
    def backward(ctx: Any, do: Any, _: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        q, g, h0 = ctx.saved_tensors
        batch, length, heads, width = q.shape
        dh0 = torch.empty_like(h0, dtype=torch.float)
        grid = lambda meta: (
            triton.cdiv(width, meta["BK"]),
            triton.cdiv(do.shape[-1], meta["BV"]),
            batch * heads,
        )
        initial_gradient_kernel[grid](
            q=q, g=g, do=do, dh0=dh0, scale=ctx.scale, T=length, H=heads, K=width,
            V=do.shape[-1], BT=CHUNK, DECAYS=g is not None,
        )  # fmt: skip
        return None, None, None, None, dh0


def reference(q: Any, k: Any, v: Any, decays: Any, h0: Any) -> Any:
    state, results = h0, []
    for t in range(q.shape[1]):
        state = state * decays[:, t].exp()[..., None, None]
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], v[:, t])
        results.append(torch.einsum("bhk,bhkv->bhv", q[:, t], state) * q.shape[-1] ** -0.5)
    return torch.stack(results, 1), state


def inputs(length: int, device: str) -> Any:
    q, k = (torch.randn(1, length, 2, 20, device=device) for _ in range(2))
    v = torch.randn(1, length, 2, 24, device=device)
    return q, k, v, -torch.rand(1, length, 2, device=device) / 4


def within_chunks(decays: Any) -> Any:
    return torch.cat([part.cumsum(1) for part in decays.split(CHUNK, 1)], 1)


def test_chunks_are_as_one_step_after_the_other(device: str) -> None:
    q, k, v, decays = inputs(21, device)
    h0 = torch.randn(1, 2, 20, 24, device=device)
    wide = h0.double().requires_grad_()
    expected, last = reference(q.double(), k.double(), v.double(), decays.double(), wide)
    h0.requires_grad_()
    found, final = LinearAttention.apply(q, k, v, within_chunks(decays), h0)
    d = torch.randn_like(v)
    expected.backward(d.double())
    found.backward(d)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(final.double(), last, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(h0.grad.double(), wide.grad, rtol=1e-4, atol=1e-4)


def test_packed_sequences_have_states_of_their_own(device: str) -> None:
    _, k, v, decays = inputs(29, device)
    starts = torch.tensor([0, 5, 23, 29], device=device)
    parts = starts.diff().tolist()
    g = torch.cat([within_chunks(part) for part in decays.split(parts, 1)], 1)
    _, final = states(k, v, g, None, starts)
    nothing = torch.zeros(1, 2, 20, 24, dtype=torch.float64, device=device)
    pieces = zip(*(x.double().split(parts, 1) for x in (k, v, decays)), strict=True)
    expected = torch.cat(
        [reference(one, one, two, three, nothing)[1] for one, two, three in pieces]
    )
    torch.testing.assert_close(final.double(), expected, rtol=1e-4, atol=1e-4)
