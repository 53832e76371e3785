"""Launches whose arguments native dispatch passes as words, without Python objects."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tilewright as tw
import tilewright.language as tl
from tilewright.support import errors

BLOCK = 64


@tw.jit
def affine_kernel(x_ptr, out_ptr, scale, shift, n, negate, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n) * scale + shift
    tl.store(out_ptr + at, tl.where(negate, -x, x), mask=at < n)


@tw.jit(debug=True)
def checked_kernel(x_ptr, limit):
    tl.device_assert(tl.load(x_ptr) < limit, "too large")


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_kind_of_word_arrives(dtype: type, negate: bool):
    x = np.arange(200, dtype=dtype)
    for scale, shift, n in [(0.5, 3, 200), (1e300, -(2**31), 7), (-2.25, 2**31 - 1, 64)]:
        out = np.full(256, -1, dtype)
        with np.errstate(all="ignore"):
            single = np.float32(scale)
            expected = (x * single + shift).astype(dtype)[:n]
        for _ in range(4):  # the first two are made by Python
            affine_kernel[(4,)](x, out, scale, shift, n, negate, BLOCK=BLOCK)
            np.testing.assert_allclose(out[:n], -expected if negate else expected, rtol=1e-6)
        assert (out[n:] == -1).all()


def test_a_failed_assertion_reaches_the_launch_that_failed():
    x = np.array([3], np.int32)
    for _ in range(4):
        checked_kernel[(1,)](x, 5)
    x[0] = 9
    for _ in range(2):
        with pytest.raises(errors.DeviceAssertionFailure, match="too large"):
            checked_kernel[(1,)](x, 5)
    x[0] = 4
    assert checked_kernel[(1,)](x, 5) is not None


def test_the_pool_gets_the_words_of_a_launch_that_has_an_entry(monkeypatch: pytest.MonkeyPatch):
    """After two launches none is made by the launcher's method."""
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    for _ in range(2):
        affine_kernel[(1,)](x, out, 2.0, 1, 64, False, BLOCK=BLOCK)
    kernel = affine_kernel[(1,)](x, out, 2.0, 1, 64, False, BLOCK=BLOCK)
    monkeypatch.setattr(type(kernel.launcher), "launch", None)
    x += 1
    affine_kernel[(1,)](x, out, 2.0, 1, 64, False, BLOCK=BLOCK)
    np.testing.assert_array_equal(out, 2 * x + 1)


@tw.jit
def slow_kernel(out_ptr, steps):
    total = 1.0
    for _ in range(steps):  # each waits for the one before it
        total = total * 0.5 + 1.0
    tl.store(out_ptr + tl.program_id(0), total)


def test_small_grids_do_not_wait_for_the_pool_with_the_gil():
    """The owner of the pool takes the GIL each 50 ms, to look for signals."""
    x, out, slow = np.ones(64, np.float32), np.zeros(64, np.float32), np.zeros(64, np.float32)

    def small() -> None:
        affine_kernel[(1,)](x, out, 2.0, 1, 64, False, BLOCK=BLOCK)

    for _ in range(3):
        small()
        slow_kernel[(64,)](slow, 10)
    owner = threading.Thread(target=lambda: slow_kernel[(64,)](slow, 2_000_000))
    owner.start()
    launches = 0
    while owner.is_alive() or not launches:
        out[:] = 0
        small()
        launches += 1
        assert (out == 3).all()
    assert (slow == 2).all()
