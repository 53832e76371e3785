"""One layout for each group of memory accesses whose elements meet in element-wise ops.

    %x = mem.load ... : tile<1024xf32>           four elements per thread, by their size
    mem.store ..., %y : tile<1024xbf16>          eight
    %y = arith.ext (max %x, 0)                -> eight of both: two loads, and no exchange

A load of larger elements takes several accesses per thread, a load without contiguous addresses
follows the others, and one through loaded addresses keeps their layout:

    %row = mem.load ... : tile<1024xi64>         one of 256 that are equal, for four elements
    %x = mem.load (%row * 256 + %column) ...     four

Candidates are vectors of each length and, where the group is reduced, warps along other dims; the
cheapest is chosen, with the accesses, reductions and scans of the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.analysis import Alignment, Kind, MemoryForms, symbols_of
from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.layouts.layout_propagation import (
    fastest_dim,
    is_scannable,
    scan_combinations,
    vector_of,
    with_vector,
)
from tilewright.ir import Function, Op, Trait, Value
from tilewright.ir.types import TileType, element_of, shape_of
from tilewright.layout import (
    LANE,
    REGISTER,
    WARP,
    LinearLayout,
    SharedMemory,
    WarpShuffle,
    contiguous_registers,
    plan,
    slice_of,
)
from tilewright.ops import (
    AtomicOp,
    DotOp,
    ForOp,
    IfOp,
    LoadOp,
    ReduceOp,
    ScanOp,
    StoreOp,
    WhileOp,
    loops_around,
    pointee,
)
from tilewright.support.data_class import dataclass

BARRIER = 100
"""A barrier, with the latency of shared memory that it exposes; one for each exchange, as
`insert_shared_barriers` leaves them in the code of the corpus. An estimate."""
ITERATIONS = 16
"""Estimated iterations of a loop whose bounds are unknown."""
ISSUE = 8
"""Issue slots of an access to global memory, with its share of addresses and masks, compared with
passes of 128 bytes. An estimate: casts/fp32 to bf16 is cheaper with two loads for each store than
with two stores, elementwise/gather by int64 with two loads of the index."""
_APART, _SCATTERED = 16, 32
"""Lines that a warp reads at addresses a stride apart, neighbours in adjacent lanes, and in any
other order. An estimate (ADR 0073)."""
_IN_PARTS = 2.25
"""Weight of the passes of an access that writes sectors in parts. An estimate (ADR 0073): with 2,
two loads and a store of 16 bits and a store of 32 cost as much in vectors of 8 as in those of 4."""
_WORD, _SECTOR = 4, 32
"""Bytes of a lane in one pass of a warp, and those that the L2 cache writes as a whole."""

_Access = LoadOp | StoreOp | AtomicOp


def access_layouts(
    function: Function, facts: Mapping[Value, Alignment], warps: int, most: int
) -> dict[Op, LinearLayout]:
    """The layouts of loads, stores and atomics that no dot decides, and of scans that do not follow
    their loads; most: bytes of one access."""
    groups, memory = _Groups(function), MemoryForms(function)
    found: dict[Op, LinearLayout] = {}
    for leader, ops in groups.members().items():
        if leader not in groups.of_dots:
            scattered = [
                op for op in ops if isinstance(op, _Access) and _is_scattered(op, memory, facts)
            ]
            found.update(_Group(ops, scattered, facts, warps, most).layouts())
    return found


def _is_scattered(op: _Access, memory: MemoryForms, facts: Mapping[Value, Alignment]) -> bool:
    """Whether an address is no sum of multiples of coordinates: loaded, or a quotient."""
    if max(facts[op.pointer].contiguity) > 1:
        return False
    symbols = symbols_of(memory.forms.form(op.pointer))
    return any(symbol.over_tile and symbol.kind is not Kind.DIM for symbol in symbols)


def reduction_cost(op: ReduceOp | ScanOp, layout: LinearLayout, warps: int) -> float:
    """Shuffles along the axis, and an exchange if warps lie along it."""
    lanes = sum(basis[op.axis] > 0 for basis in layout.bases(LANE))
    along = any(basis[op.axis] > 0 for basis in layout.bases(WARP))
    results = slice_of(layout, op.axis).in_size(REGISTER) if len(layout.outs) > 1 else 1
    # 2: a shuffle, and the combination with what it brought.
    return 2 * warps * results * lanes + (BARRIER if along else 0)


def exchange_cost(source: LinearLayout, target: LinearLayout, size: int, warps: int) -> float:
    """Cost of a conversion of elements of `size` bytes."""
    chosen = plan(source, target, 8 * size)
    if isinstance(chosen, WarpShuffle):
        return warps * chosen.cost
    # Renaming registers is free.
    if not isinstance(chosen, SharedMemory):
        return 0.0
    waits = 0 if chosen.is_inside_warps else BARRIER
    return warps * (chosen.store.cost + chosen.load.cost) + waits


@dataclass(frozen=True, slots=True)
class _Vector:
    """Consecutive elements per thread along a dim."""

    dim: int
    length: int


class _Group:
    """Accesses, reductions and scans of one group.

    scattered: accesses whose elements lie in no known order; longest: the longest vector without
    masks
    """

    def __init__(
        self,
        ops: Sequence[Op],
        scattered: Sequence[Op],
        facts: Mapping[Value, Alignment],
        warps: int,
        most: int,
    ) -> None:
        self.facts, self.warps, self.most, self.scattered = facts, warps, most, scattered
        accesses = [op for op in ops if isinstance(op, _Access)]
        self.longest = max(map(self._vector, accesses), key=lambda vector: vector.length)
        self.accesses = [op for op in accesses if self._can_follow(op)]
        self.combined = [op for op in ops if isinstance(op, ReduceOp | ScanOp)]
        self.written = [op for op in accesses if not isinstance(op, LoadOp)]

    def layouts(self) -> dict[Op, LinearLayout]:
        """The cheapest layout, for each access that can have it."""
        candidates = list(dict.fromkeys(self._candidates()))
        # The first of equal candidates: the longest vector.
        best = min(candidates, key=self._cost)
        scans = [op for op in self.combined if isinstance(op, ScanOp)]
        apart = [op for op in self.accesses if isinstance(op, LoadOp) and self._is_apart(op)]
        if not scans or not apart:
            return dict.fromkeys(self.accesses, best)
        # Loads with neighbours in adjacent lanes may be worth an exchange before the scan.
        alone = candidates[-1]
        split = min(candidates, key=lambda layout: self._cost_of_split(layout, alone, apart))
        if self._cost_of_split(split, alone, apart) >= self._cost(best):
            return dict.fromkeys(self.accesses, best)
        members: list[Op] = [*self.accesses, *scans]
        return {op: alone if op in apart else split for op in members}

    def _is_apart(self, op: _Access) -> bool:
        """Whether neighbours are a stride apart, as far as their addresses tell."""
        fact = self.facts[op.pointer]
        is_alone = max(fact.contiguity) == 1 == fact.constancy[self.longest.dim]
        return is_alone and op not in self.scattered

    def _vector(self, op: _Access) -> _Vector:
        fact = self.facts[op.pointer]
        length = vector_of(shape_of(op.pointer.type), _bytes(op), fact, self.most)
        return _Vector(fastest_dim(fact), length)

    def _can_follow(self, op: _Access) -> bool:
        """Whether threads may have the longest vector: of one run, or of elements without any."""
        fact, longest = self.facts[op.pointer], self.longest
        if max(fact.contiguity) == 1:
            return True
        return fastest_dim(fact) == longest.dim and fact.contiguity[longest.dim] >= longest.length

    def _candidates(self) -> Iterator[LinearLayout]:
        facts = [self.facts[op.pointer] for op in self.accesses]
        fact = max(facts, key=lambda fact: fact.contiguity[self.longest.dim])
        shape, length = shape_of(self.accesses[0].pointer.type), self.longest.length
        axes = dict.fromkeys(op.axis for op in self.combined if len(shape) > 1)
        while length:
            for axis in (None, *axes):
                yield with_vector(shape, length, fact, self.warps, self.longest.dim, axis)
            # Without a store or reduction, the elements leave for shared memory in longest vectors.
            length = length // 2 if self.combined or self.written else 0

    # ---- cost --------------------------------------------------------------------------------

    def _cost(self, layout: LinearLayout) -> float:
        accesses = sum(self._of_access(op, layout) for op in self.accesses)
        return accesses + sum(self._of_combined(op, layout) for op in self.combined)

    def _cost_of_split(
        self, layout: LinearLayout, alone: LinearLayout, apart: Sequence[LoadOp]
    ) -> float:
        """The cost if some loads have a layout of their own, and their elements are exchanged."""
        cost = self._cost(layout)
        for op in apart:
            exchange = exchange_cost(alone, layout, _bytes(op), self.warps)
            cost += self._of_access(op, alone) - self._of_access(op, layout) + _times(op) * exchange
        return cost

    def _of_access(self, op: _Access, layout: LinearLayout) -> float:
        """Issue slots and passes of an access."""
        dim, size, fact = self.longest.dim, _bytes(op), self.facts[op.pointer]
        held = contiguous_registers(layout, dim)
        masked = held if op.mask is None else self.facts[op.mask].constancy[dim]
        moved = min(held, max(self._vector(op).length, fact.constancy[dim]), masked)
        passes = max(1.0, held * size / _WORD)
        if fact.contiguity[dim] == 1:
            passes = _APART if held == 1 and self._is_apart(op) else _SCATTERED
        elif not isinstance(op, LoadOp) and moved < held and moved * size < _SECTOR:
            passes *= _IN_PARTS
        return _times(op) * self.warps * layout.in_size(REGISTER) / moved * (ISSUE + passes)

    def _of_combined(self, op: ReduceOp | ScanOp, layout: LinearLayout) -> float:
        if isinstance(op, ReduceOp):
            return _times(op) * reduction_cost(op, layout, self.warps)
        if not is_scannable(layout, op.axis):
            return BARRIER * layout.in_size(REGISTER)
        across = any(basis[op.axis] for basis in layout.bases(WARP))
        steps = 2 * self.warps * scan_combinations(layout, op.axis)
        return _times(op) * (steps + (BARRIER if across else 0))


def _bytes(op: _Access) -> int:
    return element_of(pointee(op.pointer.type)).bytes


def _times(op: Op) -> int:
    """Estimated executions of an op."""
    return ITERATIONS ** len(list(loops_around(op)))


class _Groups:
    """Groups of tiles of one shape that element-wise ops and scans connect with accesses and dots,
    loaded addresses included. Other tiles are recomputed in any layout, or have that of their
    operands."""

    def __init__(self, function: Function) -> None:
        self._leader: dict[Value, Value] = {}
        self._loaded: set[Value] = set()
        self._members: list[tuple[Op, Value]] = []
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

    def members(self) -> dict[Value, list[Op]]:
        """Accesses, reductions and scans of each group with an access."""
        found: dict[Value, list[Op]] = {}
        for op, value in self._members:
            found.setdefault(self.of(value), []).append(op)
        return {
            leader: ops for leader, ops in found.items()
            if any(isinstance(op, _Access) for op in ops)
        }  # fmt: skip

    def _add(self, op: Op) -> None:
        if isinstance(op, ForOp | WhileOp | IfOp):
            self._add_regions(op)
        elif isinstance(op, LoadOp) and isinstance(op.type, TileType):
            self._loaded.add(op.result)
            addresses = [op.pointer] if op.pointer in self._loaded else []
            self._join([op.result, *addresses])
            self._members.append((op, op.result))
        elif isinstance(op, StoreOp | AtomicOp):
            self._add_access(op)
        elif isinstance(op, DotOp | WgmmaOp):
            self.of(op.results[0])
        elif Trait.ELEMENTWISE in op.traits or isinstance(op, ScanOp | ReduceOp):
            self._add_computed(op)

    def _add_computed(self, op: Op) -> None:
        made = [value for value in op.operands if value in self._leader]
        if not made:
            return
        if isinstance(op, ScanOp | ReduceOp):
            self._members.append((op, made[0]))
        self._join(made if isinstance(op, ReduceOp) else [*made, *op.results])
        if not self._loaded.isdisjoint(made) and not isinstance(op, ReduceOp):
            self._loaded.update(op.results)

    def _add_access(self, op: StoreOp | AtomicOp) -> None:
        """Join what is written, the address if it was loaded, and the result of an atomic."""
        written = op.stored if isinstance(op, StoreOp) else op.operand
        addresses = [op.pointer] if op.pointer in self._loaded else []
        made = [value for value in (written, *addresses) if value in self._leader]
        if made and isinstance(op.pointer.type, TileType):
            self._join([*made, *op.results])
            self._members.append((op, made[0]))

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
