"""Atomic read-modify-write ops: results in memory, what they return, contention."""

from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.data import BFLOAT16, FLOATS, assert_same, normals
from tests.kernels.devices import Device
from tilewright import cdiv, jit

WORDS = ["int32", "uint32", "int64", "uint64"]
KINDS = {
    "add": (np.add, [*WORDS, *FLOATS]),
    "max": (np.maximum, [*WORDS, *FLOATS]),
    "min": (np.minimum, [*WORDS, *FLOATS]),
    "and": (np.bitwise_and, WORDS),
    "or": (np.bitwise_or, WORDS),
    "xor": (np.bitwise_xor, WORDS),
    "xchg": (lambda old, new: new, [*WORDS, "float32", "float64"]),
}


@jit
def atomic_kernel(target, values, before, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(values + i, mask=m)
    p = target + i
    if KIND == "add":
        old = tl.atomic_add(p, v, mask=m)
    elif KIND == "max":
        old = tl.atomic_max(p, v, mask=m)
    elif KIND == "min":
        old = tl.atomic_min(p, v, mask=m)
    elif KIND == "and":
        old = tl.atomic_and(p, v, mask=m)
    elif KIND == "or":
        old = tl.atomic_or(p, v, mask=m)
    elif KIND == "xor":
        old = tl.atomic_xor(p, v, mask=m)
    else:
        old = tl.atomic_xchg(p, v, mask=m)
    tl.store(before + i, old, mask=m)


@pytest.mark.parametrize(
    ("kind", "dtype"), [(k, d) for k, (_, types) in KINDS.items() for d in types], ids=str
)
def test_result_and_what_was_there(device: Device, rng: np.random.Generator, kind: str, dtype: Any):
    x, y = normals(rng, 100, dtype), normals(rng, 100, dtype)
    target, before = device.array(x), device.empty(100, dtype)
    device.run(atomic_kernel, (4,), target, device.array(y), before, 100, KIND=kind, BLOCK=32)
    reference = KINDS[kind][0]
    if np.dtype(dtype) == BFLOAT16:
        expected = reference(x.astype(np.float32), y.astype(np.float32)).astype(dtype)
    else:
        expected = reference(x, y)
    assert_same(before, x)
    assert_same(target, expected)


@jit
def vector_add_kernel(target, values, before, n, SEM: tl.constexpr, KEPT: tl.constexpr):
    i = tl.program_id(0) * 512 + tl.arange(0, 512)
    old = tl.atomic_add(target + i % 1024, tl.load(values + i), mask=i % 1024 < n, sem=SEM)
    if KEPT:
        tl.store(before + i, old, mask=i % 1024 < n)


@pytest.mark.parametrize("sem", ["relaxed", "acq_rel"])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", BFLOAT16], ids=str)
def test_additions_to_consecutive_elements(
    device: Device, rng: np.random.Generator, dtype: Any, kept: bool, sem: str
):
    x = rng.integers(-8, 9, 1024).astype(dtype)
    values = rng.integers(-8, 9, 2048).astype(dtype)
    n = 1008
    target, before = device.array(x), device.array(np.full(2048, 99, dtype))
    device.run(vector_add_kernel, (4,), target, device.array(values), before, n, SEM=sem, KEPT=kept)
    inside = np.arange(1024) < n
    both = values.reshape(2, 1024).astype(np.float32)
    expected = x.astype(np.float32) + np.where(inside, both.sum(0), 0)
    assert_same(target, expected.astype(dtype))
    found = before.reshape(2, 1024).astype(np.float32)
    if kept:  # one of the two programs of an element came first
        first = np.minimum(*np.abs(found - x.astype(np.float32)))
        assert (first[inside] == 0).all()
    assert (found[:, ~inside] == 99).all()


@jit
def histogram_kernel(x, counts, total, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.atomic_add(counts + v, 1, mask=i < n)
    tl.atomic_add(total, tl.sum(tl.where(i < n, v, 0)), sem="relaxed", scope="gpu")


def test_lanes_and_programs_that_meet(device: Device, rng: np.random.Generator):
    n = device.pick(500, 20_000)
    x = rng.integers(0, 10, n).astype(np.int32)
    counts, total = device.array(np.zeros(10, np.int32)), device.array(np.zeros(1, np.int32))
    device.run(histogram_kernel, (cdiv(n, 64),), device.array(x), counts, total, n, BLOCK=64)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=10))
    assert total[0] == x.sum()


