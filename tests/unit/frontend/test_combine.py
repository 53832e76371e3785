"""Functions of reductions and scans only compute; no check of overflow makes them do more."""

# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright import jit


@jit
def adding(a, b):
    return a + b


@jit
def printing(a, b):
    tl.device_print("a", a)
    return a + b


@jit
def waiting(a, b):
    tl.debug_barrier()
    return a + b


@jit
def asserting(a, b):
    tl.device_assert(a > 0)
    return a + b


@jit
def reducing(p, F: tl.constexpr):
    tl.store(p, tl.reduce(tl.load(p + tl.arange(0, 8)), 0, F))


@jit
def scanning(p, F: tl.constexpr):
    i = tl.arange(0, 8)
    tl.store(p + i, tl.associative_scan(tl.load(p + i), 0, F))


@pytest.mark.parametrize("kernel", [reducing, scanning], ids=["reduce", "scan"])
@pytest.mark.parametrize("function", [printing, waiting, asserting])
def test_functions_may_have_effects(kernel: Any, function: Any, capfd: Any) -> None:
    x = np.ones(8, np.int32)
    kernel[(1,)](x, function, debug=True)
    assert x.tolist() == ([8] + [1] * 7 if kernel is reducing else [*range(1, 9)])
    pairs = 7 if kernel is reducing else 12
    assert capfd.readouterr().out.count("a: ") == (pairs if function is printing else 0)


@pytest.mark.parametrize("kernel", [reducing, scanning], ids=["reduce", "scan"])
def test_sums_of_integers_may_be_debugged(kernel: Any) -> None:
    x = np.ones(8, np.int32)
    kernel[(1,)](x, adding, debug=True)
    assert x[0 if kernel is reducing else 7] == 8
