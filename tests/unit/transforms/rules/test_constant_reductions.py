"""What is known of reductions before they run."""

from __future__ import annotations

import pytest

from tilewright.ir import parse_module
from tilewright.ops import ReduceOp
from tilewright.transforms.rules import reduced_constants

WELFORD = """
func @f(%S: ptr<f32>, %y: f32) {{
  %x = tile.splat %y {{shape = [{extent}]}} : tile<{extent}xf32>
  %n = arith.constant {{value = {each}}} : tile<{extent}xf32>
  %s, %t = tile.reduce %x, %n {{axis = 0}} : f32, f32 (%a: f32, %i: f32, %b: f32, %j: f32) {{
    %k = arith.add %i, %j : f32
    %w = arith.div %j, %k : f32
    %d = arith.sub %b, %a : f32
    %e = arith.mul %d, %w : f32
    %c = arith.add %a, %e : f32
    cf.yield %c, %k
  }}
  mem.store %S, %s
  cf.return
}}
"""


def known(extent: int, each: float) -> list[int | float | None]:
    module = parse_module(WELFORD.format(extent=extent, each=each))
    (reduce,) = [op for op in module.kernel.walk() if isinstance(op, ReduceOp)]
    return reduced_constants(reduce, extent)


def test_counts_of_means_are_known_and_means_are_not() -> None:
    assert known(64, 3.0) == [None, 192.0]
    assert known(1, 3.0) == [None, 3.0]


@pytest.mark.parametrize("extent, each", [(64, 1e38), (96, 1.0)])
def test_sums_that_are_not_exact_and_odd_numbers_of_elements_are_computed(
    extent: int, each: float
) -> None:
    assert known(extent, each) == [None, None]
