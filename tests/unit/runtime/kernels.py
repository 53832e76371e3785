"""Kernels that the tests of the runtime launch."""

from __future__ import annotations

import tilewright.language as tl
from tilewright.runtime import JITFunction, jit


@jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


def new_empty() -> JITFunction:
    """A kernel of three arrays and four numbers that does nothing, without any variant yet."""

    @jit
    def empty(x, y, z, n, m, k, l):  # noqa: E741
        pass

    return empty


def new_value() -> JITFunction:
    """Stores a number, without any variant yet."""

    @jit
    def value(out, number):
        tl.store(out, number)

    return value
