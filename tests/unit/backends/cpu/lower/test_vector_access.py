"""Loads and stores of lane values whose addresses are computed lane by lane."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.backends.cpu.textual import lowered, run

THROUGH_AN_ADDRESS = """func @k(%A: ptr<i64>, %Y: ptr<ELEMENT>) {
  %address = mem.load %A : i64
  %p = arith.cast %address : ptr<ELEMENT>
  %null = arith.constant {value = 0} : i64
  %valid = arith.compare %address, %null {predicate = "ne"} : i1
  %other = arith.constant {value = OTHER} : ELEMENT
  %x = mem.load %p, %valid, %other : ELEMENT
  mem.store %Y, %x
  cf.return
}"""

TILE_THROUGH_ADDRESSES = """func @k(%A: ptr<i64>, %Y: ptr<ELEMENT>) {
  %i = tile.range {start = 0, end = 3} : tile<3xi32>
  %as = tile.splat %A {shape = [3]} : tile<3xptr<i64>>
  %ap = mem.offset %as, %i : tile<3xptr<i64>>
  %address = mem.load %ap : tile<3xi64>
  %p = arith.cast %address : tile<3xptr<ELEMENT>>
  %null = arith.constant {value = 0} : tile<3xi64>
  %valid = arith.compare %address, %null {predicate = "ne"} : tile<3xi1>
  %other = arith.constant {value = OTHER} : tile<3xELEMENT>
  %x = mem.load %p, %valid, %other : tile<3xELEMENT>
  %ys = tile.splat %Y {shape = [3]} : tile<3xptr<ELEMENT>>
  %yp = mem.offset %ys, %i : tile<3xptr<ELEMENT>>
  mem.store %yp, %x
  cf.return
}"""


@pytest.mark.parametrize(("element", "other"), [("f32", "5.0"), ("i1", "true")])
@pytest.mark.parametrize(("text", "count"), [(THROUGH_AN_ADDRESS, 1), (TILE_THROUGH_ADDRESSES, 3)])
def test_one_lane_is_not_read_through_a_null_pointer_under_a_mask(
    text: str, count: int, element: str, other: str
) -> None:
    """As a list is followed to its end: the last address is null."""
    dtype = np.dtype({"f32": "f4", "i1": "?"}[element])
    source, result = np.zeros(1, dtype), np.full(count, 7, dtype)
    kernel = text.replace("ELEMENT", element).replace("OTHER", other)
    for valid in (False, True):
        addresses = np.array([source.ctypes.data if valid else 0, 0, 0])
        run(kernel, [addresses, result])
        expected = np.array([0 if valid else 5, 5, 5], dtype)
        np.testing.assert_array_equal(result, expected[:count])


def test_volatile_load_through_a_computed_address_stays_volatile() -> None:
    plain = THROUGH_AN_ADDRESS.replace("ELEMENT", "f32").replace("OTHER", "5.0")
    masked, other = "%p, %valid, %other : f32", "%p {volatile = true} : f32"
    assert "load volatile float" in lowered(plain.replace(masked, other)).text
