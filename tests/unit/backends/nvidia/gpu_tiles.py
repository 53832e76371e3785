"""Kernels in the language for the tests that run on a GPU; the children that lose a context import
them from here."""

from __future__ import annotations

import tilewright.language as tl
from tilewright import jit


@jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@jit
def tell_programs(out):
    """Adds 2 * the number of programs * (1 + i) to out[i], with a program that tells so twice."""
    i = tl.program_id(0)
    for _ in range(2):
        tl.atomic_add(out + i, tl.num_programs(0) * (1 + i))


@jit
def copy_2d(x, out, rows, columns, xi, xj, oi, oj, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    j = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    inside = (i < rows) & (j < columns)
    tl.store(out + i * oi + j * oj, tl.load(x + i * xi + j * xj, inside), inside)


@jit
def matmul(a, b, out, K, N: tl.constexpr, STEP: tl.constexpr):
    """out = a @ b for row-major (N, K) @ (K, N), in one program."""
    i = tl.arange(0, N)
    acc = tl.zeros((N, N), tl.float32)
    for k in range(0, K, STEP):
        d = k + tl.arange(0, STEP)
        x = tl.load(a + i[:, None] * K + d[None, :])
        y = tl.load(b + d[:, None] * N + i[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(out + i[:, None] * N + i[None, :], acc)


@jit
def turned(x, out, N: tl.constexpr):
    """out = x from its end on: all of it goes through shared memory at once."""
    i = tl.arange(0, N)
    tl.store(out + i, tl.gather(tl.load(x + i), N - 1 - i, 0))


@jit
def multiply_add(x, y, z, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * tl.load(y + i) + tl.load(z + i))


@jit
def normalize(x, out, BLOCK: tl.constexpr):
    """Holds all its values in registers until their sum is known."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, v / tl.sum(v, 0))


@jit
def count_up(out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + i, tl.full((BLOCK,), 1, out.dtype.element_ty))


@jit
def far(out, offset):
    tl.store(out + offset, 1.0)
