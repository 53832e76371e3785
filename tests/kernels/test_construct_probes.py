"""Constructs that people try, one small kernel each, on every device, against plain Python.

Wider tests of single ones are `test_language_constructs.py`, `test_jumps.py`, `test_branches.py`.
"""

# pyright: reportArgumentType=false, reportCallIssue=false, reportPossiblyUnboundVariable=false
# pyright: reportAssignmentType=false, reportIndexIssue=false, reportOperatorIssue=false, reportAttributeAccessIssue=false

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as tl
from tests.kernels.devices import Device
from tilewright import constexpr_function, jit

Construct = Callable[..., Any]
PROBES: dict[str, tuple[Construct, Callable[[int], int]]] = {}
OFFSETS = [3, [5, 8]]
Pair = namedtuple("Pair", ["first", "second"])  # noqa: PYI024 -- as old code has it


def probe(expected: Callable[[int], int]) -> Callable[[Construct], Construct]:
    """Decorator of a function of a run-time integer that returns one."""

    def register(function: Construct) -> Construct:
        PROBES[function.__name__] = (jit(function), expected)
        return function

    return register


@jit
def scaled(x, by: tl.constexpr):
    return x * by


@jit
def one_of_two_returns(n):
    if n > 3:
        return n * 2
    return -n


@jit
def sum_of_all(*numbers):
    total = 0
    for number in numbers:
        total += number
    return total


@jit
def factorial(n: tl.constexpr):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@jit(noinline=True)
def not_inlined(n, more=1):
    return n + more


@constexpr_function
def bits_of(n: int) -> int:
    """Python at compile time."""
    return n.bit_length()


def undecorated(n: int) -> int:
    """Python at compile time, without saying so."""
    return sum(range(n))


@probe(lambda n: n * 6 + n * n)
def run_time_values_for_constexpr_parameters(n):
    return scaled(n, 6) + scaled(n, n)


@probe(lambda n: 2 * n if n > 3 else -n)
def returns_on_one_branch(n):
    return one_of_two_returns(n)


@probe(lambda n: n + 5)
def while_on_a_constant(n):
    steps = 0
    while True:
        steps += 1
        if steps == 5:
            break
    while False:
        steps += 100
    return n + steps


@probe(lambda n: sum(k for k in range(min(n, 7)) if k % 3))
def breaks_and_continues(n):
    total = 0
    for k in range(n):
        if k == 7:
            break
        if k % 3 == 0:
            continue
        total += k
    return total


@probe(lambda n: 8 * 10 + n)
def loop_variables_after_their_loop(n):
    for last in range(0, 10, 4):
        n += last * 0
    return last * 10 + n


@probe(lambda n: n + (n + 1) + 2 + 3 + 2 * n)
def starred_arguments(n):
    pair = (n, n + 1)
    return sum_of_all(*pair, 2, *(3, 2 * n))


@probe(lambda n: 24 + n)
def recursion_that_ends_at_compile_time(n):
    return factorial(4) + n


@probe(lambda n: n + 1 + 7)
def noinline_functions(n):
    return not_inlined(n) + not_inlined(0, more=7)


@probe(lambda n: 4 + 45 + n)
def python_helpers_at_compile_time(n):
    return bits_of(9) + undecorated(10) + n


@probe(lambda n: (n + 2) * 3)
def dtypes_in_locals(n):
    DTYPE = tl.int64 if tl.constexpr(3) > 2 else tl.float32
    kind: tl.constexpr = tl.int32
    return ((n + 2).to(DTYPE) * 3).to(kind)


@probe(lambda n: n * 2 + n + 1 + (n - 1) + 9)
def lists_and_comprehensions(n):
    items = [n * 2, n + 1]
    items = [*items, n - 1]
    odd = [2 * k + 1 for k in range(5) if k == 4]
    return items[0] + items[1] + items[-1] + odd[0]


@probe(lambda n: n + 3 + 8)
def lists_as_globals(n):
    return n + OFFSETS[0] + OFFSETS[1][1]


@probe(lambda n: (n + 4) * 10 + n)
def named_tuples(n):
    pair = Pair(n, second=n + 4)
    first, second = pair
    for _ in range(2):
        pair = Pair(pair.second, pair.first)
    return pair.second * 10 + first + (second - pair[1])


@probe(lambda n: 2 * (1 < n <= 5) + (n + 1 if n + 1 > 3 else 0))
def chained_comparisons_and_walrus(n):
    more = 0
    if (m := n + 1) > 3:
        more = m
    return 2 * (1 < n <= 5) + more


@probe(lambda n: n + 5 * n + (3 if n > 2 else 0))
def nested_functions(n):
    def times(k):
        return k * n

    shift = lambda k: k + n  # noqa: E731
    chosen = 3 if n > 2 else 0
    return shift(0) + times(5) + chosen


@probe(lambda n: (2 + n) + (3 + n) + (4 + n) + n)
def indices_and_slices_of_tiles(n):
    tile = tl.arange(0, 6) + n
    return tl.sum(tile[2:5], 0) + tile[0]


@jit
def probe_kernel(out, n, FUNCTION: tl.constexpr):
    tl.store(out, FUNCTION(n))


@pytest.mark.parametrize("name", PROBES)
def test_what_people_try_means_what_it_means_in_python(device: Device, name: str):
    function, expected = PROBES[name]
    for n in (0, 4, 11):
        out = device.empty(1, np.int32)
        device.run(probe_kernel, (1,), out, n, FUNCTION=function)
        assert out[0] == expected(n), n
