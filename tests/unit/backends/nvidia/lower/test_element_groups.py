"""Element-wise ops with branches: few elements are live across them, in code as ptxas makes it."""

import re
from typing import Any

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit

pytestmark = needs_ptxas


@jit
def apply(source, target, n, SIZE: tl.constexpr, FUNCTION: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(source + i, mask=i < n).to(tl.float32)
    if FUNCTION == "sin":
        y = tl.sin(x)
    elif FUNCTION == "cos":
        y = tl.cos(x)
    elif FUNCTION == "rem":
        y = x % 3.0
    else:
        y = tl.sqrt_rn(tl.div_rn(x, x + 1.0))
    tl.store(target + i, y, mask=i < n)


def order_of(kernel: Any) -> str:
    """Loads (l), synchronized warps (w), stores (s) and branches (b), as they follow in PTX."""
    names = {"ld.global": "l", "st.global": "s", "bar.warp.sync": "w"}
    found = re.findall(r"(?:ld|st)\.global|bar\.warp\.sync|@%p\d+ bra", str(kernel.asm["ptx"]))
    return "".join(names.get(name, "b") for name in found)


@pytest.mark.parametrize("function", ["sin", "rem"])
def test_a_vector_is_stored_before_the_next_one_branches(function: str) -> None:
    """Behind all loads, over whose end ptxas moves none."""
    kernel = compiled(apply, "*fp32/16 *fp32/16 i32/16", SIZE=2048, FUNCTION=function)
    order = re.sub("b+", "b", order_of(kernel))
    assert order == "llllw" + "bs" * 4


@pytest.mark.parametrize(
    "function, dtype, size, most",
    [
        ("sin", "fp32", 4096, 56),
        ("sin", "fp32", 16384, 168),
        ("sin", "bf16", 4096, 48),
        ("cos", "fp32", 4096, 56),
        ("rem", "fp32", 4096, 56),
    ],
)
def test_registers(function: str, dtype: str, size: int, most: int) -> None:
    types = f"*{dtype}/16 *{dtype}/16 i32/16"
    metadata = compiled(apply, types, SIZE=size, FUNCTION=function).metadata
    assert metadata.registers <= most
    assert metadata.spills == 0


@jit
def shared_divisor(source, target, n, SIZE: tl.constexpr):
    """What a uniform operand gives is computed once, not for each vector."""
    i = tl.arange(0, SIZE)
    y = tl.full([SIZE], 1.0, tl.float32) * n
    x = tl.sin(tl.load(source + i)) / (y + 1.0)
    tl.store(target + i, x)


def test_equal_operands_compute_once_in_all_vectors() -> None:
    kernel = compiled(shared_divisor, "*fp32/16 *fp32/16 fp32", SIZE=4096)
    assert len(re.findall(r"rcp\.approx|div\.full", str(kernel.asm["ptx"]))) == 1