@jit
def float_sum_kernel(x, total, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total + i % 3, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", BFLOAT16], ids=str)
def test_float_sums_lose_nothing(device: Device, rng: np.random.Generator, dtype: Any):
    """Whole numbers, whose sums are exact in every order."""
    x = rng.integers(-1, 2, 100).astype(dtype)
    total = device.array(np.zeros(3, dtype))
    device.run(float_sum_kernel, (4,), device.array(x), total, 100, BLOCK=32)
    expected = [x.astype(np.float64)[k::3].sum() for k in range(3)]
    np.testing.assert_array_equal(total.astype(np.float64), expected)


@jit
def ticket_kernel(counter, tickets):
    ticket = tl.atomic_add(counter, 1)
    tl.store(tickets + ticket, tl.program_id(0))


def test_scalar_atomics_hand_out_each_number_once(device: Device):
    n = device.pick(20, 1000)
    counter, tickets = device.array(np.zeros(1, np.int32)), device.empty(n, np.int32)
    device.run(ticket_kernel, (n,), counter, tickets)
    assert counter[0] == n
    assert sorted(tickets) == list(range(n))


@jit
def swap_if_equal_kernel(target, expected, new, before, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    old = tl.atomic_cas(target + i, tl.load(expected + i), tl.load(new + i))
    tl.store(before + i, old)


@pytest.mark.parametrize("dtype", [*WORDS, "int16", "uint16", "float32", "float64"])
def test_compare_and_swap(device: Device, rng: np.random.Generator, dtype: str):
    x, new = rng.integers(0, 3, (2, 32)).astype(dtype)
    expected = rng.integers(0, 3, 32).astype(dtype)
    target, before = device.array(x), device.empty(32, dtype)
    arrays = device.array(expected), device.array(new)
    device.run(swap_if_equal_kernel, (1,), target, *arrays, before, BLOCK=32)
    assert_same(before, x)
    assert_same(target, np.where(x == expected, new, x))


@jit
def spin_lock_kernel(lock, shared, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    tl.store(shared + i, tl.load(shared + i, volatile=True) + i)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="release")


def test_a_lock_protects_plain_memory(device: Device):
    n = device.pick(5, 200)
    lock, shared = device.array(np.zeros(1, np.int32)), device.array(np.zeros(16, np.int32))
    device.run(spin_lock_kernel, (n,), lock, shared, BLOCK=16)
    assert shared.tolist() == [n * i for i in range(16)]
    assert lock[0] == 0


@jit
def argmin_kernel(x, best, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=float("inf"))
    tl.atomic_min(best, tl.min(v, 0))
    tl.atomic_max(best + 1, tl.max(tl.where(i < n, v, -float("inf")), 0))


def test_float_extrema_of_all_programs(device: Device, rng: np.random.Generator):
    x = rng.normal(size=200).astype(np.float32)
    for values in (x, np.abs(x) + 1, -np.abs(x) - 1):
        best = device.array(np.array([np.inf, -np.inf], np.float32))
        device.run(argmin_kernel, (4,), device.array(values), best, 200, BLOCK=64)
        assert best.tolist() == [values.min(), values.max()]


# ---- every word for the order and the extent -----------------------------------------------------

SEMS = ["acquire", "release", "acq_rel", "relaxed"]
SCOPES = ["gpu", "cta", "sys"]


@jit
def ordered_kernel(numbers, seen, SEM: tl.constexpr, SCOPE: tl.constexpr):
    i = tl.arange(0, 16)
    one = i == tl.program_id(0)
    tl.atomic_add(numbers + i, 5, one, sem=SEM, scope=SCOPE)
    tl.atomic_max(numbers + i, 3, one, sem=SEM, scope=SCOPE)
    tl.atomic_min(numbers + i, 9, one, sem=SEM, scope=SCOPE)
    tl.atomic_or(numbers + i, 16, one, sem=SEM, scope=SCOPE)
    tl.atomic_and(numbers + i, 29, one, sem=SEM, scope=SCOPE)
    tl.atomic_xor(numbers + i, 7, one, sem=SEM, scope=SCOPE)
    old = tl.atomic_xchg(numbers + i, 100 + i, one, sem=SEM, scope=SCOPE)
    tl.store(seen + i, old, one)
    tl.atomic_cas(numbers + tl.program_id(0), 103, 0, sem=SEM, scope=SCOPE)


@pytest.mark.parametrize("sem", SEMS)
@pytest.mark.parametrize("scope", SCOPES)
def test_every_order_and_scope(device: Device, sem: str, scope: str):
    numbers = device.array(np.arange(16, dtype=np.int32))
    seen = device.empty(16, np.int32)
    device.run(ordered_kernel, (16,), numbers, seen, SEM=sem, SCOPE=scope)
    start = np.arange(16) + 5
    np.testing.assert_array_equal(seen, ((np.clip(start, 3, 9) | 16) & 29) ^ 7)
    ends = 100 + np.arange(16)
    np.testing.assert_array_equal(numbers, np.where(ends == 103, 0, ends))


@jit
def accesses_kernel(x, out, n, SEM: tl.constexpr, OUT: tl.constexpr, SCOPE: tl.constexpr):
    i = tl.arange(0, 64)
    loaded = tl.atomic_load(x + i, i < n, sem=SEM, scope=SCOPE)
    tl.atomic_store(out + i, loaded, mask=i < n, sem=OUT, scope=SCOPE)
    tl.atomic_store(out + n, tl.atomic_load(x) + 1)


@pytest.mark.parametrize("dtype", ["int16", "uint32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize(
    "words", [("acquire", "release", "gpu"), ("relaxed", "relaxed", "sys"), (None, None, "cta")]
)
def test_atomic_loads_and_stores(
    device: Device, rng: np.random.Generator, dtype: str, words: tuple[str, str, str]
):
    before, after, scope = words
    x, out = device.array(normals(rng, 51, dtype)), device.empty(51, dtype)
    device.run(accesses_kernel, (1,), x, out, 50, SEM=before, OUT=after, SCOPE=scope)
    assert_same(out, np.append(x[:50], x[0] + np.dtype(dtype).type(1)).astype(dtype))


@jit
def polling_kernel(x, out, TIMEOUT: tl.constexpr):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.atomic_poll(x + i, 3, timeout_ns=TIMEOUT))
    tl.store(out + 16, tl.atomic_poll(x, 3, sem="relaxed", scope="sys"))


@pytest.mark.parametrize("timeout", [0, 1000, None])
def test_polls_say_where_the_number_came(device: Device, timeout: int | None):
    x = np.full(16, 3, np.int32)
    if timeout is not None:
        x[5:9] = 4
    out = device.array(np.zeros(17, np.int8))
    device.run(polling_kernel, (1,), device.array(x), out, TIMEOUT=timeout)
    np.testing.assert_array_equal(out, np.append(x == 3, True))


@jit
def handed_over_kernel(data, flag, out):
    if tl.program_id(0) == 0:
        tl.store(data + tl.arange(0, 32), tl.arange(0, 32) * 3)
        tl.atomic_store(flag, 1)
    else:
        tl.atomic_poll(flag, 1)
        tl.store(out + tl.arange(0, 32), tl.load(data + tl.arange(0, 32)) + 1)


def test_a_store_that_releases_hands_data_to_a_poll_that_acquires(device: Device):
    data, flag = device.array(np.zeros(32, np.int32)), device.array(np.zeros(1, np.int32))
    out = device.empty(32, np.int32)
    device.run(handed_over_kernel, (2,), data, flag, out)
    np.testing.assert_array_equal(out, np.arange(32) * 3 + 1)
