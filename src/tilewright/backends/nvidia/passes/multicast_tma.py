"""Multicast TMA loads: each block of a 2-CTA cluster issues one half of a shared tile for both.

    cf.for %p = ... {                         cf.for %p = ... {
      %m, %n = %p mod x, %p / x                 %m, %n = %p mod x, %p / x
                                                %p' = nvidia.neighbour %p
                                                %m', %n' = %p' mod x, %p' / x
                                                %other = %p' != %p and %p' < programs
                                                %a, %b = %other and %m == %m', ... %n == %n'
      cf.for %k ... {                    ->     cf.for %k ... {
        nvidia.mbarrier_wait %empty ...           nvidia.mbarrier_wait %empty ...
        nvidia.bulk_copy %a_tile, ...             nvidia.bulk_copy %a_tile, ..., %a
        nvidia.bulk_copy %b_tile, ...             nvidia.bulk_copy %b_tile, ..., %b
      }                                         }
    }                                         }

Which operands adjacent programs share depends on the order in which the source visits tiles, and on
the sizes: the producer computes the coordinates of the other block's load, and compares. Slots are
filled for both blocks at once, so consumers release them in both. The last of an odd number of
programs has no neighbour: its block shares no loads, and counts for both.

Sharing pays where rows are not sector-aligned, of which L2 sends five sectors for four; elsewhere
it costs time (figures in ADR 0046).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from tilewright.analysis import analyze_alignment
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.buffer_ops import ViewOp
from tilewright.backends.nvidia.bulk_ops import (
    BulkCopyOp,
    MbarrierArriveOp,
    MbarriersOp,
    MbarrierWaitOp,
)
from tilewright.backends.nvidia.role_ops import NeighbourOp, RolesOp, is_over_programs
from tilewright.ir import Block, Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import DType, element_of
from tilewright.ops import DescriptorLoadOp, ForOp
from tilewright.support.data_class import dataclass
from tilewright.support.reachable import reachable

_SECTOR_BYTES = 32
"""The unit in which L2 sends."""

_MOST_KNOWN = 16
"""The largest divisor that launches check of integers."""


@dataclass(frozen=True)
class MulticastTma(Pass, name="nvidia-multicast-tma"):
    """Multicast the loads of a persistent producer where rows are not sector-aligned.

    capability: of the architecture
    """

    capability: int = 90

    def run(self, function: Function) -> bool:
        roles = _roles_of(function)
        programs = None if roles is None else _loop_over_programs(roles.producer)
        if roles is None or programs is None or self.obstacle(function):
            return False
        copies = _copies_of(roles)
        neighbour = _Neighbour(programs)
        shared = {c: neighbour.shares(c) for c in copies if c.parent is not programs.body}
        if not any(shared.values()):
            return False
        for copy, is_shared in shared.items():
            _share(copy, is_shared)
        _release_in_both(roles, programs)
        roles.attrs["shares_copies"] = True
        return True

    def obstacle(self, function: Function) -> str:
        """Why blocks share no loads; "" if they share those whose coordinates both can compute."""
        roles = _roles_of(function)
        if not row_for(self.capability).clusters:
            return f"{row_for(self.capability).name} has no clusters"
        if roles is None:
            return "no producer warp issues loads"
        programs, copies = _loop_over_programs(roles.producer), _copies_of(roles)
        if programs is None:
            return "each block runs one program"
        if _is_numbered_ahead(programs):
            return "the program id was computed one program ahead"
        if not all(_is_in_step(copy, programs) for copy in copies):
            return "a load is not in the only loop of its program, so blocks are not in step"
        if not _begin_between_sectors(function, copies):
            return f"rows begin at sectors of {_SECTOR_BYTES} bytes, of which L2 sends none twice"
        return ""


def _roles_of(function: Function) -> RolesOp | None:
    return next((op for op in function.body if isinstance(op, RolesOp)), None)


def _copies_of(roles: RolesOp) -> list[BulkCopyOp]:
    return [op for op in roles.producer.walk() if isinstance(op, BulkCopyOp)]


def _loop_over_programs(role: Block) -> ForOp | None:
    return next((op for op in role if isinstance(op, ForOp) and is_over_programs(op)), None)


def _is_numbered_ahead(programs: ForOp) -> bool:
    """Whether divisions are computed one program ahead (`divide_ahead`)."""

    def needed(value: Value) -> Sequence[Value]:
        op = value.op
        return () if op is None or op.regions or op.parent is not programs.body else op.operands

    return programs.index in reachable(programs.body.terminator.operands, needed)


def _is_in_step(copy: BulkCopyOp, programs: ForOp) -> bool:
    """Whether both blocks reach a load in the same step: in a loop with equal trip counts in all
    programs (persistent_loop.py)."""
    loop = copy.parent.owner if copy.parent is not None else None
    if not isinstance(loop, ForOp) or loop.parent is not programs.body:
        return loop is programs
    # With programs of unequal length, blocks are at different steps.
    bounds = loop.lower, loop.upper, loop.step
    return programs.index not in reachable(bounds, lambda value: _needed_in(value, programs))


def _begin_between_sectors(function: Function, copies: Sequence[BulkCopyOp]) -> bool:
    """Whether rows of a load start between sectors, as far as launches check; 8-bit rows do not."""
    facts = analyze_alignment(function)
    for load in map(_load_of, copies):
        size = element_of(load.result.type)
        assert isinstance(size, DType)
        steps = [facts[stride].divisibility[0] for stride in load.strides]
        if any(step % _MOST_KNOWN and step * size.bytes % _SECTOR_BYTES for step in steps):
            return True
    return False


def _load_of(copy: BulkCopyOp) -> DescriptorLoadOp:
    load = copy.x.op
    assert isinstance(load, DescriptorLoadOp)
    return load


class _Neighbour:
    """The values of the producer, computed for the program of the other block.

    programs: the loop over programs. Each op is cloned once, after its original.
    """

    def __init__(self, programs: ForOp) -> None:
        self._programs, self._own = programs, programs.body.args[0]
        builder = Builder(programs.body, programs.body.first)
        other = builder.value(NeighbourOp(self._own))
        self._there_is_one = _has_neighbour(builder, programs, other)
        self._of_other: dict[Value, Value] = {self._own: other}

    def shares(self, copy: BulkCopyOp) -> Value | None:
        """Whether the other block loads the same tile; None if that cannot be computed."""
        load = _load_of(copy)
        loop = copy.parent.owner if copy.parent is not None else None
        assert isinstance(loop, ForOp)
        used = self._used(load, loop)
        if not all(isinstance(value.type, DType) for value in used):
            return None
        builder = Builder.at(loop)
        others = [self._other(value) for value in used]
        equal = [builder.eq(own, other) for own, other in zip(used, others, strict=True)]
        return reduce(builder.bit_and, [self._there_is_one, *equal])

    def _used(self, load: DescriptorLoadOp, loop: ForOp) -> list[Value]:
        """The values around a loop that a load in it uses, and that depend on the program id."""
        found = reachable(load.operands, lambda value: _needed_inside(value, loop))
        outer = [value for value in found if not _needed_inside(value, loop)]
        return [value for value in outer if self._own in self._computing(value)]

    def _computing(self, value: Value) -> Iterator[Value]:
        """A value, with those of the loop over programs from which it is computed."""
        return reachable([value], self._needed)

    def _needed(self, value: Value) -> Sequence[Value]:
        return _needed_in(value, self._programs)

    def _other(self, value: Value) -> Value:
        """The value for the other program."""
        needed = {value.op for value in self._computing(value)}
        for op in [op for op in self._programs.body if op in needed]:
            if all(result not in self._of_other for result in op.results):
                Builder.after(op).emit(op.clone(self._of_other))
        return self._of_other[value]


def _needed_in(value: Value, programs: ForOp) -> Sequence[Value]:
    """The operands of a value that are in the loop over programs as well."""
    op = value.op
    if op is None or op.parent is not programs.body:
        return ()
    return [operand for inner in _with_regions(op) for operand in inner.operands]


def _needed_inside(value: Value, loop: ForOp) -> Sequence[Value]:
    """The operands of a value of a loop; none for values around it."""
    if value is loop.index:
        return loop.lower, loop.step
    if value.owner is loop.body:
        slot = value.index - 1
        return loop.inits[slot], loop.body.terminator.operands[slot]
    op = value.op
    return op.operands if op is not None and op.parent is loop.body else ()


def _with_regions(op: Op) -> list[Op]:
    return [op, *(inner for region in op.regions for inner in region.walk())]


def _share(copy: BulkCopyOp, is_shared: Value | None) -> None:
    Builder.at(copy).emit(BulkCopyOp(copy.x, copy.target, copy.barrier, copy.runs, is_shared))
    Rewriter.erase(copy)


def _has_neighbour(builder: Builder, programs: ForOp, other: Value) -> Value:
    """Whether there is another block, and it runs a program."""
    is_other = builder.ne(other, programs.index)
    is_program = builder.lt(other, programs.upper)
    return builder.bit_and(is_other, is_program)


def _release_in_both(roles: RolesOp, copied: ForOp) -> None:
    """Release slots of loops in both blocks, since either producer fills both; for the last program
    of an odd number, in its own block, for both. copied: the producer's loop."""
    waits = [op for op in roles.producer.walk() if isinstance(op, MbarrierWaitOp)]
    empty = dict.fromkeys(_barriers_of(op) for op in waits if op.parent is not copied.body)
    for barriers in empty:
        barriers.attrs["in_cluster"] = True
    programs = _loop_over_programs(roles.consumers)
    assert programs is not None
    builder = Builder(programs.body, programs.body.first)
    other = builder.value(NeighbourOp(programs.index))
    in_both = builder.lt(other, programs.upper)
    releases = [op for op in roles.consumers.walk() if isinstance(op, MbarrierArriveOp)]
    for op in [op for op in releases if _barriers_of(op) in empty]:
        Builder.at(op).emit(MbarrierArriveOp(op.barrier, op.runs, in_both))
        Rewriter.erase(op)


def _barriers_of(op: MbarrierWaitOp | MbarrierArriveOp) -> Op:
    view = op.barrier.op
    assert isinstance(view, ViewOp) and isinstance(view.buffer.op, MbarriersOp)
    return view.buffer.op
