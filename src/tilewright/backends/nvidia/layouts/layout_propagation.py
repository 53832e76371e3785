"""Layouts for memory accesses and dots, and how layouts follow shape ops.

`coalesced` spreads the elements of one access so that a lane moves as wide a vector as it can and
neighbouring lanes move neighbouring addresses. A `*_source` function takes the layout of a shape
op's result, and returns that of the operand which puts every element in the thread that needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from tilewright.analysis import Alignment
from tilewright.layout import (
    LANE,
    REGISTER,
    WARP,
    LinearLayout,
    blocked,
    log2,
    slice_of,
    tile_dims,
)
from tilewright.support.data_class import dataclass

LANES = 32


def coalesced(
    shape: tuple[int, ...], element_bytes: int, facts: Alignment, warps: int, most: int
) -> LinearLayout:
    """The layout for a load or store of a tile of addresses with these facts.

    most: bytes of one access
    """
    return with_vector(shape, vector_of(shape, element_bytes, facts, most), facts, warps)


def with_vector(
    shape: tuple[int, ...],
    vector: int,
    facts: Alignment,
    warps: int,
    fastest: int | None = None,
    reduced: int | None = None,
) -> LinearLayout:
    """The same with a vector of another length, along another dim and with the warps along a
    reduced dim last, where these are given."""
    order = _by_contiguity(facts)
    if fastest is not None:
        order = (fastest, *(dim for dim in order if dim != fastest))
    # No wider than leaves an element for every thread.
    share = max(1, prod(shape) // (LANES * warps))
    return spread(shape, min(vector, _power(share)), order, warps, reduced)


def vector_of(shape: tuple[int, ...], element_bytes: int, facts: Alignment, most: int) -> int:
    """How many elements one access of at most `most` bytes may have."""
    fastest = fastest_dim(facts)
    # A vector must be consecutive, and aligned to its size: divisibility is in bytes.
    run = min(facts.contiguity[fastest], facts.divisibility[fastest] // element_bytes or 1)
    return max(1, min(run, most // element_bytes, shape[fastest]))


def fastest_dim(facts: Alignment) -> int:
    """The dim along which addresses have the longest runs."""
    return _by_contiguity(facts)[0]


def _power(number: int) -> int:
    return 1 << (number.bit_length() - 1)


def _by_contiguity(facts: Alignment) -> tuple[int, ...]:
    """Dims from the longest contiguous runs to the shortest; the last dim wins ties."""
    rank = len(facts.contiguity)
    return tuple(sorted(reversed(range(rank)), key=lambda d: -facts.contiguity[d]))


@lru_cache(maxsize=1024)
def spread(
    shape: tuple[int, ...],
    vector: int,
    order: tuple[int, ...],
    warps: int,
    reduced: int | None = None,
) -> LinearLayout:
    """Lanes, then warps, adjacent along `order`, each lane with `vector` elements.

    reduced: a dim along which warps lie only if there is no room along others
    """
    size, lanes, groups = [1] * len(shape), [1] * len(shape), [1] * len(shape)
    size[order[0]] = vector
    left_lanes, left_warps = LANES, warps
    for dim in order:
        room = max(1, shape[dim] // size[dim])
        lanes[dim] = min(left_lanes, room)
        left_lanes //= lanes[dim]
    # Warps from the slowest dim: as far as they find room there, each has whole rows.
    for dim in sorted(reversed(order), key=lambda dim: dim == reduced):
        room = max(1, shape[dim] // (size[dim] * lanes[dim]))
        groups[dim] = min(left_warps, room)
        left_warps //= groups[dim]
    # Threads beyond the elements of the tile hold copies.
    lanes[order[-1]] *= left_lanes
    groups[order[-1]] *= left_warps
    return blocked(shape, size, lanes, groups, order)


def block_layout(shape: tuple[int, ...], warps: int) -> LinearLayout:
    """Layout of dots without tensor cores: a square block of the last two dims for each thread."""
    share = max(1, prod(shape) // (LANES * warps))
    size, lanes, groups = [1] * len(shape), [1] * len(shape), [1] * len(shape)
    size[-1] = min(4, shape[-1], share)
    size[-2] = min(4, shape[-2], share // size[-1])
    left_lanes, left_warps = LANES, warps
    # 8 x 4 lanes where the tile has room, so that a warp reads few rows and columns.
    for dim, most in ((-1, 8), (-2, LANES), (-1, LANES)):
        room = max(1, shape[dim] // (size[dim] * lanes[dim]))
        more = min(left_lanes, room, most)
        lanes[dim] *= more
        left_lanes //= more
    for dim in reversed(range(len(shape))):
        groups[dim] = min(left_warps, max(1, shape[dim] // (size[dim] * lanes[dim])))
        left_warps //= groups[dim]
    lanes[0] *= left_lanes
    groups[0] *= left_warps
    return blocked(shape, size, lanes, groups, tuple(reversed(range(len(shape)))))


def default_layout(shape: tuple[int, ...], warps: int) -> LinearLayout:
    """Layout of tiles that no access decides: rows along the lanes."""
    return spread(shape, 1, tuple(reversed(range(len(shape)))), warps)


@lru_cache(maxsize=4096)
def expand_dims_source(layout: LinearLayout, axis: int) -> LinearLayout:
    """Operand layout of `expand_dims`: the same without the dim of size 1."""
    return slice_of(layout, axis)


@lru_cache(maxsize=4096)
def broadcast_source(layout: LinearLayout, source_shape: tuple[int, ...]) -> LinearLayout:
    """Operand layout of `broadcast`: coordinates along repeated dims are dropped."""
    bases = {
        name: [
            tuple(0 if n == 1 else c for c, n in zip(basis, source_shape, strict=True))
            for basis in layout.bases(name)
        ]
        for name in layout.in_names
    }
    # Registers that would be copies are dropped; lanes and warps keep their number.
    bases[REGISTER] = [basis for basis in bases[REGISTER] if any(basis)]
    return LinearLayout.from_bases(bases, tile_dims(source_shape))


@lru_cache(maxsize=4096)
def transpose_source(layout: LinearLayout, order: tuple[int, ...]) -> LinearLayout:
    """Operand layout of `transpose`: result dim k is operand dim order[k]."""
    return layout.transpose([order.index(d) for d in range(len(order))])


@lru_cache(maxsize=4096)
def transpose_target(layout: LinearLayout, order: tuple[int, ...]) -> LinearLayout:
    """Result layout of `transpose` whose operand has this layout: nothing moves."""
    return layout.transpose(order)


@lru_cache(maxsize=4096)
def reshape_source(layout: LinearLayout, source_shape: tuple[int, ...]) -> LinearLayout:
    """Operand (or result) layout of `reshape`: the same elements under other coordinates."""
    return layout.reshape(source_shape)


def _flatten(coords: Sequence[int], shape: Sequence[int]) -> int:
    index = 0
    for coord, extent in zip(coords, shape, strict=True):
        index = index * extent + coord
    return index


def _unflatten(index: int, shape: Sequence[int]) -> tuple[int, ...]:
    coords: list[int] = []
    for extent in reversed(shape):
        coords.append(index % extent)
        index //= extent
    return tuple(reversed(coords))


@lru_cache(maxsize=4096)
def with_pair(layout: LinearLayout) -> LinearLayout:
    """Result layout of `join`: a last dim of 2 in the lowest register bit."""
    bases = {name: [(*basis, 0) for basis in layout.bases(name)] for name in layout.in_names}
    bases[REGISTER] = [(*(0,) * len(layout.outs), 1), *bases[REGISTER]]
    return LinearLayout.from_bases(bases, tile_dims((*layout.shape, 2)))


@lru_cache(maxsize=4096)
def without_pair(layout: LinearLayout) -> LinearLayout | None:
    """The inverse of `with_pair`; None if there is none."""
    all_bases = [basis for name in layout.in_names for basis in layout.bases(name)]
    pairs = [basis for basis in all_bases if basis[-1]]
    if len(pairs) != 1 or layout.bases(REGISTER)[:1] != (pairs[0],) or any(pairs[0][:-1]):
        return None
    bases = {name: [b[:-1] for b in layout.bases(name)] for name in layout.in_names}
    bases[REGISTER] = bases[REGISTER][1:]
    return LinearLayout.from_bases(bases, tile_dims(layout.shape[:-1]))


@lru_cache(maxsize=4096)
def registers_between(
    result: LinearLayout, source: LinearLayout, kind: str, data: tuple[int, ...]
) -> tuple[int, ...]:
    """For each register of a shape op's result, the register of its operand that it is.

    kind and data name the op: ("expand", (axis,)), ("broadcast", shape), ("transpose", order) or
    ("reshape", source shape).
    """
    register_of = {source.apply(register=r): r for r in range(source.in_size(REGISTER))}
    return tuple(
        register_of[_source_coords(result.apply(register=r), result.shape, kind, data)]
        for r in range(result.in_size(REGISTER))
    )


def _source_coords(
    coords: tuple[int, ...], shape: tuple[int, ...], kind: str, data: tuple[int, ...]
) -> tuple[int, ...]:
    if kind == "expand":
        return coords[: data[0]] + coords[data[0] + 1 :]
    if kind == "broadcast":
        return tuple(0 if n == 1 else c for c, n in zip(coords, data, strict=True))
    if kind == "transpose":
        return tuple(coords[data.index(d)] for d in range(len(data)))
    return _unflatten(_flatten(coords, shape), data)


@lru_cache(maxsize=4096)
def with_half(layout: LinearLayout, axis: int) -> LinearLayout:
    """Result layout of `cat` of two tiles in `layout`: the highest register bit names the half."""
    shape = list(layout.shape)
    top = tuple(shape[axis] if d == axis else 0 for d in range(len(shape)))
    shape[axis] *= 2
    bases = {name: list(layout.bases(name)) for name in layout.in_names}
    bases[REGISTER].append(top)
    return LinearLayout.from_bases(bases, tile_dims(shape))


@lru_cache(maxsize=4096)
def without_half(layout: LinearLayout, axis: int) -> LinearLayout | None:
    """The inverse of `with_half`; None if there is none."""
    shape = list(layout.shape)
    shape[axis] //= 2
    top = tuple(shape[axis] if d == axis else 0 for d in range(len(shape)))
    if not shape[axis] or layout.bases(REGISTER)[-1:] != (top,):
        return None
    bases = {name: list(layout.bases(name)) for name in layout.in_names}
    del bases[REGISTER][-1]
    # Another bit reaches the upper half: the highest register bit does not name it alone.
    if any(basis[axis] >= shape[axis] for vectors in bases.values() for basis in vectors):
        return None
    return LinearLayout.from_bases(bases, tile_dims(shape))


@lru_cache(maxsize=4096)
def first_of_axis(layout: LinearLayout, axis: int, count: int) -> LinearLayout:
    """The layout of the first `count` elements along an axis, each kept where it is: registers of
    others are dropped, lanes and warps hold copies instead."""
    bases = {
        name: [tuple(0 if d == axis and c >= count else c for d, c in enumerate(basis))
               for basis in layout.bases(name)]
        for name in layout.in_names
    }  # fmt: skip
    bases[REGISTER] = [basis for basis in bases[REGISTER] if any(basis)]
    shape = (*layout.shape[:axis], count, *layout.shape[axis + 1 :])
    return LinearLayout.from_bases(bases, tile_dims(shape))


@lru_cache(maxsize=4096)
def part_along(
    layout: LinearLayout, axis: int, extent: int
) -> tuple[LinearLayout, tuple[int, ...]] | None:
    """The layout of any part of a tile of `extent` elements along an axis, and the bits of register
    numbers that name the part, the lowest first; None if other bits do."""
    if not extent:
        return None
    registers, dims = layout.bases(REGISTER), range(len(layout.shape))
    above = range(log2(extent), log2(layout.shape[axis]))
    tops = [tuple(1 << bit if d == axis else 0 for d in dims) for bit in above]
    if any(registers.count(top) != 1 for top in tops):
        return None
    bits = tuple(registers.index(top) for top in tops)
    inside = [basis for bit, basis in enumerate(registers) if bit not in bits]
    bases = {name: layout.bases(name) for name in layout.in_names} | {REGISTER: inside}
    if any(basis[axis] >= extent for vectors in bases.values() for basis in vectors):
        return None
    shape = (*layout.shape[:axis], extent, *layout.shape[axis + 1 :])
    return LinearLayout.from_bases(bases, tile_dims(shape)), bits


def with_parts(layout: LinearLayout, axis: int, extent: int) -> LinearLayout:
    """The layout of a tile of `extent` elements along an axis whose parts have a layout: the
    highest register bits name the part."""
    while layout.shape[axis] < extent:
        layout = with_half(layout, axis)
    return layout


@lru_cache(maxsize=4096)
def is_permutation(layout: LinearLayout) -> bool:
    """Whether every bit of a hardware location is one bit of one coordinate, each once, or, but
    for registers, means a copy; and every element has a location."""
    columns = [c for name in layout.in_names for c in layout.packed(name) if c]
    single = all(c & (c - 1) == 0 for c in columns)
    # As many distinct single bits as coordinates have: each element is reached.
    once = len(columns) == len(set(columns)) == layout.out_bits
    return single and once and all(layout.packed(REGISTER))


# ---- scans --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AxisOrder:
    """How a layout numbers the elements along an axis: runs of registers, lanes, warps, chunks.

    lanes, warps: bits along the axis, from the lowest coordinate up; chunk: elements of all lanes
    and warps together, and the distance of a register's next run
    """

    lanes: tuple[int, ...]
    warps: tuple[int, ...]
    chunk: int


@lru_cache(maxsize=4096)
def axis_order(layout: LinearLayout, axis: int) -> AxisOrder:
    """The order along an axis of a layout that is scannable."""
    lanes = _bits_along(layout, LANE, axis)
    warps = _bits_along(layout, WARP, axis)
    threads = [basis[axis] for name in (LANE, WARP) for basis in layout.bases(name) if basis[axis]]
    extent = layout.shape[axis]
    return AxisOrder(lanes, warps, 2 * max(threads) if threads else extent)


def _bits_along(layout: LinearLayout, name: str, axis: int) -> tuple[int, ...]:
    along = [(basis[axis], i) for i, basis in enumerate(layout.bases(name)) if basis[axis]]
    return tuple(i for _, i in sorted(along))


@lru_cache(maxsize=4096)
def is_scannable(layout: LinearLayout, axis: int) -> bool:
    """Whether coordinates along the axis are, bit by bit: registers, lanes, warps, registers; and
    adjacent bits of the lane's number, so that shuffles shift along it."""
    lanes = _bits_along(layout, LANE, axis)
    if lanes and lanes != tuple(range(lanes[0], lanes[-1] + 1)):
        return False
    owner: dict[int, str] = {}
    for name in (REGISTER, LANE, WARP):
        for basis in layout.bases(name):
            along = basis[axis]
            pure = along & (along - 1) == 0 and sum(map(bool, basis)) == 1
            if along and (not pure or along in owner):
                return False
            if along:
                owner[along] = name
    kinds = [owner[bit] for bit in sorted(owner)]
    while kinds and kinds[0] == REGISTER:
        kinds.pop(0)
    while kinds and kinds[-1] == REGISTER:
        kinds.pop()
    # The names sort as they should lie: lane before warp.
    return REGISTER not in kinds and kinds == sorted(kinds)


