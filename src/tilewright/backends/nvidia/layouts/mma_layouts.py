"""Select the mma instruction of a dot, and its split among warps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import ge

from tilewright.ir.types import DType, dtype_of, shape_of
from tilewright.layout import (
    FRAGMENTS,
    REGISTER,
    WARP,
    Fragment,
    LinearLayout,
    log2,
    operand_layout,
    result_layout,
    slice_of,
    tile_dims,
)
from tilewright.ops import DotOp
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class DotLayouts:
    """Layouts of one dot, and the instruction that computes it."""

    fragment: Fragment
    a: LinearLayout
    b: LinearLayout
    result: LinearLayout


def find_fragment(dtype: DType, shape: tuple[int, int, int]) -> Fragment | None:
    """The largest instruction for operands of a type within (m, n, k); None if there is none."""
    sizes = ((f, (f.m, f.n, f.k)) for f in _fragments(dtype))
    return next((f for f, size in sizes if all(map(ge, shape, size))), None)


def smallest_mma(dtype: DType, inner: int) -> tuple[int, int, int]:
    """The extents (m, n, k) of the instruction for operands of a type that has the least k, or the
    largest k that is no more than `inner`."""
    fragments = _fragments(dtype)
    chosen = next((f for f in fragments if f.k <= inner), fragments[-1])
    return chosen.m, chosen.n, chosen.k


_SELECTED = {
    8: ("m16n8k32.b8",),
    16: ("m16n8k16.b16", "m16n8k8.b16"),
    32: ("m16n8k8.tf32",),
    64: ("m8n8k4.f64",),
}
"""Instructions by the bits of an operand, the largest first. Turing's smaller ones compute parts of
these; m16n8 of f64, which Hopper has, is not used."""


def _fragments(dtype: DType) -> list[Fragment]:
    """The instructions for operands of a type, those with the largest k first."""
    return [FRAGMENTS[name] for name in _SELECTED.get(dtype.bits, ())]


def fragment_for(op: DotOp) -> Fragment:
    """The instruction of a dot; see legalize_dots.py for the dots that have one."""
    *_, m, k = shape_of(op.a.type)
    fragment = find_fragment(dtype_of(op.a.type), (m, shape_of(op.type)[-1], k))
    assert fragment is not None, op
    return fragment


def dot_layouts(op: DotOp, share: tuple[int, int]) -> DotLayouts:
    """Layouts for mma.sync; share: warps along the rows and along the columns of the result."""
    fragment = fragment_for(op)
    result = _result(fragment, shape_of(op.type), share)
    a, b = (dot_operand(op, index, result) for index in range(2))
    return DotLayouts(fragment, a, b, result)


def dot_operand(op: DotOp, index: int, result: LinearLayout) -> LinearLayout:
    """The layout of an operand of a dot whose result has this layout."""
    if index == 2:
        return result
    return _operand(fragment_for(op), result, index, shape_of(op.a.type)[-1])


def is_dot_layout(op: DotOp, layout: LinearLayout) -> bool:
    """Whether the instructions of a dot can leave its result in a layout."""
    fragment, shape = fragment_for(op), shape_of(op.type)
    return any(_result(fragment, shape, share) == layout for share in shares(layout.in_size(WARP)))


@lru_cache(maxsize=1024)
def _result(fragment: Fragment, shape: tuple[int, ...], share: tuple[int, int]) -> LinearLayout:
    *batch, m, n = shape
    return _batched(result_layout(fragment, (m, n), share), batch)


@lru_cache(maxsize=1024)
def _operand(fragment: Fragment, result: LinearLayout, index: int, k: int) -> LinearLayout:
    batch = result.shape[:-2]
    single = result
    # Batches repeat one matrix's layout in registers.
    for _ in batch:
        single = slice_of(single, 0)
    return _batched(operand_layout(fragment, single, "a" if index == 0 else "b", k), batch)


def shares(warps: int) -> list[tuple[int, int]]:
    """The ways to share a result: warps along its rows and along its columns."""
    return [(warps >> bit, 1 << bit) for bit in range(log2(warps) + 1)]


def square_share(op: DotOp, warps: int) -> tuple[int, int]:
    """Each warp's part as square as it can be, so that warps read few operands: the longer side
    is halved first."""
    fragment = fragment_for(op)
    *_, m, n = shape_of(op.type)
    along_m = along_n = 1
    while along_m * along_n < warps:
        rows, columns = m // along_m, n // along_n
        # A side of one instruction is not halved: the warps would compute the same.
        if rows > fragment.m and (rows >= columns or columns <= fragment.n):
            along_m *= 2
        elif columns > fragment.n:
            along_n *= 2
        else:
            # Neither side has a whole instruction left for each warp: some hold copies.
            along_m *= 2
    return along_m, along_n


def _batched(layout: LinearLayout, batch: Sequence[int]) -> LinearLayout:
    """The layout for several matrices, each spread like one, in further registers."""
    for count in batch:
        bases = {name: [(0, *basis) for basis in layout.bases(name)] for name in layout.in_names}
        rest = (0,) * len(layout.outs)
        # Highest register bits: the registers of one matrix stay together.
        bases[REGISTER] += [(1 << bit, *rest) for bit in range(log2(count))]
        layout = LinearLayout.from_bases(bases, tile_dims((count, *layout.shape)))
    return layout
