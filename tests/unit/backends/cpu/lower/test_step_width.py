"""How many lanes a step has, by what it stores and by what it looks up."""

from __future__ import annotations

import re

import pytest

from tests.unit.backends.cpu.textual import lowered
from tilewright.llvm import host_cpu
from tilewright.transforms.expand import load_expansion_ops


def stored_lanes(computed: str) -> int:
    """Lanes of the stores of a kernel that computes %v of fp32 from %i and stores it as fp16."""
    load_expansion_ops()
    text = f"""func @k(%Y: ptr<f16>) {{
      %i = tile.range {{start = 0, end = 1024}} : tile<1024xi32>
      {computed} : tile<1024xf32>
      %y = arith.cast %v : tile<1024xf16>
      %ys = tile.splat %Y {{shape = [1024]}} : tile<1024xptr<f16>>
      %yp = mem.offset %ys, %i : tile<1024xptr<f16>>
      mem.store %yp, %y
      cf.return
    }}"""
    return max(int(n) for n in re.findall(r"store <(\d+) x", lowered(text).text))


def test_narrow_numbers_are_computed_in_four_vectors():
    assert stored_lanes("%v = arith.cast %i") == 2 * host_cpu().vector_bits // 16


@pytest.mark.skipif(not host_cpu().has_avx512, reason="looks up in registers of 512 bits")
def test_beside_tables_two_vectors_fit_into_registers():
    table = [float(n) for n in range(16)]
    assert stored_lanes(f"%v = arith.lookup %i {{table = {table}}}") == 32
