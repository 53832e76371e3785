"""Attention of a few queries to keys and values found by a table, and to latent vectors."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit


@jit
def paged_attention(
    q_ptr, k_ptr, v_ptr, pages_ptr, lengths_ptr, out_ptr, stride_q, stride_page, stride_t, scale,
    ROWS: tl.constexpr, PAGE: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr,
    BY_TOKEN: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Query heads that share keys are rows of a dot. BY_TOKEN: the table has an entry for each
    token, not for each page."""
    sequence, kv_head = tl.program_id(0), tl.program_id(1)
    rows, inner = tl.arange(0, ROWS), tl.arange(0, HEAD)
    at = (sequence * tl.num_programs(1) + kv_head) * ROWS + rows
    q = tl.load(q_ptr + at[:, None] * stride_q + inner[None, :])
    length = tl.load(lengths_ptr + sequence)
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, HEAD), tl.float32)
    for j in range(0, length, BLOCK_N):
        columns = j + tl.arange(0, BLOCK_N)
        live = columns < length
        if BY_TOKEN:
            slot = tl.load(pages_ptr + sequence * WIDTH + columns, mask=live, other=0)
            o = slot[:, None] * stride_t + kv_head * HEAD + inner[None, :]
        else:
            page = tl.load(pages_ptr + sequence * WIDTH + j // PAGE)
            row = j % PAGE + tl.arange(0, BLOCK_N)
            o = page * stride_page + row[:, None] * stride_t + kv_head * HEAD + inner[None, :]
        k = tl.load(k_ptr + o, mask=live[:, None], other=0.0)
        scores = tl.where(live[None, :], tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp2(top - higher)
        weights = tl.exp2(scores - higher[:, None])
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(v_ptr + o, mask=live[:, None], other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        top = higher
    tl.store(
        out_ptr + at[:, None] * stride_q + inner[None, :], (acc / total[:, None]).to(tl.float16)
    )


@jit
def latent_attention(
    q_ptr, cache_ptr, slots_ptr, out_ptr, length, stride_q, stride_c, stride_o, scale,
    ROWS: tl.constexpr, BLOCK_N: tl.constexpr, LATENT: tl.constexpr, ROTARY: tl.constexpr,
):  # fmt: skip
    """Keys are a latent vector, which is the value as well, and a rotary part."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inner, rotary = tl.arange(0, LATENT), LATENT + tl.arange(0, ROTARY)
    q = tl.load(q_ptr + rows[:, None] * stride_q + inner[None, :])
    q_rotary = tl.load(q_ptr + rows[:, None] * stride_q + rotary[None, :])
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, LATENT), tl.float32)
    for j in range(0, length, BLOCK_N):
        slot = tl.load(slots_ptr + j + tl.arange(0, BLOCK_N))
        latent = tl.load(cache_ptr + slot[:, None] * stride_c + inner[None, :])
        k_rotary = tl.load(cache_ptr + slot[:, None] * stride_c + rotary[None, :])
        scores = tl.dot(q, tl.trans(latent))
        scores = tl.dot(q_rotary, tl.trans(k_rotary), scores) * scale
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp2(top - higher)
        weights = tl.exp2(scores - higher[:, None])
        total = total * shrink + tl.sum(weights, 1)
        acc = tl.dot(weights.to(latent.dtype), latent, acc * shrink[:, None])
        top = higher
    tl.store(out_ptr + rows[:, None] * stride_o + inner[None, :],
             (acc / total[:, None]).to(tl.float16))  # fmt: skip


def _paged(label: str, rows: int, page: int, by_token: bool):
    words = {"ROWS": rows, "PAGE": page, "BLOCK_N": min(page, 64), "HEAD": 128,
             "BY_TOKEN": by_token, "WIDTH": 1024, "num_warps": 4, "num_stages": 3}  # fmt: skip
    types = "*fp16 *fp16 *fp16 *i32 *i32 *fp16 i32/16 i32/16 i32/16 fp32"
    return case(label, paged_attention, types, **words)


CASES = (
    _paged("pages of 16, 16 rows", 16, 16, False),
    _paged("pages of 64, 64 rows", 64, 64, False),
    _paged("slots, 64 rows", 64, 64, True),
    case("latent 512 + 64", latent_attention,
         "*bf16 *bf16 *i32 *fp16 i32 i32/16 i32/16 i32/16 fp32",
         ROWS=64, BLOCK_N=32, LATENT=512, ROTARY=64, num_warps=8, num_stages=2),
)  # fmt: skip
