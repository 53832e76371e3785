"""The expansions of elementary functions: special values, all float types, combine regions."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.unit.backends.cpu.elementwise import (
    Array,
    compiled,
    interpreted,
    kernel,
    math_kernel,
    padded,
    parsed,
    prepared,
)
from tilewright.backends.cpu.passes.legalize import Legalize
from tilewright.interp import numpy_dtype
from tilewright.ir import Function, print_function
from tilewright.ir.types import dtype_named
from tilewright.ir.verifier import report
from tilewright.ops import MATH_FUNCTIONS, MathOp

NATIVE = {"sqrt", "sqrt_rn", "floor", "ceil", "round_even", "trunc"}
EXPANDED = tuple(f for f in MATH_FUNCTIONS if f not in NATIVE)
inf, nan = float("inf"), float("nan")

SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, inf, -inf, nan, 1e-45, -1e-45, 1e-40, 1.2e-38, 3e38,
    -3e38, 1e-8, -1e-8, 88.72, 88.73, 89.5, -87.4, -103.9, -104.1, 127.999, 128.0, -149.0, -149.5,
    -151.0, 9.0, -9.2, 0.625, -0.625, 3.99, 4.1, 1e5, -2e5, 1e10, -1e22, 0.70710677, 1.4142135,
    710.0, -745.2,
)  # fmt: skip

TOLERANCE = {"f32": 4e-7, "f64": 1e-15, "f16": 1e-3, "bf16": 8e-3}
"""Relative; one ulp of the narrow types."""


def _assert_close(found: Array, expected: Array, dtype: str) -> None:
    wide = np.float64
    with np.errstate(all="ignore"):
        smallest = float(np.finfo(found.dtype).smallest_subnormal) if dtype != "bf16" else 1e-40
        np.testing.assert_allclose(
            found.astype(wide), expected.astype(wide), rtol=TOLERANCE[dtype], atol=2 * smallest
        )
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


def _special(dtype: str, block: int) -> Array:
    with np.errstate(over="ignore"):
        return padded(np.array(SPECIAL).astype(numpy_dtype(dtype_named(dtype))), block)


def _functions(function: Function) -> set[str]:
    return {op.function for op in function.walk() if isinstance(op, MathOp)}


@pytest.mark.parametrize("machine", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("function", EXPANDED)
def test_the_expansion_equals_the_function(
    function: str, dtype: str, machine: tuple[bool, bool]
) -> None:
    """By the NumPy rules, on special values."""
    text = math_kernel(function, dtype, 64)
    x = _special(dtype, 64)
    expanded = prepared(text, *machine)
    assert _functions(expanded) <= NATIVE
    assert report(expanded) is None
    found = interpreted(expanded, dtype, x, block=64)
    _assert_close(found, interpreted(parsed(text), dtype, x, block=64), dtype)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("function", MATH_FUNCTIONS)
def test_machine_code_equals_the_function_on_special_values(function: str, dtype: str) -> None:
    text = math_kernel(function, dtype, 64)
    x = _special(dtype, 64)
    found = compiled(text, dtype, block=64)(x)
    expected = interpreted(parsed(text), dtype, x, block=64)
    _assert_close(found, expected, dtype)


@pytest.mark.parametrize("function", EXPANDED)
def test_scalars_are_expanded_as_tiles_are(function: str) -> None:
    text = f"""func @k(%X0: ptr<f32>, %Y: ptr<f32>) {{
      %pid = cf.program_id {{axis = 0}} : i32
      %from = mem.offset %X0, %pid : ptr<f32>
      %to = mem.offset %Y, %pid : ptr<f32>
      %x = mem.load %from : f32
      %y = arith.math %x {{function = "{function}"}} : f32
      mem.store %to, %y
      cf.return
    }}"""
    x = _special("f32", 64)
    found = compiled(text, "f32", block=1)(x)
    expected = compiled(math_kernel(function, "f32", 64), "f32", block=64)(x)
    np.testing.assert_array_equal(found, expected)


LOGADDEXP2 = """%m = arith.max %a, %b : f32
        %d = arith.sub %a, %b : f32
        %s = arith.abs %d : f32
        %n = arith.neg %s : f32
        %e = arith.math %n {function = "exp2"} : f32
        %one = arith.constant {value = 1.0} : f32
        %p = arith.add %e, %one : f32
        %l = arith.math %p {function = "log2"} : f32
        %r = arith.add %m, %l : f32"""

SUM_OF_SINES = """%s = arith.math %a {function = "sin"} : f32
        %none = arith.constant {value = 0.0} : f32
        %z = arith.mul %s, %none : f32
        %m = arith.max %a, %b : f32
        %r = arith.add %m, %z : f32"""


@pytest.mark.parametrize("combine", [LOGADDEXP2, SUM_OF_SINES])
def test_functions_in_combine_regions_are_expanded(combine: str) -> None:
    body = f"""%f = tile.reduce %x0 {{axis = 0}} : f32 (%a: f32, %b: f32) {{
        {combine}
        cf.yield %r
      }}
      %y = tile.splat %f {{shape = [64]}} : {{t}}f32>"""
    text = kernel(body, ("f32",), "f32", 64)
    x = np.random.default_rng(2).uniform(-3, 3, 64).astype(np.float32)
    x[7] = 2.0**20
    expanded = prepared(text)
    assert _functions(expanded) == set()
    expected = interpreted(parsed(text), "f32", x, block=64)
    np.testing.assert_allclose(interpreted(expanded, "f32", x, block=64), expected, rtol=1e-5)
    np.testing.assert_allclose(compiled(text, "f32", block=64)(x), expected, rtol=1e-5)


def test_a_function_without_such_ops_stays_as_it_is() -> None:
    text = kernel("%y = arith.add %x0, %x1 : {t}f32>", ("f32", "f32"), "f32")
    assert print_function(prepared(text)) == print_function(parsed(text))


def test_results_never_depend_on_the_lane() -> None:
    """One large argument sends a vector down the slow branch; its neighbours stay the same."""
    run = compiled(math_kernel("sin", "f32"), "f32")
    x = np.random.default_rng(3).uniform(-100, 100, 1024).astype(np.float32)
    mixed = x.copy()
    mixed[::7] = 1e30
    keep = np.arange(1024) % 7 != 0
    np.testing.assert_array_equal(run(x)[keep], run(mixed)[keep])


def test_preparing_a_kernel_takes_less_than_two_milliseconds() -> None:
    body = """%m = tile.reduce %x0 {axis = 0} : f32 (%a: f32, %b: f32) {
        %r = arith.max %a, %b : f32
        cf.yield %r
      }
      %ms = tile.splat %m {shape = [1024]} : {t}f32>
      %d = arith.sub %x0, %ms : {t}f32>
      %y = arith.math %d {function = "exp"} : {t}f32>"""
    text = kernel(body, ("f32",), "f32")
    seconds: list[float] = []
    for _ in range(20):
        function = parsed(text)
        start = time.process_time()
        Legalize().run(function)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 2e-3
