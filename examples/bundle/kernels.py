"""Kernels of the bundle `numbers`, which the programs in C, C++ and Rust here use."""

import tilewright
import tilewright.language as tl


@tilewright.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@tilewright.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    """Of each row of a matrix."""
    row = tl.program_id(0) * columns
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row + i, mask=i < columns, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row + i, powers / tl.sum(powers, 0), mask=i < columns)
