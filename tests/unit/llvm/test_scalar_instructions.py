"""The table of element-wise ops: every integer op does what the interpreter says, and never traps.

Tiles of 64 elements run as vectors, tiles of 3 as scalars. (Floats: tests of the CPU backend.)
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import Array, assert_as_interpreted, run
from tests.unit.interp.tiles import odd_integers
from tilewright.interp import numpy_dtype
from tilewright.ir.types import DType, dtype_named
from tilewright.llvm import constant
from tilewright.ops import COMPARISONS

TYPES = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def kernel(body: str, element: str, result: str, count: int) -> str:
    """z = body of x and y, where {t} stands for `tile<COUNTx`."""
    arrays = [("X", element), ("Y", element), ("Z", result)]
    lines = [f"%i = tile.range {{start = 0, end = {count}}} : tile<{count}xi32>"]
    lines += [
        f"""%c = arith.constant {{value = {count}}} : i32
        %pid = cf.program_id {{axis = 0}} : i32
        %start = arith.mul %pid, %c : i32"""
    ]
    for name, kind in arrays:
        tile = f"tile<{count}xptr<{kind}>>"
        lines += [
            f"%b{name} = mem.offset %{name}, %start : ptr<{kind}>",
            f"%s{name} = tile.splat %b{name} {{shape = [{count}]}} : {tile}",
            f"%p{name} = mem.offset %s{name}, %i : {tile}",
        ]
    for name, kind in arrays[:2]:
        lines.append(f"%{name.lower()} = mem.load %p{name} : tile<{count}x{kind}>")
    lines += [body.replace("{t}", f"tile<{count}x"), "mem.store %pZ, %z", "cf.return"]
    parameters = ", ".join(f"%{name}: ptr<{kind}>" for name, kind in arrays)
    return f"func @k({parameters}) {{\n" + "\n".join(lines) + "\n}"


def pairs(dtype: DType, count: int) -> tuple[Array, Array]:
    """All pairs of odd numbers, a multiple of `count`."""
    numbers = np.array(odd_integers(dtype), dtype=object)
    x, y = (a.ravel().astype(numpy_dtype(dtype)) for a in np.meshgrid(numbers, numbers))
    size = -(-x.size // count) * count
    return np.resize(x, size), np.resize(y, size)


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "and", "or", "xor", "min", "max", "mul_high"])
def test_binary(op: str, element: str):
    for count in (64, 3):
        x, y = pairs(dtype_named(element), count)
        body = f"%z = arith.{op} %x, %y : {{t}}{element}>"
        text = kernel(body, element, element, count)
        assert_as_interpreted(text, [x, y, np.zeros_like(x)], (x.size // count,))


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("op", ["div", "rem"])
def test_division(op: str, element: str):
    """Of the smallest number by -1 the quotient wraps."""
    for count in (64, 3):
        x, y = pairs(dtype_named(element), count)
        y[y == 0] = 1
        text = kernel(f"%z = arith.{op} %x, %y : {{t}}{element}>", element, element, count)
        assert_as_interpreted(text, [x, y, np.zeros_like(x)], (x.size // count,))


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("op", ["div", "rem"])
def test_division_by_zero_gives_some_number(op: str, element: str):
    for count in (64, 3):
        x, y = pairs(dtype_named(element), count)
        before = x.copy()
        y[:] = 0
        text = kernel(f"%z = arith.{op} %x, %y : {{t}}{element}>", element, element, count)
        run(text, [x, y, np.zeros_like(x)], (x.size // count,))
        assert x.tobytes() == before.tobytes() and not y.any()
        zero = f"%n = arith.constant {{value = 0}} : {{t}}{element}>\n"
        text = kernel(f"{zero}%z = arith.{op} %x, %n : {{t}}{element}>", element, element, count)
        run(text, [x, y, np.zeros_like(x)], (x.size // count,))


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("divisor", [1, 3, 16, -1, -7])
def test_division_by_a_literal(divisor: int, element: str):
    dtype = dtype_named(element)
    number = divisor if dtype.is_signed or divisor > 0 else dtype.max_int + 1 + divisor
    x, y = pairs(dtype, 64)
    constant_ = f"%n = arith.constant {{value = {number}}} : {{t}}{element}>\n"
    for op in ("div", "rem"):
        body = f"{constant_}%z = arith.{op} %x, %n : {{t}}{element}>"
        text = kernel(body, element, element, 64)
        assert_as_interpreted(text, [x, y, np.zeros_like(x)], (x.size // 64,))


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("op", ["shl", "shr"])
def test_shifts(op: str, element: str):
    dtype = dtype_named(element)
    for count in (64, 3):
        x, y = pairs(dtype, count)
        y &= dtype.bits - 1
        text = kernel(f"%z = arith.{op} %x, %y : {{t}}{element}>", element, element, count)
        assert_as_interpreted(text, [x, y, np.zeros_like(x)], (x.size // count,))


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("op", ["neg", "abs"])
def test_unary(op: str, element: str):
    for count in (64, 3):
        x, y = pairs(dtype_named(element), count)
        text = kernel(f"%z = arith.{op} %x : {{t}}{element}>", element, element, count)
        assert_as_interpreted(text, [x, y, np.zeros_like(x)], (x.size // count,))


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("predicate", COMPARISONS)
def test_comparison(predicate: str, element: str):
    for count in (64, 3):
        x, y = pairs(dtype_named(element), count)
        body = f'%z = arith.compare %x, %y {{predicate = "{predicate}"}} : {{t}}i1>'
        text = kernel(body, element, "i1", count)
        assert_as_interpreted(text, [x, y, np.zeros(x.size, np.bool_)], (x.size // count,))


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("target", [*TYPES, "i1", "f32", "f64"])
def test_casts(element: str, target: str):
    """Integers wrap, or round to the nearest float; to i1 is not zero."""
    x, y = pairs(dtype_named(element), 64)
    text = kernel(f"%z = arith.cast %x : {{t}}{target}>", element, target, 64)
    found = np.zeros(x.size, numpy_dtype(dtype_named(target)))
    assert_as_interpreted(text, [x, y, found], (x.size // 64,))


@pytest.mark.parametrize("element", TYPES)
def test_selection_and_bits(element: str):
    unsigned = element.replace("i", "u") if element[0] == "i" else element.replace("u", "i")
    x, y = pairs(dtype_named(element), 64)
    body = f"""
      %less = arith.compare %x, %y {{predicate = "lt"}} : {{t}}i1>
      %chosen = arith.select %less, %x, %y : {{t}}{element}>
      %b = arith.bitcast %chosen : {{t}}{unsigned}>
      %m = arith.max %b, %b : {{t}}{unsigned}>
      %z = arith.bitcast %m : {{t}}{element}>"""
    assert_as_interpreted(
        kernel(body, element, element, 64), [x, y, np.zeros_like(x)], (x.size // 64,)
    )


@pytest.mark.parametrize("op", ["and", "or", "xor", "add", "mul", "min", "max"])
def test_bools(op: str):
    x = np.array([False, False, True, True] * 16)
    y = np.array([False, True, False, True] * 16)
    body = f"%z = arith.{op} %x, %y : {{t}}i1>"
    assert_as_interpreted(kernel(body, "i1", "i1", 64), [x, y, np.zeros(64, np.bool_)])


def test_constants():
    assert constant(255, dtype_named("u8")).text == "255"
    assert constant(-1, dtype_named("i64"), 4).typed == "<4 x i64> splat (i64 -1)"
    assert constant(True, dtype_named("i1")).text == "true"
    assert constant(0.5, dtype_named("f32")).text == "0x3FE0000000000000"
