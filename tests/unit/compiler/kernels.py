"""Kernels that the tests of the compiler compile."""

from __future__ import annotations

import tilewright.language as tl
from tilewright.language import device_function


@device_function
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


ADD = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}


@device_function
def pair(out, items, scale):
    tl.store(out, (items[0] + items[1]) * scale)