@lru_cache(maxsize=4096)
def scan_combinations(layout: LinearLayout, axis: int) -> int:
    """How often each thread combines two elements in a scan within warps (warp_scans.py)."""
    order, along = axis_order(layout, axis), [b[axis] for b in layout.bases(REGISTER) if b[axis]]
    chunks = 1 << sum(step >= order.chunk for step in along)
    run, lines = (1 << len(along)) // chunks, layout.in_size(REGISTER) >> len(along)
    in_chunk = run - 1 + len(order.lanes) + run
    between = 2 * chunks - 3 if chunks > 1 else 0
    return lines * (chunks * in_chunk + between)


def scan_layout(shape: tuple[int, ...], axis: int, warps: int) -> LinearLayout:
    """A scannable layout: lanes along the axis, warps on other lines first; one run a thread."""
    others = [d for d in reversed(range(len(shape))) if d != axis]
    lanes, groups, size = [1] * len(shape), [1] * len(shape), [1] * len(shape)
    left_lanes, left_warps = LANES, warps
    lanes[axis] = min(left_lanes, shape[axis])
    left_lanes //= lanes[axis]
    for dim in others:
        lanes[dim] = min(left_lanes, shape[dim])
        left_lanes //= lanes[dim]
        groups[dim] = min(left_warps, shape[dim] // lanes[dim])
        left_warps //= groups[dim]
    # Warps along the axis need an exchange, so only those that other lines do not occupy.
    groups[axis] *= min(left_warps, shape[axis] // lanes[axis])
    left_warps //= groups[axis]
    size[axis] = shape[axis] // (lanes[axis] * groups[axis])
    spare = others[0] if others else axis
    lanes[spare] *= left_lanes
    groups[spare] *= left_warps
    return blocked(shape, size, lanes, groups, (axis, *others))
