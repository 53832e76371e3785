"""Sums of all before, in one pass: programs look back at what those before them have published.

After pytorch/pytorch, `torch/_inductor/runtime/triton_helpers.py`: values and flags packed into one
word by bitcasts and shifts, published by `atomic_xchg` and read by `atomic_add` of nothing, a
`while` that spins inside of another one, a variable that is a Python bool before the loop and set
in it, and functions as arguments.
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
def add(a, b):
    return a + b


@triton.jit
def pack(value, flag, UINT: tl.constexpr, WORD: tl.constexpr):
    UINT = tl.core._unwrap_if_constexpr(UINT)  # noqa: N806
    bits = UINT.primitive_bitwidth
    return flag.to(WORD) | (value.to(UINT, bitcast=True).to(WORD) << bits)


@triton.jit
def value_of(word, KIND, UINT):
    KIND = tl.core._unwrap_if_constexpr(KIND)  # noqa: N806
    UINT = tl.core._unwrap_if_constexpr(UINT)  # noqa: N806
    return (word >> UINT.primitive_bitwidth).to(UINT).to(KIND, bitcast=True)


@triton.jit
def flag_of(word, UINT):
    return word.to(UINT)


@triton.jit
def all_before(scratch, mine, index, combine, UINT: tl.constexpr, WORD: tl.constexpr):
    kind = mine.dtype
    word = pack(mine, tl.full(mine.shape, 1, UINT), UINT, WORD)
    if index > 0:
        tl.atomic_xchg(scratch + index, word, sem="relaxed")
    before = tl.zeros([], kind)
    known = False
    target = index - 1
    while target >= 0:
        flag = tl.full([], 0, UINT)
        while flag == 0:
            word = tl.atomic_add(scratch + target, 0, sem="relaxed")
            flag = flag_of(word, UINT)
        value = value_of(word, kind, UINT)
        if known:
            before = combine(value, before)
        else:
            before = value
            known = True
        if flag == 2:
            target = -1
        else:
            target = target - 1
    if known:
        all_so_far = combine(before, mine)
    else:
        all_so_far = mine
    word = pack(all_so_far, tl.full([], 2, UINT), UINT, WORD)
    tl.atomic_xchg(scratch + index, word, sem="relaxed")
    return before


@triton.jit
def scan_kernel(
    x_ptr, y_ptr, scratch, n, combine: tl.constexpr, UINT: tl.constexpr, WORD: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    block, row = tl.program_id(0), tl.program_id(1)
    column = block * BLOCK + tl.arange(0, BLOCK)[:]
    x = tl.load(x_ptr + (column + n * row), column < n, other=0)
    mine = tl.reduce(x, 0, combine)
    before = all_before(
        scratch.to(tl.pointer_type(WORD)) + row * tl.num_programs(0), mine, block, combine,
        UINT=UINT, WORD=WORD,
    )  # fmt: skip
    inside = tl.associative_scan(x, 0, combine)
    y = tl.where(block > 0, combine(before, inside), inside)
    tl.store(y_ptr + (column + n * row), y, column < n)


def cumulated(x: Any, block: int, kinds: Any) -> Any:
    rows, n = x.shape
    blocks = triton.cdiv(n, block)
    y = torch.empty_like(x)
    scratch = torch.zeros(rows * blocks * 8, dtype=torch.uint8, device=x.device)
    scan_kernel[(blocks, rows)](x, y, scratch, n, add, *kinds, BLOCK=block)
    return y


@pytest.mark.parametrize("kind", ["float32", "int32", "float16"])
def test_programs_add_what_those_before_have_published(device: str, kind: str) -> None:
    x = torch.randn(2, 203, device=device) * 8
    x = x.round() if kind == "float16" else x
    x = x.to(getattr(torch, kind))
    kinds = (tl.uint16, tl.uint32) if kind == "float16" else (tl.uint32, tl.uint64)
    found = cumulated(x, 32, kinds)
    expected = x.double().cumsum(-1)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)
