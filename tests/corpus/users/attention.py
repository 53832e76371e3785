"""Attention of whole rows as tutorials have it, with the masks and biases that models add."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, extra_ptr, stride_h, stride_l, length, scale, amount,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """A running maximum and sum; KIND names what is done to the scores."""
    start = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * stride_h
    rows, inner = start + tl.arange(0, BLOCK_M), tl.arange(0, HEAD)
    q = tl.load(q_ptr + head + rows[:, None] * stride_l + inner[None, :])
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD), tl.float32)
    begin = max(start - 1024, 0) // BLOCK_N * BLOCK_N if KIND == "window" else 0
    end = length if KIND == "full" else start + BLOCK_M
    for j in range(begin, end, BLOCK_N):
        columns = j + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + head + columns[:, None] * stride_l + inner[None, :])
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = changed(scores, rows, columns, extra_ptr, length, amount, KIND)
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp2(top - higher)
        weights = tl.exp2(scores - higher[:, None])
        total = total * shrink + tl.sum(weights, 1)
        if KIND == "dropout":
            kept = tl.rand(amount.to(tl.int32), rows[:, None] * length + columns[None, :]) > 0.1
            weights = tl.where(kept, weights / 0.9, 0.0)
        v = tl.load(v_ptr + head + columns[:, None] * stride_l + inner[None, :])
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        top = higher
    acc = acc / total[:, None]
    out_ptrs = out_ptr + head + rows[:, None] * stride_l + inner[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty))


@jit
def changed(scores, rows, columns, extra_ptr, length, amount, KIND: tl.constexpr):
    """The scores with a bias, a cap or a mask."""
    distance = rows[:, None] - columns[None, :]
    if KIND == "additive":
        scores = scores + tl.where(distance >= 0, 0, -1.0e6)
    elif KIND == "alibi":
        scores = tl.where(distance >= 0, scores - amount * distance.to(tl.float32), -float("inf"))
    elif KIND == "window":
        scores = tl.where((distance >= 0) & (distance < 1024), scores, -float("inf"))
    elif KIND == "segments":
        same = tl.load(extra_ptr + rows)[:, None] == tl.load(extra_ptr + columns)[None, :]
        scores = tl.where(same & (distance >= 0), scores, -float("inf"))
    elif KIND == "bias":
        scores += tl.load(extra_ptr + rows[:, None] * length + columns[None, :]).to(tl.float32)
    elif KIND == "cap":
        scores = amount * (2 * tl.sigmoid(2 * scores / amount) - 1)
        scores = tl.where(distance >= 0, scores, -float("inf"))
    elif KIND != "full":
        scores = tl.where(distance >= 0, scores, -float("inf"))
    return scores


@jit
def exp_attention(
    q_ptr, k_ptr, v_ptr, out_ptr, stride_h, stride_l, length, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr,
):  # fmt: skip
    """By `tl.exp`, with the mask's alternatives exchanged and a finite lowest score."""
    start = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * stride_h
    rows, inner = start + tl.arange(0, BLOCK_M), tl.arange(0, HEAD)
    q = tl.load(q_ptr + head + rows[:, None] * stride_l + inner[None, :],
                mask=rows[:, None] < length, other=0.0)  # fmt: skip
    top = tl.full((BLOCK_M,), -1.0e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD), tl.float32)
    for j in range(0, min(start + BLOCK_M, length), BLOCK_N):
        columns = j + tl.arange(0, BLOCK_N)
        o = head + columns[:, None] * stride_l + inner[None, :]
        k = tl.load(k_ptr + o, mask=columns[:, None] < length, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(columns[None, :] > rows[:, None], -1.0e30, scores)
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(v_ptr + o, mask=columns[:, None] < length, other=0.0)
        acc = acc * shrink[:, None]
        acc += tl.dot(weights.to(v.dtype), v)
        top = higher
    tl.store(out_ptr + head + rows[:, None] * stride_l + inner[None, :],
             (acc / total[:, None]).to(tl.float16), mask=rows[:, None] < length)  # fmt: skip


@jit
def two_loops_attention(
    q_ptr, k_ptr, v_ptr, out_ptr, stride_h, stride_l, length, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, CARRIED: tl.constexpr,
):  # fmt: skip
    """Blocks below the diagonal, then those on it with an additive mask. CARRIED: pointers advance
    from the first loop into the second."""
    start = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * stride_h
    rows, inner = start + tl.arange(0, BLOCK_M), tl.arange(0, HEAD)
    q = tl.load(q_ptr + head + rows[:, None] * stride_l + inner[None, :])
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32) + 1.0
    acc = tl.zeros((BLOCK_M, HEAD), tl.float32)
    lanes = tl.arange(0, BLOCK_N)
    k_ptrs = k_ptr + head + lanes[:, None] * stride_l + inner[None, :]
    v_ptrs = v_ptr + head + lanes[:, None] * stride_l + inner[None, :]
    for stage in tl.static_range(2):
        for j in range(start * stage, start + BLOCK_M * stage, BLOCK_N):
            k = tl.load(k_ptrs) if CARRIED else tl.load(k_ptrs + j * stride_l)
            scores = tl.dot(q, tl.trans(k)) * scale
            if stage == 1:
                mask = rows[:, None] >= (j + lanes)[None, :]
                scores = scores + tl.where(mask, 0, -1.0e6)
            higher = tl.maximum(top, tl.max(scores, 1))
            weights = tl.exp2(scores - higher[:, None])
            shrink = tl.exp2(top - higher)
            total = total * shrink + tl.sum(weights, 1)
            acc = acc * shrink[:, None]
            v = tl.load(v_ptrs) if CARRIED else tl.load(v_ptrs + j * stride_l)
            acc = tl.dot(weights.to(tl.float16), v, acc)
            top = higher
            if CARRIED:
                k_ptrs += BLOCK_N * stride_l
                v_ptrs += BLOCK_N * stride_l
    tl.store(out_ptr + head + rows[:, None] * stride_l + inner[None, :],
             (acc / total[:, None]).to(tl.float16))  # fmt: skip


