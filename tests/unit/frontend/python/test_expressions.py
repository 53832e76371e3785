"""Expressions and assignments: names, tuples, operators, comprehensions, Python's functions."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportInvalidTypeForm=false, reportRedeclaration=false

import math
from collections import namedtuple

import numpy as np
import pytest

import tilewright.language as tl
from tests.unit.frontend.python.harness import RunTime, lower, output, run
from tilewright.language import device_function
from tilewright.ops import ConstantOp, IfOp

SIZE = 4
SCALE = tl.constexpr(3)
OFFSETS = (1, 2)
NOTHING = None
Pair = namedtuple("Pair", ["first", "second"])


@device_function
def uses_globals(out):
    tl.store(out, SIZE * SCALE + OFFSETS[1])
    if NOTHING is None:
        tl.store(out + 1, len(OFFSETS))
    tl.store(out + 2, math.gcd(SIZE, 6))


def test_globals_are_constants():
    assert output(uses_globals, 3) == [14, 2, 2]


@device_function
def meta(out, n, **META):
    size = META["SIZE"]
    tl.store(out + tl.arange(0, size), META.get("VALUE", 5) + n)


def test_meta_parameters_are_a_dictionary():
    assert output(meta, 2, n=RunTime(1), SIZE=2) == [6, 6]
    assert output(meta, 2, n=RunTime(1), SIZE=2, VALUE=8) == [9, 9]


@device_function
def reassigns_parameter(out, n):
    BLOCK = 4
    out = out + tl.arange(0, BLOCK)
    n: tl.int32 = n * 2
    n += 1
    n: tl.int32
    tl.store(out, n)


def test_parameters_and_constants_may_be_reassigned():
    assert output(reassigns_parameter, 4, n=RunTime(3)) == [7] * 4


@device_function
def unpacks(out, n):
    a, (b, *c), d = n, (2, 3, 4), 5
    [e, f] = c
    first, *_ = (9, 8, 7)
    p = q = a + b
    whole = (a, *c, p)
    tl.store(out, a)
    tl.store(out + 1, b + d)
    tl.store(out + 2, e * f)
    tl.store(out + 3, first + len(_))
    tl.store(out + 4, p - q)
    tl.store(out + 5, whole[-1] + len(whole))
    tl.store(out + 6, whole[1:3][1])


def test_unpacking():
    assert output(unpacks, 7, n=RunTime(1)) == [1, 7, 12, 11, 0, 7, 4]


@device_function
def compares(out, n, kind: tl.constexpr):
    if 0 < n < 10:
        tl.store(out, 1)
    if kind in ("a", "b") and kind not in ("c",):
        tl.store(out + 1, 1)
    if kind is not None and not kind == "c":
        tl.store(out + 2, 1)
    if (n > 3 and n < 8) or n == 50:
        tl.store(out + 3, 1)
    if not n > 3:
        tl.store(out + 4, 1)
    if (n, 2) == (5, 2):
        tl.store(out + 5, 1)
    if kind is None or kind.startswith("a"):
        tl.store(out + 6, 1)


def test_comparisons():
    assert output(compares, 7, n=RunTime(5), kind="a") == [1, 1, 1, 1, -1, 1, 1]
    assert output(compares, 7, n=RunTime(0), kind=None) == [-1, -1, -1, -1, 1, -1, 1]


@device_function
def python_functions(out, n):
    tl.store(out, min(n, 3, 8))
    tl.store(out + 1, max(n, 3))
    tl.store(out + 2, abs(n))
    tl.store(out + 3, int(3.7) + int(float("2")) + max(1, 2) + min((4, 5)))
    tl.store(out + 4, sum((n, 1, 2)))
    tl.store(out + 5, isinstance(n, tl.tensor) + isinstance(3, tl.constexpr) + isinstance(3, int))
    tl.store(out + 6, hasattr(n, "shape") + hasattr(n, "shapes") + getattr(n, "nothing", 7))
    tl.store(out + 7, len(tl.arange(0, 16)) + round(2.4) + len([i for i in range(3)]))


def test_python_functions():
    assert output(python_functions, 8, n=RunTime(-2)) == [-2, 3, 2, 11, 1, 3, 8, 21]


@device_function
def comprehends(out, n):
    i = 40
    squares = [i * i for i in range(4) if i != 2]
    grid = [(a, b) for a in (1, 2) for b in range(a)]
    values = [n + square for square in squares]
    tl.store(out, values[2])
    tl.store(out + 1, len(grid) + i)
    for j, (value, square) in enumerate(zip(values, squares, strict=True)):
        tl.store(out + 2 + j, value - square)


def test_comprehensions():
    assert output(comprehends, 5, n=RunTime(1)) == [10, 43, 1, 1, 1]


@device_function
def named_tuples(out, pair):
    both = Pair(pair.second, pair.first + 1)
    tl.store(out, both.first)
    tl.store(out + 1, both.second)
    tl.store(out + 2, len(both))


def test_named_tuples():
    from tests.unit.frontend.python.harness import OPTIONS
    from tilewright.frontend.python import ArgSpec, KernelSignature, lower_kernel
    from tilewright.interp import run_function
    from tilewright.ir.types import PointerType, i32

    items = (ArgSpec("first", "value", i32), ArgSpec("second", "value", i32))
    args = (
        ArgSpec("out", "value", PointerType(i32)),
        ArgSpec("pair", "tuple", value=Pair, items=items),
    )
    function = lower_kernel(named_tuples, KernelSignature(args), OPTIONS).kernel
    assert [a.name for a in function.args] == ["out", "pair_0", "pair_1"]
    out = np.zeros(3, np.int32)
    run_function(function, [out, 5, 6])
    assert out.tolist() == [6, 6, 2]


@device_function
def types_as_values(out, x, dtype: tl.constexpr):
    wide = x.to(dtype)
    if wide.dtype == tl.float32 and dtype.is_fp32():
        tl.store(out, dtype.primitive_bitwidth)
    if out.dtype.element_ty == tl.int32:
        tl.store(out + 1, wide.to(out.dtype.element_ty))
    tl.store(out + 2, x.dtype.itemsize)
    tl.static_assert(wide.dtype is not None, f"{wide.dtype} {dtype!r} {3 + 4:>3}")


def test_dtypes_are_compile_time_values():
    assert output(types_as_values, 3, x=RunTime(7), dtype=tl.float32) == [32, 7, 4]


@device_function
def walrus(out, n):
    if (m := n + 1) > 3:
        tl.store(out, m)
    tl.store(out + 1, m)


def test_walrus():
    assert output(walrus, 2, n=RunTime(5)) == [6, 6]


@device_function
def short_circuit(out, flag: tl.constexpr):
    if flag and tl.no_such_function():
        tl.store(out, 1)
    if not flag or tl.no_such_function():
        tl.store(out, 2)
    tl.store(out + 1, flag or 4)


def test_constants_short_circuit():
    assert output(short_circuit, 2, flag=False) == [2, 4]


@device_function
def literals(out):
    x = -float("inf")
    zeros = tl.full((2,), x, tl.float32)
    tl.store(out + tl.arange(0, 2), zeros)


def test_negative_infinity_is_one_constant():
    function = lower(literals, out="*f32")
    constants = [op.value for op in function.walk() if isinstance(op, ConstantOp)]
    assert constants == [-math.inf]


@device_function
def methods(out, src):
    x = tl.load(src + tl.arange(0, 4))
    total = x.sum(axis=0)
    square = x[:, None] * x[None, :]
    tl.store(out, total)
    tl.store(out + 1, square.T.sum(1).max(0))
    tl.store(out + 2, square.shape[0] * square.numel)
    x.to(tl.float32).exp()


def test_methods_of_tensors():
    out, src = np.zeros(3, np.int32), np.arange(4, dtype=np.int32)
    run(methods, out=out, src=src)
    assert out.tolist() == [6, 18, 64]


@device_function
def asserts(out, n):
    """A docstring says nothing."""
    assert n.dtype == tl.int32, "int32 expected"
    assert n > 0, "positive"
    ...
    pass
    unused = 1
    del unused
    tl.store(out, n)


def test_statements_that_do_little():
    assert output(asserts, 1, n=RunTime(2)) == [2]


@device_function
def tuples(out, n):
    joined = (n,) + (1, 2)
    twice = 2 * (3, n)
    tl.store(out, joined[0] + joined[2])
    tl.store(out + 1, twice[3])
    tl.store(out + 2, (1, 2) == (1, 2))
    tl.store(out + 3, [1, 2][-1])


def test_operators_of_tuples():
    assert output(tuples, 4, n=RunTime(4)) == [6, 4, 1, 2]


def make(step):
    from tilewright.language import device_function as decorator

    @decorator
    def closed(out, n):
        tl.store(out, n + step)

    return closed


@pytest.mark.parametrize("step", [1, 20])
def test_closures(step):
    assert output(make(step), 1, n=RunTime(2)) == [2 + step]


def test_values_are_named_after_variables():
    function = lower(unpacks, out="*i32", n="i32")
    assert not [op for op in function.walk() if isinstance(op, IfOp)]
    names = [r.name for op in function.walk() for r in op.results if r.name]
    assert names == ["p"]
