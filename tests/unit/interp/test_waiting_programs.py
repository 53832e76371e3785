"""Programs that wait for others, earlier or later ones, in both interpreters."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tilewright import jit
from tilewright.compiler import ASTSource
from tilewright.frontend.semantics import FrontendOptions
from tilewright.interp import run_function
from tilewright.ir import valid_kernel
from tilewright.support import errors

Kernel = Callable[..., Any]


def run_python(kernel: Any, grid: tuple[int], *arrays: Any, check: str = "bounds") -> None:
    made: Any = jit(kernel, interpret=True, check=check)
    made[grid](*arrays)


def run_ir(kernel: Any, grid: tuple[int], *arrays: Any) -> None:
    names = kernel.__code__.co_varnames[: len(arrays)]
    made: Any = jit(kernel)
    source = ASTSource(made, dict.fromkeys(names, "*i32"))
    run_function(valid_kernel(source.lower(FrontendOptions("cpu"))), arrays, grid)


RUNS = pytest.mark.parametrize("run", [run_python, run_ir])


def all_arrive_twice(counter, x, out):
    """Each program needs what all others have stored, and then what they make of it."""
    p, n = tl.program_id(0), tl.num_programs(0)
    tl.store(x + p, p + 1)
    tl.atomic_add(counter, 1)
    while tl.atomic_add(counter, 0) < n:
        pass
    left, right = tl.load(x + (p + n - 1) % n), tl.load(x + (p + 1) % n)
    tl.store(x + n + p, left + right)
    tl.atomic_add(counter, 1)
    while tl.load(counter, volatile=True) < 2 * n:
        pass
    total = 0
    for i in range(0, n):
        total += tl.load(x + n + i)
    tl.store(out + p, total)


def last_to_first(flag, x, out):
    """Each program adds to what its successor has handed over."""
    p, n = tl.program_id(0), tl.num_programs(0)
    got = p * 0
    if p + 1 < n:
        while tl.atomic_xchg(flag + p + 1, 0) == 0:
            pass
        got = tl.load(x + p + 1)
    tl.store(x + p, got + p)
    tl.atomic_xchg(flag + p, 1)
    tl.store(out + p, got)


def polls(flag, x, out):
    """Even programs wait for a tile of their successor, with and without a limit of time."""
    p, i = tl.program_id(0), tl.arange(0, 4)
    if p % 2 == 0:
        if p % 4 == 0:
            tl.atomic_poll(flag + p * 4 + 4 + i, 1, timeout_ns=30_000_000_000)
        else:
            tl.atomic_poll(flag + p * 4 + 4 + i, 1)
        tl.store(out + p, tl.load(x + p + 1))
    else:
        tl.store(x + p, p)
        tl.atomic_store(flag + p * 4 + i, 1)
        tl.store(out + p, -1)


def waits_by_plain_loads(flag, x, out):
    p = tl.program_id(0)
    if p == 0:
        while tl.load(flag) == 0:
            pass
    tl.store(flag, 1)
    tl.store(out + p, 7)


EXPECTED: list[tuple[Kernel, int, Callable[[int], Any]]] = [
    (all_arrive_twice, 7, lambda n: np.full(n, n * (n + 1))),
    (last_to_first, 9, lambda n: [sum(range(p + 1, n)) for p in range(n)]),
    (polls, 6, lambda n: [p + 1 if p % 2 == 0 else -1 for p in range(n)]),
    (waits_by_plain_loads, 3, lambda n: np.full(n, 7)),
]


@RUNS
@pytest.mark.parametrize(("kernel", "n", "right"), EXPECTED)
def test_programs_that_wait_for_later_ones_go_on(
    run: Callable[..., None], kernel: Kernel, n: int, right: Callable[[int], Any]
) -> None:
    flag, x, out = (np.zeros(size, np.int32) for size in (8 * n, 2 * n, n))
    run(kernel, (n,), flag, x, out)
    np.testing.assert_array_equal(out, right(n))


def never_released(lock, x):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(x + tl.program_id(0), 1)


def each_for_the_other(lock, x):
    p = tl.program_id(0)
    while tl.load(lock + 1 - p, volatile=True) == 0:
        pass
    tl.store(lock + p, 1)


@RUNS
@pytest.mark.parametrize(
    ("kernel", "n", "program", "element"),
    [(never_released, 3, 1, 0), (never_released, 2, 1, 0), (each_for_the_other, 2, 0, 1)],
)
def test_waiting_without_end_is_an_error(
    run: Callable[..., None], kernel: Kernel, n: int, program: int, element: int
) -> None:
    lock, x = np.zeros(2, np.int32), np.zeros(4, np.int32)
    with pytest.raises(errors.Deadlock) as caught:
        run(kernel, (n,), lock, x)
    text = str(caught.value)
    assert text.startswith(
        f"program ({program}, 0, 0) waits without end: it polls element {element} of argument "
        "'lock', which has 2 elements, and no program is left"
    )
    assert "while tl." in text and __file__ in text


def test_a_mistake_of_a_later_program_is_shown_where_it_is_made() -> None:
    def wrong(flag, x):
        if tl.program_id(0) == 0:
            while tl.load(flag, volatile=True) == 0:
                pass
        tl.store(x + tl.program_id(0) * 100, 1)

    with pytest.raises(errors.OutOfBounds, match=r"program \(1, 0, 0\)") as caught:
        run_python(wrong, (2,), np.zeros(2, np.int32), np.zeros(4, np.int32))
    assert "tl.store(x + tl.program_id(0) * 100, 1)" in str(caught.value)


def test_what_atomics_order_is_no_race_where_programs_take_turns() -> None:
    flag, x, out = (np.zeros(size, np.int32) for size in (10, 10, 5))
    run_python(last_to_first, (5,), flag, x, out, check="race")
    np.testing.assert_array_equal(out, [10, 9, 7, 4, 0])
