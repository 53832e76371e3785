"""A release that comes too early is seen by the emulator: a barrier before it is missed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.emulator.memory import EmulationError
from tests.emulator.test_faults import afterwards, barriers
from tests.kernels.devices import EmulatedNvidia
from tilewright import jit
from tilewright.ir import Rewriter
from tilewright.support import settings


def stores_then_sets(x, out, flag):
    i = tl.arange(0, 256)
    tl.store(out + i, tl.load(x + i) + 1)
    tl.atomic_store(flag, 1, sem="release", scope="sys")


def loads_then_frees(x, out, flag):
    i = tl.arange(0, 256)
    total = tl.load(x + i) + 1
    tl.atomic_xchg(flag + tl.arange(0, 2), 0, sem="release")
    tl.store(out + i, total)


def stores_then_swaps(x, out, flag):
    i = tl.arange(0, 256)
    tl.store(out + i, tl.load(x + i) + 1)
    tl.atomic_cas(flag, 0, 1)


KERNELS = [stores_then_sets, loads_then_frees, stores_then_swaps]


def run(kernel: Any) -> Any:
    device = EmulatedNvidia()
    x, out = (device.array(np.arange(256) * n, np.float32) for n in (1, 0))
    flag = device.array(np.zeros(2), np.int32)
    with settings().cache.scope(always_compile=True):
        device.run(jit(kernel), (1,), x, out, flag)
    return out


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_a_release_needs_its_barrier(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    with afterwards(monkeypatch, lambda function: found.append(len(barriers(function)))):
        np.testing.assert_array_equal(run(kernel), np.arange(256) + 1)
    assert found[0] >= 1
    without = lambda function: Rewriter.erase(barriers(function)[0])  # noqa: E731
    with afterwards(monkeypatch, without), pytest.raises(EmulationError, match="a release before"):
        run(kernel)
