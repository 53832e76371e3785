"""An empty kernel with 7 arguments, under both compilers."""

from __future__ import annotations

from typing import Any


def empty(a, b, c, i, j, k, n):
    pass


def ours() -> Any:
    import tilewright

    return tilewright.jit(empty)


def theirs() -> Any:
    import triton

    return triton.jit(empty)
