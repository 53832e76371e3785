"""Tensor-core fragments against the index formulas of the PTX ISA."""

from collections.abc import Callable
from itertools import product

import pytest

from tilewright.layout import (
    FRAGMENTS,
    LinearLayout,
    operand_layout,
    result_layout,
    wgmma_fragment,
)

Formula = Callable[[int, int, int], tuple[int, int]]  # (register, group, thread in group)

A_FORMULAS: dict[str, Formula] = {
    "m16n8k16.b16": lambda i, g, t: (g + 8 * (i // 2 % 2), t * 2 + i % 2 + 8 * (i >= 4)),
    "m16n8k8.b16": lambda i, g, t: (g + 8 * (i >= 2), t * 2 + i % 2),
    "m16n8k8.tf32": lambda i, g, t: (g + 8 * (i in (1, 3)), t + 4 * (i >= 2)),
    "m16n8k32.b8": lambda i, g, t: (
        g + 8 * (not (i < 4 or 8 <= i < 12)),
        t * 4 + i % 4 + 16 * (i >= 8),
    ),
    "m16n8k4.tf32": lambda i, g, t: (g + 8 * i, t),
    "m16n8k4.f64": lambda i, g, t: (g + 8 * i, t),
    "m16n8k16.b8": lambda i, g, t: (g + 8 * (i >= 4), t * 4 + i % 4),
    "m8n8k4.f64": lambda i, g, t: (g, t),
    "m8n8k16.b8": lambda i, g, t: (g, t * 4 + i),
    "m16n8k8.f64": lambda i, g, t: (g + 8 * (i % 2), t + 4 * (i // 2)),
    "m16n8k16.f64": lambda i, g, t: (g + 8 * (i % 2), t + 4 * (i // 2)),
}
B_FORMULAS: dict[str, Formula] = {
    "m16n8k16.b16": lambda i, g, t: (t * 2 + i % 2 + 8 * (i >= 2), g),
    "m16n8k8.b16": lambda i, g, t: (t * 2 + i % 2, g),
    "m16n8k8.tf32": lambda i, g, t: (t + 4 * i, g),
    "m16n8k32.b8": lambda i, g, t: (t * 4 + i % 4 + 16 * (i >= 4), g),
    "m16n8k4.tf32": lambda i, g, t: (t, g),
    "m16n8k4.f64": lambda i, g, t: (t, g),
    "m16n8k16.b8": lambda i, g, t: (t * 4 + i, g),
    "m8n8k4.f64": lambda i, g, t: (t, g),
    "m8n8k16.b8": lambda i, g, t: (t * 4 + i, g),
    "m16n8k8.f64": lambda i, g, t: (t + 4 * i, g),
    "m16n8k16.f64": lambda i, g, t: (t + 4 * i, g),
}


def c_formula(i: int, g: int, t: int) -> tuple[int, int]:
    return (g + 8 * (i >= 2), t * 2 + i % 2)


def check(layout: LinearLayout, formula: Formula):
    assert layout.is_bijective
    for register, lane in product(range(layout.in_size("register")), range(32)):
        expected = formula(register, lane // 4, lane % 4)
        assert layout.apply(register=register, lane=lane) == expected


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments_are_those_of_the_isa(name: str):
    fragment = FRAGMENTS[name]
    assert fragment.b is not None
    check(fragment.a, A_FORMULAS[name])
    check(fragment.b, B_FORMULAS[name])
    check(fragment.c, c_formula)
    assert fragment.a.shape == (fragment.m, fragment.k)
    assert fragment.b.shape == (fragment.k, fragment.n)
    assert fragment.c.shape == (fragment.m, fragment.n)


def test_every_formula_is_used():
    assert set(A_FORMULAS) == set(B_FORMULAS) == set(FRAGMENTS)


@pytest.mark.parametrize("n, bits", list(product((8, 64, 256), (8, 16, 32))))
def test_wgmma_result(n: int, bits: int):
    fragment = wgmma_fragment(n, bits)
    assert fragment.warps == 4 and fragment.c.is_bijective
    for r, lane, warp in product(range(n // 2), range(0, 32, 5), range(4)):
        expected = (16 * warp + lane // 4 + 4 * (r & 2), 8 * (r >> 2) + 2 * (lane & 3) + (r & 1))
        assert fragment.c.apply(register=r, lane=lane, warp=warp) == expected


def test_wgmma_operand_in_registers():
    fragment = wgmma_fragment(128, 16)
    result = result_layout(fragment, (128, 128), (2, 1))
    assert str(operand_layout(fragment, result, "a", 64)) == (
        "register=(0,1)(8,0)(0,8..32) lane=(0,2..4)(1..4,0) warp=(16..64,0) -> dim0:128 dim1:64"
    )
    with pytest.raises(ValueError, match="shared memory only"):
        operand_layout(fragment, result, "b", 64)
    with pytest.raises(ValueError, match="no linear wgmma"):
        wgmma_fragment(96, 16)
    with pytest.raises(ValueError, match="no linear wgmma"):
        wgmma_fragment(64, 64)


def test_result_of_a_chained_product_is_the_next_operand():
    """What attention relies on: the result of Q K^T is the A fragment of P V as it stands."""
    fragment = FRAGMENTS["m16n8k16.b16"]
    scores = result_layout(fragment, (64, 32), (4, 1))
    values = result_layout(fragment, (64, 128), (4, 1))
    assert scores == operand_layout(fragment, values, "a", 32)


@pytest.mark.parametrize("name", FRAGMENTS)
@pytest.mark.parametrize(
    "shape, warps", [((64, 64), (2, 2)), ((16, 128), (1, 4)), ((32, 8), (2, 1))]
)
def test_threads_get_the_rows_and_columns_that_they_multiply(name, shape, warps):
    """What a warp owns of C finds its rows of A and columns of B in the same warp."""
    fragment = FRAGMENTS[name]
    assert fragment.b is not None
    k = 2 * fragment.k
    result = result_layout(fragment, shape, warps)
    a = operand_layout(fragment, result, "a", k)
    b = operand_layout(fragment, result, "b", k)
    assert result.rank == result.out_bits and a.rank == a.out_bits and b.rank == b.out_bits
    assert (a.shape, b.shape) == ((shape[0], k), (k, shape[1]))
    # The first registers are one whole fragment, in the order that the instruction wants.
    for whole, single in ((result, fragment.c), (a, fragment.a), (b, fragment.b)):
        for dim in ("register", "lane"):
            bases = single.bases(dim)
            assert whole.bases(dim)[: len(bases)] == bases
            later = whole.bases(dim)[len(bases) :]
            assert not any(
                x % n for basis in later for x, n in zip(basis, single.shape, strict=True)
            )
    for warp in range(result.in_size("warp")):
        rows, columns = (
            {
                result.apply(register=r, lane=lane, warp=warp)[dim]
                for r in range(result.in_size("register"))
                for lane in range(32)
            }
            for dim in (0, 1)
        )
        for layout, dim, needed in ((a, 0, rows), (b, 1, columns)):
            held = {
                layout.apply(register=r, lane=lane, warp=warp)
                for r in range(layout.in_size("register"))
                for lane in range(32)
            }
            assert {point[dim] for point in held} == needed
            assert len(held) == len(needed) * k


def test_small_tile_leaves_warps_with_copies():
    result = result_layout(FRAGMENTS["m16n8k16.b16"], (16, 16), (2, 4))
    assert result.free_masks()["warp"] == 0b101
    assert result.bases("warp") == ((0, 0), (0, 8), (0, 0))


def test_tiles_below_one_instruction_are_refused():
    with pytest.raises(ValueError, match="smaller than one m16n8k16"):
        result_layout(FRAGMENTS["m16n8k16.b16"], (8, 8), (1, 1))
    result = result_layout(FRAGMENTS["m16n8k16.b16"], (16, 8), (1, 1))
    with pytest.raises(ValueError, match="not a multiple of the 16"):
        operand_layout(FRAGMENTS["m16n8k16.b16"], result, "a", 8)
