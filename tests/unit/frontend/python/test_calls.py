"""Calls: inlining, argument binding, combine functions, compile-time functions, locations."""

# pyright: reportArgumentType=false

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.frontend.python.harness import RunTime, lower, output, run
from tilewright.language import constexpr_function, device_function
from tilewright.ops import AddOp, ReduceOp


@device_function
def weighted(x, y=2, *rest, scale=1, **more):
    total = (x + y) * scale
    for item in rest:
        total += item
    return total + more.get("extra", 0)


@device_function
def calls_weighted(out, n):
    tl.store(out, weighted(n))
    tl.store(out + 1, weighted(n, 3))
    tl.store(out + 2, weighted(y=n, x=1, scale=10))
    tl.store(out + 3, weighted(*(n, 1, 4), 5))
    tl.store(out + 4, weighted(n, extra=100, scale=2))


def test_arguments_bind_as_in_python():
    assert output(calls_weighted, 5, n=RunTime(7)) == [9, 10, 80, 17, 118]


@constexpr_function
def log2(n):
    return n.bit_length() - 1


@device_function
def at_compile_time(out, BLOCK: tl.constexpr, shape: tl.constexpr):
    tl.store(out + tl.arange(0, 1 << log2(BLOCK)), tl.ceil_div(10, 4) + tl.next_power_of_2(5))
    rows, columns = shape
    tl.store(out, rows * columns)


def test_compile_time_functions():
    assert output(at_compile_time, 4, BLOCK=4, shape=(5, 6)) == [30, 11, 11, 11]


@device_function
def larger(a, b):
    if a > b:
        return a
    return b


@device_function
def pairwise(value_a, index_a, value_b, index_b):
    better = value_a >= value_b
    return tl.where(better, value_a, value_b), tl.where(better, index_a, index_b)


@device_function
def reduces(out, src):
    i = tl.arange(0, 8)
    x = tl.load(src + i)
    tl.store(out, tl.reduce(x, 0, larger))
    value, index = tl.reduce((x, i), 0, pairwise)
    tl.store(out + 1, value)
    tl.store(out + 2, index)


def test_combine_functions_become_regions():
    src = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.int32)
    out = np.zeros(3, np.int32)
    run(reduces, out=out, src=src)
    assert out.tolist() == [9, 9, 5]
    assert (
        len([op for op in lower(reduces, out=out, src=src).walk() if isinstance(op, ReduceOp)]) == 2
    )


@device_function
def inner(a):
    return a + a


@device_function
def middle(a):
    return inner(a)


@device_function
def outer(out, n):
    tl.store(out, middle(n))


def test_locations_tell_the_chain_of_calls():
    (add,) = [op for op in lower(outer, out="*i32", n="i32").walk() if isinstance(op, AddOp)]
    assert add.loc is not None
    frames = list(add.loc.frames())
    first = inner.fn.__code__.co_firstlineno
    assert [f.function for f in frames] == ["inner", "middle", "outer"]
    assert (frames[0].line, frames[0].col, frames[0].end_col) == (first + 2, 11, 16)
    assert frames[0].file == __file__
    assert [f.line - first for f in frames] == [2, 7, 12]


def test_what_follows_a_call_is_at_its_own_place():
    function = lower(outer, out="*i32", n="i32")
    store = function.body.terminator.prev
    assert store is not None and store.loc is not None
    assert store.loc.function == "outer" and store.loc.caller is None


@device_function
def apply_function(f: tl.constexpr, x):
    return f(x)


@device_function
def passes_function(out, n):
    tl.store(out, apply_function(inner, n))


def test_functions_are_values():
    assert output(passes_function, 1, n=RunTime(4)) == [8]


@device_function
def optional(out, bias, n):
    value = n
    if bias is not None:
        value += tl.load(bias)
    tl.store(out, value)


def test_none_arguments():
    assert output(optional, 1, bias=None, n=RunTime(4)) == [4]


@device_function
def defaults(out, n, STEP: tl.constexpr = 3):
    tl.store(out, n + STEP)


def test_parameters_of_kernels_have_defaults():
    assert output(defaults, 1, n=RunTime(4)) == [7]
    assert output(defaults, 1, n=RunTime(4), STEP=5) == [9]


def test_arguments_keep_names_and_facts():
    from tilewright.frontend.python import ArgSpec
    from tilewright.ir.types import PointerType, i32

    out = ArgSpec("out", "value", PointerType(i32), facts={"aligned": 16})
    n = ArgSpec("n", "value", i32, facts={"multiple_of": 16})
    function = lower(defaults, out=out, n=n)
    assert [(a.name, a.facts) for a in function.args] == [
        ("out", {"aligned": 16}),
        ("n", {"multiple_of": 16}),
    ]


@pytest.mark.parametrize("repeat", range(2))
def test_lowering_twice_gives_the_same_text(repeat):
    from tests.unit.frontend.python.harness import text

    assert text(calls_weighted, out="*i32", n="i32") == text(calls_weighted, out="*i32", n="i32")


@device_function
def prints(out, n):
    print("n is", n)
    print(n)
    tl.store(out, n)


def test_print_is_device_print(capsys):
    output(prints, 1, n=RunTime(5))
    assert "n is" in capsys.readouterr().out
