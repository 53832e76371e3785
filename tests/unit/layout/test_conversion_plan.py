"""Conversion plans: which kind is chosen, and the cases that kernels meet every day."""

import time

import pytest

from tests.unit.layout.simulate import count_degree, register_file, run_plan
from tilewright.layout import (
    FRAGMENTS,
    ConversionPlan,
    Identity,
    LinearLayout,
    RegisterPermute,
    SharedMemory,
    WarpShuffle,
    blocked,
    operand_layout,
    plan,
    result_layout,
    slice_of,
    wgmma_fragment,
)

B16 = FRAGMENTS["m16n8k16.b16"]
ROWS = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0))


def checked(src: LinearLayout, dst: LinearLayout, bits: int, **options: object) -> ConversionPlan:
    """A plan that has been executed and whose conflict degrees have been counted."""
    chosen = plan(src, dst, bits, **options)
    assert run_plan(chosen, src, dst, bits) == register_file(dst)
    if isinstance(chosen, SharedMemory):
        assert count_degree(chosen.store, src, bits) == chosen.store.degree
        assert count_degree(chosen.load, dst, bits) == chosen.load.degree
    return chosen


def shared(src: LinearLayout, dst: LinearLayout, bits: int, **options: object) -> SharedMemory:
    chosen = checked(src, dst, bits, **options)
    assert isinstance(chosen, SharedMemory)
    return chosen


def widths(chosen: SharedMemory) -> tuple[str, int, str, int]:
    return chosen.store.kind, chosen.store.bits, chosen.load.kind, chosen.load.bits


def test_same_layout_is_identity():
    assert checked(ROWS, ROWS, 16) == Identity()
    assert plan(ROWS, ROWS.reorder_outs(["dim1", "dim0"]), 16) == Identity()


def test_registers_in_another_order():
    dst = ROWS.with_columns("register", ROWS.packed("register")[::-1])
    chosen = checked(ROWS, dst, 16)
    assert isinstance(chosen, RegisterPermute)
    assert chosen.sources[1] == 16 and chosen.cost == 0


def test_copies_stay_where_they_are():
    """A row that all warps hold serves a layout in which only some of its registers are kept."""
    row = slice_of(blocked((16, 64), (1, 4), (2, 16), (4, 1), (1, 0)), 0)
    wide = row.with_columns("register", (*row.packed("register"), 0))
    assert checked(wide, row, 32) == RegisterPermute((0, 1, 2, 3))
    doubled = checked(row, wide, 32)
    assert doubled == RegisterPermute((0, 1, 2, 3, 0, 1, 2, 3))


def test_few_values_are_shuffled():
    src = LinearLayout.parse("register=(1) lane=(2..32) warp=(64) -> dim0:128")
    dst = LinearLayout.parse("register=(32) lane=(1..16) warp=(64) -> dim0:128")
    chosen = checked(src, dst, 32)
    assert isinstance(chosen, WarpShuffle)
    assert (chosen.exchange.shuffles, chosen.exchange.selects) == (2, 4)


def test_halves_travel_together():
    """With 16-bit elements two registers that keep company take one shuffle."""
    src = LinearLayout.parse("register=(1)(2) lane=(4..64) -> dim0:128")
    dst = LinearLayout.parse("register=(1)(64) lane=(2..32) -> dim0:128")
    for bits, count in ((16, 2), (32, 4), (64, 8)):
        chosen = checked(src, dst, bits)
        assert isinstance(chosen, WarpShuffle) and chosen.exchange.shuffles == count


def test_one_value_to_all_lanes():
    src = LinearLayout.parse("register= lane=(1..8)(0) -> dim0:16")
    dst = LinearLayout.parse("register=(1..8) lane=(0)(0)(0)(0)(0) -> dim0:16")
    chosen = checked(src, dst, 32)
    assert isinstance(chosen, WarpShuffle)
    assert [r.source(7) for r in chosen.exchange.rounds] == list(range(16))


def test_many_values_to_all_lanes_are_read_as_vectors():
    src = LinearLayout.parse("register= lane=(1..16) -> dim0:32")
    dst = LinearLayout.parse("register=(1..16) lane=(0)(0)(0)(0)(0) -> dim0:32")
    chosen = shared(src, dst, 32)
    assert chosen.is_inside_warps and len(chosen.load.groups) == 8


def test_other_warps_need_shared_memory():
    src = LinearLayout.parse("register= lane=(1..16) warp=(32) -> dim0:64")
    dst = LinearLayout.parse("register= lane=(2..32) warp=(1) -> dim0:64")
    assert not shared(src, dst, 32).warp_local


