"""Products of fp32 with operands contiguous along M and N: copies turn the smaller one."""

import re

import pytest

import tilewright.language as tl
from tests.unit.backends.nvidia.compiled import compiled, count
from tests.unit.backends.nvidia.requires import needs_ptxas
from tilewright import jit
from tilewright.layout import LANE, LinearLayout, bank_conflicts

pytestmark = needs_ptxas


@jit
def product(a, b, c, n, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """a is (K, M), b is (K, N)."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + (start + k[None, :]) * n + i[:, None])
        y = tl.load(b + (start + k[:, None]) * n + j[None, :])
        acc = tl.dot(x, y, acc, input_precision="tf32")
    tl.store(c + i[:, None] * n + j[None, :], acc)


TYPES = "*fp32/16 *fp32/16 *fp32/16 i32/16 i32/16"
TILES = [(256, 128, 8, False), (128, 256, 8, True), (128, 128, 8, False), (64, 64, 4, False),
         (128, 32, 4, False)]  # fmt: skip


@pytest.mark.parametrize(("m", "n", "warps", "swapped"), TILES)
def test_the_smaller_operand_is_turned_and_the_other_in_registers(
    m: int, n: int, warps: int, swapped: bool
) -> None:
    kernel = compiled(product, TYPES, M=m, N=n, BK=32, num_warps=warps)
    text, ptx = str(kernel.asm["ttgir"]), str(kernel.asm["ptx"])
    assert "mma.sync" not in ptx and count(kernel, "wgmma.mma_async") > 0
    assert ("swapped = true" in text) == swapped
    single = min(m, n) * 32 // (32 * warps)
    stages = len(re.findall(r"nvidia\.async_copy .*vector = 1\}", text))
    copies = re.findall(r"cp\.async\.ca\.shared\.global \[[^]]*\], \[[^]]*\], 4[,;]", ptx)
    assert stages > 1 and len(copies) == stages * single
    assert kernel.metadata.spills == 0


@pytest.mark.parametrize("size", [64, 128])
def test_copies_that_turn_write_to_each_bank_twice(size: int) -> None:
    text = str(compiled(product, TYPES, M=size, N=size, BK=32).asm["ttgir"])
    shared = re.search(r"nvidia\.alloc : buffer<\d \* 32x\d+xf32, (.*?)>\n", text)
    load = re.search(r"%y\w* = mem\.load .*: tile<32x\d+xf32, (.*)>\n", text)
    assert shared and load
    offsets = LinearLayout.parse(shared[1]).invert().columns
    lanes = LinearLayout.parse(load[1]).packed(LANE)
    moved = tuple(_offset(offsets, lane) for lane in lanes)
    assert bank_conflicts.degree(moved, 0, 2) == 2


def _offset(columns: tuple[int, ...], place: int) -> int:
    offset = 0
    for bit, column in enumerate(columns):
        offset ^= column if place >> bit & 1 else 0
    return offset


@pytest.mark.parametrize("capability", [80, 90])
def test_others_are_multiplied_as_before(capability: int) -> None:
    """Without a loop nothing is copied ahead; before Hopper there are no warpgroup products."""
    size = {"M": 64, "N": 64, "BK": 32}
    kernel = compiled(product, TYPES, capability, **size)
    assert (count(kernel, "wgmma.mma_async") > 0) == (capability == 90)
