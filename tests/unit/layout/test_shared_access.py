"""Accesses to buffers whose layout is given: those that TMA and wgmma read and write."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.layout.simulate import Place, count_degree, each_element, register_file
from tests.unit.layout.strategies import blocked_layouts, tile_layouts
from tilewright.layout import (
    FRAGMENTS,
    LinearLayout,
    SharedAccess,
    blocked,
    operand_layout,
    plan_shared_access,
    result_layout,
    shared_row_major,
    shared_swizzled,
    wgmma_fragment,
)


def assert_moved(
    access: SharedAccess, buffer: LinearLayout, layout: LinearLayout, bits: int
) -> None:
    """Every register moves to or from the element's own offset, once for each element that a
    store has to write; conflicts are as many as counted."""
    elements = register_file(layout)
    moved: set[Place] = set()

    def visit(offset: int, place: Place) -> None:
        assert place not in moved, "a register is moved twice"
        moved.add(place)
        assert buffer.apply(offset=offset) == elements[place]

    each_element(access, layout, bits, visit)
    assert {elements[place] for place in moved} == set(elements.values())
    assert access.degree == count_degree(access, layout, bits)


@st.composite
def buffers(draw: st.DrawFn) -> tuple[LinearLayout, int]:
    """A canonical buffer, or a row-major one, and the bits of an element."""
    bits, swizzle = draw(st.sampled_from([(8, 32), (16, 32), (16, 64), (16, 128), (32, 128)]))
    width = swizzle * 8 // bits
    shape = [1 << draw(st.integers(2, 4)), width << draw(st.integers(0, 1))]
    order = draw(st.sampled_from([(1, 0), (0, 1)]))
    if order == (0, 1):
        shape.reverse()
    plain = draw(st.integers(0, 3)) == 0
    if plain:
        return shared_row_major(shape, order), bits
    return shared_swizzled(shape, bits, swizzle, order), bits


@settings(max_examples=40)
@given(data=st.data())
def test_any_register_layout_reaches_any_buffer(data):
    buffer, bits = data.draw(buffers())
    rows, columns = buffer.shape
    either = st.one_of(tile_layouts((rows, columns), 1), blocked_layouts((rows, columns), 1))
    layout = data.draw(either)
    matrix, store = data.draw(st.booleans()), data.draw(st.booleans())
    access = plan_shared_access(buffer, layout, bits, matrix=matrix, store=store)
    assert_moved(access, buffer, layout, bits)
    if not store:
        assert sorted(r for group in access.groups for r in group) == list(
            range(layout.in_size("register"))
        )
    most = data.draw(st.sampled_from([1, 2, 4, 64]))
    copy = plan_shared_access(buffer, layout, bits, copy=True, max_elements=most)
    assert_moved(copy, buffer, layout, bits)
    assert copy.in_order and copy.kind == "vector" and len(copy.groups[0]) <= most


def coalesced(shape: tuple[int, ...], vector: int, along: int, warps: int) -> LinearLayout:
    """Neighbouring lanes take neighbouring vectors along the contiguous dim."""
    lanes = min(32, shape[along] // vector)
    per_thread, threads, share = [1, 1], [32 // lanes, 32 // lanes], [warps, warps]
    per_thread[along], threads[along], share[along] = vector, lanes, 1
    return blocked(shape, per_thread, threads, share, (along, 1 - along))


def canonical(shape: tuple[int, ...], bits: int, along: int) -> LinearLayout:
    """The widest swizzle that the rows of a tile have which is contiguous along a dim."""
    swizzle = next(width for width in (128, 64, 32) if shape[along] * bits // 8 >= width)
    return shared_swizzled(shape, bits, swizzle, (along, 1 - along))


SHAPES = [(64, 64), (128, 32), (32, 128), (64, 256), (128, 128), (256, 32)]


@pytest.mark.parametrize("shape, along", list(product(SHAPES, (0, 1))))
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_coalesced_copies_fill_canonical_buffers_without_conflicts(shape, bits, along):
    buffer = canonical(shape, bits, along)
    for size in (16, 8, 4):
        vector = max(1, size * 8 // bits)
        layout = coalesced(shape, vector, along, 4)
        access = plan_shared_access(buffer, layout, bits, copy=True)
        assert (access.bits, access.in_order) == (max(bits, 8 * size), True)
        assert access.degree == count_degree(access, layout, bits) == 1


def test_a_copy_is_no_wider_than_its_source_is_aligned():
    buffer = shared_swizzled((64, 64), 16, 128)
    layout = coalesced((64, 64), 8, 1, 4)
    access = plan_shared_access(buffer, layout, 16, copy=True, max_elements=4)
    assert (access.bits, access.in_order) == (64, True)
    # Registers in another order than memory hold no vectors that a copy could move.
    turned = layout.with_columns("register", layout.packed("register")[::-1])
    assert plan_shared_access(buffer, turned, 16, copy=True).bits == 16
    assert plan_shared_access(buffer, turned, 16, store=True).bits == 128


OPERANDS = [("m16n8k16.b16", 16), ("m16n8k8.b16", 16), ("m16n8k8.tf32", 32), ("m16n8k32.b8", 8)]


@pytest.mark.parametrize("name, bits", OPERANDS)
@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("row_bytes", [32, 64, 128, 256])
def test_operands_of_mma_come_out_of_canonical_buffers_by_ldmatrix(name, bits, operand, row_bytes):
    fragment = FRAGMENTS[name]
    k = row_bytes * 8 // bits
    layout = operand_layout(fragment, result_layout(fragment, (128, 128), (2, 2)), operand, k)
    k_dim = 1 if operand == "a" else 0
    access = plan_shared_access(canonical(layout.shape, bits, k_dim), layout, bits, matrix=True)
    assert (access.kind, access.degree) == ("matrix", 1)
    assert count_degree(access, layout, bits) == 1
    if bits == 16:
        turned = canonical(layout.shape, 16, 1 - k_dim)
        access = plan_shared_access(turned, layout, 16, matrix=True)
        assert (access.kind, access.degree) == ("matrix_trans", 1)
        assert count_degree(access, layout, 16) == 1


@pytest.mark.parametrize("n", [16, 32, 64, 128, 256])
@pytest.mark.parametrize("along", [0, 1])
def test_results_of_16_bits_enter_canonical_buffers_by_stmatrix(n, along):
    fragment = wgmma_fragment(n, 16)
    layout = result_layout(fragment, (128, n), (2, 1))
    buffer = canonical((128, n), 16, along)
    access = plan_shared_access(buffer, layout, 16, matrix=True, store=True)
    assert access.kind == ("matrix" if along == 1 else "matrix_trans")
    assert (access.bits, access.degree) == (128, 1)
    assert count_degree(access, layout, 16) == 1


def test_wgmma_operands_in_registers_come_from_canonical_buffers_by_ldmatrix():
    for bits, along in ((8, 1), (16, 0), (16, 1), (32, 1)):
        fragment = wgmma_fragment(128, bits)
        result = result_layout(fragment, (128, 128), (2, 1))
        layout = operand_layout(fragment, result, "a", 1024 // bits)
        buffer = canonical(layout.shape, bits, along)
        access = plan_shared_access(buffer, layout, bits, matrix=True)
        assert access.kind == ("matrix" if along == 1 else "matrix_trans")
        assert (access.bits, access.degree) == (128, 1)
        assert count_degree(access, layout, bits) == 1
