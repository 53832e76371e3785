"""Loads whose elements meet in one computation, in one layout.

    %labels = mem.load ... : tile<2048xi64>      two elements per thread, by their size
    %x = mem.load ... : tile<2048xf32>           four
    %y = arith.select (%labels != c), %x, ...    four of both, so that none goes to another thread

The layout is that of the longest vector: a load of larger elements takes several accesses of a
thread. A load without a run of its own, as of a row's mean for each of its columns, follows the
others, and one of addresses that were loaded keeps the layout of these:

    %row = mem.load ... : tile<1024xi64>         one of 256 that are equal, for four elements
    %x = mem.load (%row * 256 + %column) ...     four
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.analysis import Alignment
from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.layouts.layout_propagation import fastest_dim, vector_of
from tilewright.ir import Function, Op, Trait, Value
from tilewright.ir.types import TileType, element_of, shape_of
from tilewright.ops import DotOp, ForOp, IfOp, LoadOp, WhileOp, pointee
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class Vector:
    """Consecutive elements per thread along a dim."""

    dim: int
    length: int


def joined_vectors(
    function: Function, facts: Mapping[Value, Alignment], most: int
) -> dict[LoadOp, Vector]:
    """The vectors of loads whose group has longer ones; most: bytes of one access."""
    groups = _Groups(function)
    loads: dict[Value, list[LoadOp]] = {}
    for op in function.walk():
        if isinstance(op, LoadOp) and shape_of(op.type):
            loads.setdefault(groups.of(op.result), []).append(op)
    found: dict[LoadOp, Vector] = {}
    for leader, group in loads.items():
        if len(group) > 1 and leader not in groups.of_dots:
            found.update(_joined(group, facts, most))
    return found


def _joined(
    group: Sequence[LoadOp], facts: Mapping[Value, Alignment], most: int
) -> Iterator[tuple[LoadOp, Vector]]:
    vectors = [_own(op, facts[op.pointer], most) for op in group]
    longest = max(vectors, key=lambda vector: vector.length)
    for op, own in zip(group, vectors, strict=True):
        if own.length < longest.length and _can_follow(facts[op.pointer], own, longest):
            yield op, longest


def _own(op: LoadOp, fact: Alignment, most: int) -> Vector:
    size = element_of(pointee(op.pointer.type)).bytes
    return Vector(fastest_dim(fact), vector_of(shape_of(op.type), size, fact, most))


def _can_follow(fact: Alignment, own: Vector, longest: Vector) -> bool:
    """Whether a thread may have a longer vector: of one run, or of elements without any."""
    if max(fact.contiguity) == 1:
        return True
    return own.dim == longest.dim and fact.contiguity[own.dim] >= longest.length


class _Groups:
    """Groups of tiles of one shape that element-wise ops connect with loads and dots, addresses of
    loads included. Other tiles are recomputed in any layout, or have that of their operands."""

    def __init__(self, function: Function) -> None:
        self._leader: dict[Value, Value] = {}
        self._loaded: set[Value] = set()
        dots: list[Value] = []
        for op in function.walk():
            self._add(op)
            if isinstance(op, DotOp | WgmmaOp):
                dots += op.results
        self.of_dots = {self.of(value) for value in dots}

    def of(self, value: Value) -> Value:
        """The representative tile of a group."""
        while (leader := self._leader.setdefault(value, value)) is not value:
            # Union-find with path halving.
            self._leader[value] = value = self._leader.setdefault(leader, leader)
        return value

    def _add(self, op: Op) -> None:
        if isinstance(op, ForOp | WhileOp | IfOp):
            self._add_regions(op)
        elif Trait.ELEMENTWISE in op.traits:
            made = [value for value in op.operands if value in self._leader]
            if made:
                self._join([*made, *op.results])
            if not self._loaded.isdisjoint(made):
                self._loaded.update(op.results)
        elif isinstance(op, LoadOp):
            self._loaded.add(op.result)
            self._join([op.result, op.pointer] if op.pointer in self._loaded else [op.result])
        elif isinstance(op, DotOp | WgmmaOp):
            self.of(op.results[0])

    def _add_regions(self, op: ForOp | WhileOp | IfOp) -> None:
        if not isinstance(op, IfOp):
            carried = op.carried if isinstance(op, ForOp) else op.before.args
            for values in zip(op.inits, carried, op.results, strict=True):
                self._join(values)
        if not isinstance(op, WhileOp):
            for region in op.regions:
                for values in zip(region.terminator.operands, op.results, strict=True):
                    self._join(values)

    def _join(self, values: Sequence[Value]) -> None:
        tiles = [value for value in values if isinstance(value.type, TileType)]
        for tile in tiles:
            self._leader[self.of(tile)] = self.of(tiles[0])
