"""Matrices that loops carry lie as memory holds what they take in."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
import tilewright.language as tl


@tw.jit
def carried_kernel(
    x, out, rows, across, down, X: tl.constexpr, R: tl.constexpr, MULTIPLIED: tl.constexpr
):
    i, j = tl.arange(0, X)[:, None], tl.arange(0, R)[None, :]
    total = tl.zeros((X, R), tl.float32)
    for start in range(0, rows, R):
        total += tl.load(x + i * across + (start + j) * down)
    if MULTIPLIED:
        total = tl.dot(total, tl.trans(total))
        tl.store(out + i * X + tl.arange(0, X)[None, :], total)
    else:
        tl.store(out + tl.arange(0, X), tl.sum(total, 1))


@pytest.mark.parametrize(("across", "down"), [(1, 32), (128, 1)])
@pytest.mark.parametrize("multiplied", [False, True])
def test_carried_matrices_in_either_order(across: int, down: int, multiplied: bool):
    x = np.random.default_rng(1).standard_normal(32 * 128).astype(np.float32)
    out = np.zeros((32, 32) if multiplied else 32, np.float32)
    kernel = carried_kernel[(1,)](x, out, 128, across, down, X=32, R=16, MULTIPLIED=multiplied)
    tile = x.reshape(128, 32).T if across == 1 else x.reshape(32, 128)
    expected = tile.astype(np.float64).reshape(32, 8, 16).sum(1)
    expected = expected @ expected.T if multiplied else expected.sum(1)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    if not multiplied:
        assert "masked.gather" not in kernel.asm["llir"]
        assert "masked.scatter" not in kernel.asm["llir"]