def test_warp_local_memory_is_recognized():
    src = result_layout(B16, (64, 128), (4, 1))
    dst = blocked((64, 128), (1, 8), (2, 16), (4, 1), (1, 0))
    local = dst.with_columns("warp", src.packed("warp"))
    local = local.with_columns(
        "register", [*dst.packed("register")[:3], *(1 << i for i in (1, 2, 3))]
    )
    assert shared(src, local, 32).warp_local
    assert not shared(src, dst, 32).warp_local


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("shape", [(64, 64), (128, 64)])
def test_transposes_are_free_of_conflicts(bits: int, shape: tuple[int, int]):
    """Rows of 16 bytes to columns of 16 bytes, as a transposing kernel does."""
    v = 128 // bits
    src = blocked(shape, (1, v), (32 * v // 64 or 1, min(32, 64 // v)), (4, 1), (1, 0))
    dst = blocked(shape, (v, 1), (min(32, 64 // v), 32 * v // 64 or 1), (1, 4), (0, 1))
    chosen = shared(src, dst, bits, matrix_loads=False)
    assert chosen.degree == 1
    assert max(chosen.store.bits, chosen.load.bits) == 128
    assert shared(src, dst, bits).degree == 1


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_square_blocks_transpose_with_vectors_on_both_sides(bits: int):
    src = blocked((64, 64), (4, 4), (4, 8), (4, 1), (1, 0))
    dst = blocked((64, 64), (4, 4), (8, 4), (1, 4), (0, 1))
    chosen = shared(src, dst, bits)
    assert chosen.degree == 1
    assert chosen.store.bits == chosen.load.bits == 128


@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("contiguous", ["k", "mn"])
def test_operands_of_16_bits_go_through_ldmatrix(operand, contiguous):
    result = result_layout(B16, (64, 64), (2, 2))
    dst = operand_layout(B16, result, operand, 32)
    along_rows = (operand == "a") == (contiguous == "k")
    order = (1, 0) if along_rows else (0, 1)
    inner = dst.shape[order[0]] // 8
    per_thread = (1, 8) if along_rows else (8, 1)
    lanes = (32 // inner, inner) if along_rows else (inner, 32 // inner)
    src = blocked(dst.shape, per_thread, lanes, (4, 1) if along_rows else (1, 4), order)
    chosen = shared(src, dst, 16)
    form = "matrix" if contiguous == "k" else "matrix_trans"
    assert widths(chosen) == ("vector", 128, form, 128)
    assert chosen.degree == 1 and chosen.store.in_order


@pytest.mark.parametrize("name", ["m16n8k32.b8", "m16n8k8.tf32", "m16n8k16.f64"])
@pytest.mark.parametrize("operand", ["a", "b"])
def test_operands_of_other_widths(name, operand):
    """K contiguous: 8-bit elements take ldmatrix; wide ones find vectors as cheap as that."""
    fragment = FRAGMENTS[name]
    result = result_layout(fragment, (64, 64), (2, 2))
    dst = operand_layout(fragment, result, operand, 64)
    vector = 128 // fragment.element_bits
    inner = min(32, 64 // vector)
    if operand == "a":
        src = blocked(dst.shape, (1, vector), (32 // inner, inner), (4, 1), (1, 0))
    else:
        src = blocked(dst.shape, (vector, 1), (inner, 32 // inner), (1, 4), (0, 1))
    chosen = shared(src, dst, fragment.element_bits)
    assert chosen.degree == 1 and chosen.store.bits == chosen.load.bits == 128
    assert chosen.load.kind == ("matrix" if name == "m16n8k32.b8" else "vector")


@pytest.mark.parametrize("bits", [16, 32])
def test_epilogue(bits: int):
    """The accumulators of mma.sync and wgmma to rows of 16 bytes."""
    for fragment, warps in ((B16, (2, 2)), (wgmma_fragment(64, 16), (1, 1))):
        src = result_layout(fragment, (64, 64), warps)
        dst = blocked((64, 64), (1, 128 // bits), (bits // 4, 128 // bits), (4, 1), (1, 0))
        chosen = shared(src, dst, bits)
        assert chosen.degree == 1 and chosen.store.bits + chosen.load.bits >= 128
        with_matrices = shared(src, dst, bits, matrix_stores=True)
        assert with_matrices.degree == 1
        if bits == 16:
            assert "matrix" in (with_matrices.store.kind, with_matrices.load.kind)
            assert with_matrices.store.bits == with_matrices.load.bits == 128


def test_registers_of_operand_change_inside_the_warp():
    """The result of an 8-bit product as the next 8-bit operand: the fp8 attention conversion."""
    fragment = FRAGMENTS["m16n8k32.b8"]
    src = result_layout(fragment, (64, 64), (4, 1))
    dst = operand_layout(fragment, src, "a", 64)
    chosen = checked(src, dst, 8)
    assert isinstance(chosen, WarpShuffle)
    assert chosen.exchange.shuffles == 8  # 32 elements a thread, four to a word


def test_refusals():
    with pytest.raises(ValueError, match="1 bits"):
        plan(ROWS, ROWS, 1)
    with pytest.raises(ValueError, match="same tile"):
        plan(ROWS, ROWS.transpose((1, 0)).reshape((32, 128)), 16)
    with pytest.raises(ValueError, match="number of lanes or warps"):
        plan(ROWS, blocked((64, 64), (1, 8), (4, 8), (2, 1), (1, 0)), 16)


def test_planning_is_quick():
    """A 128 x 128 tile on 8 warps: 0.4 ms here; 2 ms is the budget, the best of five counts."""
    src = result_layout(B16, (128, 128), (4, 2))
    dst = blocked((128, 128), (1, 8), (2, 16), (8, 1), (1, 0))
    best = float("inf")
    for _ in range(5):
        plan.cache_clear()
        start = time.process_time()
        plan(src, dst, 32)
        best = min(best, time.process_time() - start)
    assert best < 2e-3
