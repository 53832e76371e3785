"""Kernels that the tests of the runtime launch."""

from __future__ import annotations

from typing import Any

import numpy as np

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


def new_increment(**options: Any) -> JITFunction:
    """A kernel that adds one to numbers, without any variant yet."""

    def add(x, out, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, i < n) + 1, i < n)

    return jit(**options)(add)


def launch_increment(kernel: Any, n: int = 5, **options: Any) -> Any:
    """The compiled kernel of a launch, or None; its results are right."""
    x, out = np.arange(n, dtype="f"), np.zeros(n, "f")
    compiled = kernel[(1,)](x, out, n, BLOCK=8, **options)
    if compiled is not None:
        np.testing.assert_array_equal(out, x + 1)
    return compiled


def title_of(kernel: JITFunction) -> str:
    """The name of a kernel in profilers."""
    code = kernel.fn.__code__
    return f"{kernel.__name__} ({code.co_filename}:{code.co_firstlineno})"


def new_value() -> JITFunction:
    """Stores a number, without any variant yet."""

    @jit
    def value(out, number):
        tl.store(out, number)

    return value
