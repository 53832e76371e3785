"""The orders of atomics as LLVM's; of the extents, a CPU has the largest alone."""

import os

import numpy as np
import pytest

import tilewright.language as tl
from tilewright import jit


@jit
def changed(x, SEM: tl.constexpr, SCOPE: tl.constexpr):
    tl.atomic_add(x, 1, sem=SEM, scope=SCOPE)
    tl.atomic_cas(x, 1, 2, sem=SEM, scope=SCOPE)


@jit
def accessed(x, y, SEM: tl.constexpr, OUT: tl.constexpr):
    tl.atomic_store(y, tl.atomic_load(x, sem=SEM), sem=OUT)


@pytest.mark.parametrize("scope", ["cta", "gpu", "sys"])
@pytest.mark.parametrize(
    ("sem", "order"),
    [
        ("relaxed", "monotonic monotonic"),
        ("acquire", "acquire acquire"),
        ("release", "release monotonic"),
        ("acq_rel", "acq_rel acquire"),
        (None, "acq_rel acquire"),
    ],
)
def test_changes(sem: str | None, order: str, scope: str):
    text = changed[(1,)](np.zeros(1, np.int32), SEM=sem, SCOPE=scope).asm["llir"]
    assert f"atomicrmw add ptr %arg0, i32 1 {order.split()[0]}" in text
    assert f"cmpxchg ptr %arg0, i32 1, i32 2 {order}" in text
    assert "syncscope" not in text


@pytest.mark.parametrize("sem", ["acquire", "relaxed"])
def test_loads_and_stores(sem: str):
    x, y = np.full(1, 7, np.int32), np.zeros(1, np.int32)
    out = "release" if sem == "acquire" else sem
    text = accessed[(1,)](x, y, SEM=sem, OUT=out).asm["llir"]
    orders = {"relaxed": "monotonic"}
    assert f"load atomic i32, ptr %arg0 {orders.get(sem, sem)}, align 4" in text
    assert f"ptr %arg1 {orders.get(out, out)}, align 4" in text and y[0] == 7


@jit
def waiting(flag, table):
    while tl.atomic_cas(flag, 1, 0, sem="acquire", scope="sys") != 1:
        pass
    while tl.atomic_load(flag) > 1:
        tl.atomic_add(table, 1)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no sched_yield")
def test_each_wait_yields_the_processor():
    flag, table = np.ones(1, np.int32), np.zeros(1, np.int32)
    text = waiting[(1,)](flag, table).asm["llir"]
    assert text.count("call i32 @sched_yield()") == 2 and flag[0] == 0
