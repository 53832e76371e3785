"""Accesses to buffers whose layout is given, and the choice of a buffer for a pipeline."""

from itertools import product

import pytest

from tests.unit.layout.simulate import count_degree
from tilewright.layout import (
    FRAGMENTS,
    blocked,
    operand_layout,
    plan_shared_access,
    plan_shared_conversion,
    result_layout,
    shared_row_major,
    shared_swizzled,
)

B16 = FRAGMENTS["m16n8k16.b16"]
RESULT = result_layout(B16, (128, 128), (2, 2))
OPERANDS = {name: operand_layout(B16, RESULT, name, 64) for name in ("a", "b")}


@pytest.mark.parametrize("operand, order", list(product("ab", [(1, 0), (0, 1)])))
def test_ldmatrix_from_the_hardware_swizzle(operand, order):
    layout = OPERANDS[operand]
    buffer = shared_swizzled(layout.shape, 16, 128, order)
    access = plan_shared_access(buffer, layout, 16, matrix=True)
    k_contiguous = (operand == "a") == (order == (1, 0))
    assert access.kind == ("matrix" if k_contiguous else "matrix_trans")
    assert (access.bits, access.degree) == (128, 1)
    assert count_degree(access, layout, 16) == 1


def test_without_swizzle_rows_conflict():
    layout = OPERANDS["a"]
    access = plan_shared_access(shared_row_major(layout.shape), layout, 16, matrix=True)
    assert access.degree == count_degree(access, layout, 16) == 8


def test_stmatrix_into_a_swizzled_buffer():
    buffer = shared_swizzled((128, 128), 16, 128)
    access = plan_shared_access(buffer, RESULT, 16, matrix=True, store=True)
    assert (access.kind, access.bits, access.degree) == ("matrix", 128, 1)
    plain = plan_shared_access(buffer, RESULT, 16, store=True)
    assert (plain.kind, plain.bits) == ("vector", 32)


def test_vectors_end_where_the_swizzle_cuts():
    layout = blocked((64, 128), (1, 16), (4, 8), (4, 1), (1, 0))
    access = plan_shared_access(shared_swizzled((64, 128), 8, 32), layout, 8)
    assert access.bits == 128 and access.in_order
    access = plan_shared_access(shared_swizzled((64, 128), 32, 128), layout, 32)
    assert access.bits == 128 and access.in_order
    columns = plan_shared_access(shared_row_major((64, 128), (0, 1)), layout, 32)
    assert columns.bits == 32


def test_addresses_are_those_of_the_buffer():
    layout = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0))
    buffer = shared_swizzled((64, 64), 16, 128)
    access = plan_shared_access(buffer, layout, 16)
    for i, lane, warp in product(range(len(access.groups)), range(32), range(4)):
        start = access.address.apply(instruction=i, lane=lane, warp=warp)[0]
        for step, register in enumerate(access.groups[i]):
            element = layout.apply(register=register, lane=lane, warp=warp)
            assert buffer.apply(offset=start + step) == element


def test_copies_are_stored_once():
    layout = blocked((64,), (4,), (32,), (1,), (0,)).with_columns("register", (1, 0, 1, 2))
    buffer = shared_row_major((64,))
    assert len(plan_shared_access(buffer, layout, 32, store=True).groups) == 1
    assert len(plan_shared_access(buffer, layout, 32).groups) == 4


@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("name", ["m16n8k16.b16", "m16n8k32.b8", "m16n8k8.tf32", "m16n8k16.f64"])
@pytest.mark.parametrize("along", [0, 1])
def test_a_buffer_for_a_pipeline(name: str, operand, along: int):
    """cp.async writes 16 bytes in order, the operand is read by ldmatrix where that exists."""
    fragment = FRAGMENTS[name]
    layout = operand_layout(fragment, result_layout(fragment, (128, 128), (2, 2)), operand, 64)
    bits = fragment.element_bits
    copy = copy_layout(layout.shape, 128 // bits, along)
    chosen = plan_shared_conversion(
        copy, layout, bits, matrix_loads=True, matrix_stores=False, copy=True
    )
    assert (chosen.store.bits, chosen.store.in_order, chosen.store.degree) == (128, True, 1)
    assert chosen.load.degree == count_degree(chosen.load, layout, bits) == 1
    k_contiguous = along == (1 if operand == "a" else 0)
    expected = "vector"
    if bits == 16:
        expected = "matrix" if k_contiguous else "matrix_trans"
    elif bits < 64 and k_contiguous:
        expected = "matrix"
    assert chosen.load.kind == expected
    again = plan_shared_access(chosen.shared, layout, bits, matrix=True)
    assert again == chosen.load


def copy_layout(shape: tuple[int, ...], vector: int, along: int):
    """Threads take 16 bytes along one dim each, and fill that dim first."""
    lanes = min(32, shape[along] // vector)
    per_thread, threads, warps = [1, 1], [32 // lanes, 32 // lanes], [4, 4]
    per_thread[along], threads[along], warps[along] = vector, lanes, 1
    return blocked(shape, per_thread, threads, warps, (along, 1 - along))
