"""Element-wise ops on lanes."""

from __future__ import annotations

import re

import numpy as np

from tests.unit.backends.cpu.textual import lowered, run

_SIZE = 1 << 14
_TILE = f"tile<{_SIZE}xf16>"
_QUOTIENT = f"""func @k(%X: ptr<f16>, %Y: ptr<f16>, %Z: ptr<f16>) {{
  %i = tile.range {{start = 0, end = {_SIZE}}} : tile<{_SIZE}xi32>
  %xs = tile.splat %X {{shape = [{_SIZE}]}} : tile<{_SIZE}xptr<f16>>
  %xp = mem.offset %xs, %i : tile<{_SIZE}xptr<f16>>
  %x = mem.load %xp : {_TILE}
  %ys = tile.splat %Y {{shape = [{_SIZE}]}} : tile<{_SIZE}xptr<f16>>
  %yp = mem.offset %ys, %i : tile<{_SIZE}xptr<f16>>
  %y = mem.load %yp : {_TILE}
  %z = arith.div %x, %y : {_TILE}
  %zs = tile.splat %Z {{shape = [{_SIZE}]}} : tile<{_SIZE}xptr<f16>>
  %zp = mem.offset %zs, %i : tile<{_SIZE}xptr<f16>>
  mem.store %zp, %z
  cf.return
}}"""


def test_quotients_of_16_bits_are_divided_in_32_and_rounded_once():
    """Also those that are too small for a normal number, infinite or none."""
    quotient = re.search(r"(%\w+) = fdiv <\d+ x float>", lowered(_QUOTIENT).text)
    assert quotient is not None
    assert not re.search(rf"fptrunc .*{quotient[1]} ", lowered(_QUOTIENT).text)
    bits = np.random.default_rng(0).integers(0, 1 << 16, (2, _SIZE), dtype=np.uint16)
    x, y = bits.view(np.float16)
    z = np.zeros(_SIZE, np.float16)
    run(_QUOTIENT, [x, y, z])
    with np.errstate(all="ignore"):
        exact = (x.astype(np.float64) / y.astype(np.float64)).astype(np.float16)
    np.testing.assert_array_equal(z, exact)
    np.testing.assert_array_equal(np.signbit(z)[~np.isnan(z)], np.signbit(exact)[~np.isnan(z)])
