"""Which products wgmma computes, and how warpgroups share them."""

from itertools import product

import pytest

from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.layouts.select_wgmma import (
    wgmma_obstacle,
    wgmma_result_layout,
    wgmma_sharing,
)
from tilewright.ir import Block
from tilewright.ir.types import (
    DType,
    TileType,
    bf16,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    u8,
)
from tilewright.layout import REGISTER, WARP, operand_layout, wgmma_fragment
from tilewright.ops import DotOp

H100 = row_for(90)
HALF = (f16, f16, f32)
Kinds = tuple[DType, DType, DType]


def dot(
    shape: tuple[int, ...], kinds: Kinds = HALF, precision: str = "ieee", max_imprecise: int = 0
) -> DotOp:
    """shape: batches, then m, n, k"""
    *batch, m, n, k = shape
    extents = ((m, k), (k, n), (m, n))
    types = [TileType((*batch, *e), kind) for e, kind in zip(extents, kinds, strict=True)]
    a, b, acc = Block(tuple(types)).args
    return DotOp(a, b, acc, precision, max_imprecise)


def sharing(m: int, n: int, k: int, warps: int, kinds: Kinds = HALF) -> tuple[int, int] | None:
    return wgmma_sharing(dot((m, n, k), kinds, precision="tf32"), H100, warps)


@pytest.mark.parametrize(
    "m, n, warps, columns, rows",
    [
        (128, 256, 8, 256, 2),
        (256, 128, 8, 128, 2),
        (128, 128, 4, 128, 1),
        (64, 256, 8, 128, 1),
        (64, 256, 4, 256, 1),
        (64, 64, 16, 16, 1),
        (128, 128, 16, 64, 2),
        (64, 8, 4, 8, 1),
        (256, 16, 16, 16, 4),
    ],
)
def test_rows_are_shared_before_columns(m, n, warps, columns, rows):
    assert sharing(m, n, 64, warps) == (columns, rows)
    layout = wgmma_result_layout((columns, rows), 16, (m, n), warps)
    assert layout.shape == (m, n) and layout.is_bijective and layout.in_size(WARP) == warps


def test_a_warpgroup_owns_whole_blocks_of_one_instruction():
    """The four warps of a group, and the registers of one instruction, cover one block."""
    for (m, n), warps in product([(64, 32), (128, 64), (256, 128), (128, 256)], (4, 8, 16)):
        if (shared := sharing(m, n, 64, warps)) is None:
            continue
        result, columns = wgmma_result_layout(shared, 16, (m, n), warps), shared[0]
        count = columns // 2
        for group, start in product(range(warps // 4), range(0, result.in_size(REGISTER), count)):
            row, column = result.apply(register=start, warp=4 * group)
            assert row % 64 == column % columns == 0
            block = {
                result.apply(register=start + r, lane=lane, warp=4 * group + w)
                for r, lane, w in product(range(count), range(32), range(4))
            }
            assert block == set(product(range(row, row + 64), range(column, column + columns)))


@pytest.mark.parametrize("shape, warps", [
    ((32, 128, 64), 4), ((64, 4, 64), 4), ((64, 128, 8), 4), ((64, 8, 64), 8),
    ((128, 128, 64), 2), ((128, 128, 64), 1), ((128, 256, 64), 4), ((256, 256, 64), 8),
    ((2, 64, 64, 64), 4),
])  # fmt: skip
def test_shapes_that_do_not_fit_are_left_to_mma(shape, warps):
    assert wgmma_sharing(dot(shape), H100, warps) is None


EIGHT = (f8e4m3, f8e5m2)
SUPPORTED = [
    (HALF, 16), ((f16, f16, f16), 16), ((bf16, bf16, f32), 16), ((f32, f32, f32), 8),
    *(((a, b, f32), 32) for a in EIGHT for b in EIGHT),
    *(((a, b, i32), 32) for a in (i8, u8) for b in (i8, u8)),
]  # fmt: skip
UNSUPPORTED = [
    (bf16, bf16, bf16), (f16, bf16, f32), (f64, f64, f64), (i8, i8, f32), (i32, i32, i32),
    (i1, i1, i32), (f16, f32, f32), (f16, f8e4m3, f32), (i8, f8e4m3, i32), (f32, f32, f16),
]  # fmt: skip


@pytest.mark.parametrize("kinds, k", SUPPORTED)
def test_supported_types(kinds, k):
    assert sharing(64, 64, k, 4, kinds) == (64, 1)
    assert wgmma_fragment(64, kinds[0].bits).k == k
    assert sharing(64, 64, k // 2, 4, kinds) is None


@pytest.mark.parametrize("kinds", UNSUPPORTED)
def test_other_types_are_left_to_mma(kinds):
    assert sharing(64, 64, 64, 4, kinds) is None


def test_sums_of_16_bits_take_half_the_registers():
    assert sharing(128, 256, 64, 4, (f16, f16, f16)) == (256, 1)
    assert sharing(256, 256, 64, 4, (f16, f16, f16)) is None


def test_exactness_and_the_architecture_count():
    single, eight = (f32, f32, f32), (f8e4m3, f8e4m3, f32)
    assert wgmma_sharing(dot((64, 64, 32), single, precision="ieee"), H100, 4) is None
    assert wgmma_sharing(dot((64, 64, 32), eight, max_imprecise=32), H100, 4) is None
    assert wgmma_sharing(dot((64, 64, 32), eight), H100, 4) == (64, 1)
    for capability in (80, 100, 120):
        assert wgmma_sharing(dot((64, 64, 32), eight), row_for(capability), 4) is None


def test_a_result_is_an_operand_of_the_next_product_in_registers():
    """Weights of attention go from one product to the next without an exchange."""
    scores, values = sharing(128, 64, 128, 8), sharing(128, 128, 64, 8)
    assert scores == (64, 2) and values == (128, 2)
    result = wgmma_result_layout(values, 16, (128, 128), 8)
    weights = operand_layout(wgmma_fragment(128, 16), result, "a", 64)
    assert weights == wgmma_result_layout(scores, 16, (128, 64), 8)


@pytest.mark.parametrize("warps, noun", [(4, "1 warpgroup"), (8, "2 warpgroups")])
def test_obstacle_counts_warpgroups(warps: int, noun: str) -> None:
    obstacle = wgmma_obstacle(dot((32, 64, 64)), H100, warps)
    assert obstacle.startswith(f"{noun} cannot compute 32 x 64: 64 rows each, ")
