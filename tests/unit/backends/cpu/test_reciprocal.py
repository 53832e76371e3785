"""Division by fewer elements through reciprocals: when, and how exact."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import Array, function_of
from tilewright.backends.cpu.reciprocal import use_reciprocals
from tilewright.interp import run_function
from tilewright.ir import Function
from tilewright.ops import DivOp, MulOp


def kernel(divisor: str = "splat", element: str = "f32", precise: bool = False) -> str:
    tile = f"tile<8x16x{element}>"
    column = f"""
      %r = tile.range {{start = 0, end = 8}} : tile<8xi32>
      %ds = tile.splat %D {{shape = [8]}} : tile<8xptr<{element}>>
      %dp = mem.offset %ds, %r : tile<8xptr<{element}>>
      %d = mem.load %dp : tile<8x{element}>
      %e = tile.expand_dims %d {{axis = 1}} : tile<8x1x{element}>
      %div = tile.broadcast %e {{shape = [8, 16]}} : {tile}"""
    divisors = {
        "splat": f"%d = mem.load %D : {element}\n%div = tile.splat %d {{shape = [8, 16]}} : {tile}",
        "column": column,
        "constant": f"%div = arith.constant {{value = 3.0}} : {tile}",
        "tile": f"%div = mem.load %xp : {tile}",
    }
    return f"""func @k(%X: ptr<{element}>, %D: ptr<{element}>, %Y: ptr<{element}>) {{
      %i = tile.range {{start = 0, end = 128}} : tile<128xi32>
      %j = tile.reshape %i {{shape = [8, 16]}} : tile<8x16xi32>
      %xs = tile.splat %X {{shape = [8, 16]}} : tile<8x16xptr<{element}>>
      %xp = mem.offset %xs, %j : tile<8x16xptr<{element}>>
      %ys = tile.splat %Y {{shape = [8, 16]}} : tile<8x16xptr<{element}>>
      %yp = mem.offset %ys, %j : tile<8x16xptr<{element}>>
      %x = mem.load %xp : {tile}
      {divisors[divisor]}
      %q = arith.div %x, %div {{precise = {str(precise).lower()}}} : {tile}
      mem.store %yp, %q
      cf.return
    }}"""


def rewritten(text: str) -> Function:
    function = function_of(text)
    use_reciprocals(function)
    return function


def divisions(function: Function) -> list[DivOp]:
    return [op for op in function.walk() if isinstance(op, DivOp)]


@pytest.mark.parametrize(("divisor", "elements"), [("splat", 1), ("column", 8)])
def test_few_divisors_are_inverted(divisor: str, elements: int):
    (division,) = divisions(rewritten(kernel(divisor)))
    shape = getattr(division.type, "shape", (1,))
    assert int(np.prod(shape)) == elements
    assert division.precise


@pytest.mark.parametrize(
    ("divisor", "element", "precise"),
    [("splat", "f32", True), ("splat", "f64", False), ("splat", "f16", False),
     ("constant", "f32", False), ("tile", "f32", False)],
)  # fmt: skip
def test_other_divisions_stay(divisor: str, element: str, precise: bool):
    function = rewritten(kernel(divisor, element, precise))
    assert len(divisions(function)) == 1
    assert not any(isinstance(op, MulOp) for op in function.walk())


def quotients(x: Array, divisor: float) -> Array:
    y = np.zeros(128, np.float32)
    function = rewritten(kernel())
    run_function(function, [x, np.array([divisor], np.float32), y])
    return y


def ulps(found: Array, exact: Array) -> Array:
    rounded = exact.astype(np.float32)
    return np.abs(found.astype(np.float64) - exact) / np.spacing(np.abs(rounded)).astype(np.float64)


@pytest.mark.parametrize(
    "divisor",
    [1.0, 3.0, -7.0, 1e-20, 1e20, 3e38, 1e-38, 1e-45, 2.0**-64, 2.0**64, 2.0**-126, np.pi * 1e-30],
)
def test_the_error_is_below_two_ulps(divisor: float):
    """Also where the reciprocal of the divisor is no normal number."""
    rng = np.random.default_rng(0)
    size = np.float64(np.float32(divisor))
    x = rng.uniform(0.5, 2.0, 128) * abs(size) * 2.0 ** rng.integers(-30, 30, 128)
    x = np.clip(x, 1e-37, 3e38).astype(np.float32)
    exact = x.astype(np.float64) / size
    normal = (np.abs(exact) > 1.2e-38) & (np.abs(exact) < 3e38)
    assert normal.any()
    assert ulps(quotients(x, divisor), exact)[normal].max() < 2


def test_special_divisors():
    x = np.zeros(128, np.float32)
    x[:6] = (1, -1, 0, np.inf, np.nan, 3e38)
    with np.errstate(all="ignore"):
        for divisor in (0.0, -0.0, np.inf, -np.inf, np.nan):
            expected = x / np.float32(divisor)
            np.testing.assert_array_equal(quotients(x, divisor)[:6], expected[:6])
