"""Blocks of numbers as codes of 4 bits, two in a byte, and back.

After bitsandbytes-foundation/bitsandbytes, `bitsandbytes/backends/triton/kernels_4bit.py`:
constexprs computed in the kernel, reductions of reshaped tiles, trees of `where`, `clamp`, `split`
of an axis of two, numbers written in binary, `interleave`, tables looked up by loads with an
eviction policy, and launches by keywords alone.
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


CODES = [
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
]  # fmt: skip


@triton.jit
def quantize_kernel(
    a_ptr, largest_ptr, out_ptr, n, BLOCK: tl.constexpr, PAIRS_OF_BLOCKS: tl.constexpr
):
    BLOCKS: tl.constexpr = PAIRS_OF_BLOCKS * 2
    first = tl.program_id(0) * BLOCKS
    at = first * BLOCK + tl.arange(0, BLOCKS * BLOCK)
    a = tl.reshape(tl.load(a_ptr + at, mask=at < n, other=0.0), (BLOCKS, BLOCK))
    largest = tl.max(tl.abs(a), axis=1)
    tl.store(largest_ptr + first + tl.arange(0, BLOCKS), largest)
    a = tl.clamp(a / largest[:, None], -1.0, 1.0)
    code = tl.where(
        a > 0.04,
        tl.where(
            a > 0.389,
            tl.where(
                a > 0.642,
                tl.where(a > 0.861, 0b1111, 0b1110),
                tl.where(a > 0.501, 0b1101, 0b1100),
            ),
            tl.where(
                a > 0.203,
                tl.where(a > 0.292, 0b1011, 0b1010),
                tl.where(a > 0.12, 0b1001, 0b1000),
            ),
        ),
        tl.where(
            a > -0.34,
            tl.where(
                a > -0.138,
                tl.where(a > -0.0455, 0b0111, 0b0110),
                tl.where(a > -0.235, 0b0101, 0b0100),
            ),
            tl.where(
                a > -0.61,
                tl.where(a > -0.46, 0b0011, 0b0010),
                tl.where(a > -0.848, 0b0001, 0b0000),
            ),
        ),
    )
    left, right = code.to(tl.uint8).reshape((BLOCKS, BLOCK // 2, 2)).split()
    both = tl.reshape(left << 4 | (right & 0xF), (BLOCK * PAIRS_OF_BLOCKS,))
    to = first * BLOCK // 2 + tl.arange(0, PAIRS_OF_BLOCKS * BLOCK)
    tl.store(out_ptr + to, both, mask=to < (n - n // 2))


@triton.jit
def values_of(both, at, table_ptr, largest_ptr, pairs, BLOCK: tl.constexpr):
    HALF: tl.constexpr = BLOCK // 2
    largest = tl.load(
        largest_ptr + at // HALF, mask=at < pairs, other=1.0, eviction_policy="evict_last"
    )
    left = tl.load(table_ptr + (both >> 4), eviction_policy="evict_last") * largest
    right = tl.load(table_ptr + (both & 0xF), eviction_policy="evict_last") * largest
    return tl.interleave(left, right)


@triton.jit
def dequantize_kernel(
    codes_ptr, out_ptr, table_ptr, largest_ptr, pairs, n, BLOCK: tl.constexpr, SIZE: tl.constexpr
):
    first = tl.program_id(axis=0) * SIZE
    at = first + tl.arange(0, SIZE)
    both = tl.load(codes_ptr + at, at < pairs, other=0, eviction_policy="evict_first")
    values = values_of(
        both=both, at=at, table_ptr=table_ptr, largest_ptr=largest_ptr, pairs=pairs, BLOCK=BLOCK
    )
    to = first * 2 + tl.arange(0, SIZE * 2)
    tl.store(out_ptr + to, values, to < n)


def test_codes_are_the_nearest_values(device: str) -> None:
    n, block, pairs_of_blocks = 301, 16, 4
    x = torch.randn(n, device=device)
    blocks = -(-triton.cdiv(n, block) // (2 * pairs_of_blocks)) * 2 * pairs_of_blocks
    largest = torch.zeros(blocks, device=device)
    codes = torch.empty((n + 1) // 2, dtype=torch.uint8, device=device)
    grid = (blocks // (2 * pairs_of_blocks),)
    quantize_kernel[grid](
        a_ptr=x, largest_ptr=largest, out_ptr=codes, n=n, BLOCK=block,
        PAIRS_OF_BLOCKS=pairs_of_blocks,
    )  # fmt: skip
    padded = torch.nn.functional.pad(x, (0, blocks * block - n)).view(blocks, block).double()
    torch.testing.assert_close(largest.double(), padded.abs().amax(1), rtol=0, atol=0)
    table = torch.tensor(CODES, device=device)
    out = torch.empty(n, device=device)
    dequantize_kernel[(triton.cdiv(codes.numel(), 32),)](
        codes, out, table, largest, codes.numel(), n, BLOCK=block, SIZE=32
    )
    scale = largest.double().repeat_interleave(block)[:n]
    errors = (scale[:, None] * table.double() - x.double()[:, None]).abs()
    mine = (out.double() - x.double()).abs()
    # the limits between codes are rounded to three digits
    assert (mine <= errors.amin(1) + 1e-3 * scale).all()
    assert torch.isin(
        (out / scale).double().round(decimals=4), table.double().round(decimals=4)
    ).all()
