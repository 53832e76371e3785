"""Scans, products, atomics, gathers, elements: ops that are more than one nest."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import check


def scan_of(shape: tuple[int, ...], axis: int, reverse: bool, combine: str = "add") -> str:
    tile = f"tile<{'x'.join(map(str, shape))}x"
    numel = int(np.prod(shape))
    return f"""func @k(%X: ptr<i32>, %Y: ptr<i32>) {{
      %i = tile.range {{start = 0, end = {numel}}} : tile<{numel}xi32>
      %j = tile.reshape %i {{shape = {list(shape)}}} : {tile}i32>
      %xs = tile.splat %X {{shape = {list(shape)}}} : {tile}ptr<i32>>
      %xp = mem.offset %xs, %j : {tile}ptr<i32>>
      %ys = tile.splat %Y {{shape = {list(shape)}}} : {tile}ptr<i32>>
      %yp = mem.offset %ys, %j : {tile}ptr<i32>>
      %x = mem.load %xp : {tile}i32>
      %s = tile.scan %x {{axis = {axis}, reverse = {str(reverse).lower()}}} : {tile}i32>
          (%a: i32, %b: i32) {{
        %c = arith.{combine} %a, %b : i32
        cf.yield %c
      }}
      mem.store %yp, %s
      cf.return
    }}"""


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((16,), 0), ((4, 8), 0), ((4, 8), 1), ((2, 3, 4), 1), ((2, 4, 24), 0), ((16, 1, 24), 0),
     ((4, 8, 2), 2), ((1, 6), 0), ((5,), 0)],
)  # fmt: skip
def test_scans(shape: tuple[int, ...], axis: int, reverse: bool):
    """Also of extents that no vector divides."""
    x = np.random.default_rng(1).integers(-100, 100, int(np.prod(shape))).astype(np.int32)
    check(scan_of(shape, axis, reverse), [x, np.zeros_like(x)])
    check(scan_of(shape, axis, reverse, "max"), [x, np.zeros_like(x)])