def _attention(label: str, kind: str, head: int, m: int = 128, n: int = 128, warps: int = 8,
               stages: int = 2):  # fmt: skip
    extra = {"segments": "*i32", "bias": "*fp16"}.get(kind, "*fp32")
    types = f"*fp16 *fp16 *fp16 *fp16 {extra} i32/16 i32/16 i32/16 fp32 fp32"
    words = {"BLOCK_M": m, "BLOCK_N": n, "HEAD": head, "KIND": kind}
    return case(label, attention, types, **words, num_warps=warps, num_stages=stages)


_TYPES = "*fp16 *fp16 *fp16 *fp16 i32/16 i32/16 i32/16 fp32"
_WORDS = {"BLOCK_M": 128, "BLOCK_N": 128, "HEAD": 128, "num_warps": 8, "num_stages": 2}
CASES = (
    _attention("full 128", "full", 128),
    _attention("causal 128", "causal", 128),
    _attention("causal 64", "causal", 64),
    _attention("causal 256", "causal", 256, n=64),
    _attention("causal 128, 128x64, 4 warps", "causal", 128, n=64, warps=4, stages=3),
    _attention("causal 128, 64x64, 4 warps", "causal", 128, m=64, n=64, warps=4),
    case("tl.exp, other where", exp_attention, _TYPES, **_WORDS),
    *(
        _attention(kind, kind, 128)
        for kind in ("cap", "additive", "alibi", "window", "segments", "dropout", "bias")
    ),
    case("two loops, pointers", two_loops_attention, _TYPES, **_WORDS, CARRIED=True),
    case("two loops, indices", two_loops_attention, _TYPES, **_WORDS, CARRIED=False),
)  # fmt: skip
