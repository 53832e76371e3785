"""Lets the two blocks of a cluster share copies of the same: each asks for one half, for both.

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

Which of its operands a program shares with its neighbour depends on the order in which the source
goes through the tiles, and on the sizes: the producer computes what the neighbour copies, and
compares. Slots are filled for both blocks at once, so consumers release them in both. The last of
an odd number of programs has no neighbour: its block shares nothing, and counts for both.

It pays where rows do not begin at sectors: L2 then sends five for four. By such dots written by
hand 1000x1000x1000 took 7.3 us on an H200 instead of 9.0, but 1024x1024x1024 5.7 instead of 5.2
(ADR 0046). So it is for such rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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

_SECTOR_BYTES = 32
"""Of what L2 sends."""

_MOST_KNOWN = 16
"""Of what launches know integers to be multiples."""


@dataclass(frozen=True)
class MulticastTma(Pass, name="nvidia-multicast-tma"):
    """Share the copies of a producer that runs several programs, where rows begin between sectors.

    capability: of the architecture.
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
        """Why blocks share no copies; "" if they share those of numbers that both can compute."""
        roles = _roles_of(function)
        if not row_for(self.capability).clusters:
            return f"{row_for(self.capability).name} has no clusters"
        if roles is None:
            return "no producer asks for copies"
        programs, copies = _loop_over_programs(roles.producer), _copies_of(roles)
        if programs is None:
            return "each block runs one program"
        if _is_numbered_ahead(programs):
            return "what a program is was computed by the one before"
        if not all(_is_in_step(copy, programs) for copy in copies):
            return "a copy is not in the one loop of its program, so blocks are not in step"
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
    """Whether a program passes on what the number of the next one tells (`divide_ahead`)."""

    def needed(value: Value) -> Sequence[Value]:
        op = value.op
        return () if op is None or op.regions or op.parent is not programs.body else op.operands

    return programs.index in _closure(programs.body.terminator.operands, needed)


def _is_in_step(copy: BulkCopyOp, programs: ForOp) -> bool:
    """Whether both blocks come to a copy in the same step: in a loop of each program, which all
    have as many iterations (persistent_loop.py)."""
    loop = copy.parent.owner if copy.parent is not None else None
    if not isinstance(loop, ForOp) or loop.parent is not programs.body:
        return loop is programs
    # Of programs that take different times, blocks are at different steps.
    bounds = loop.lower, loop.upper, loop.step
    return programs.index not in _closure(bounds, lambda value: _needed_in(value, programs))


def _begin_between_sectors(function: Function, copies: Sequence[BulkCopyOp]) -> bool:
    """Whether rows of a copy do, as far as launches tell: of 8-bit numbers they do not."""
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
    """What the producer would compute for the program of the other block.

    programs: the loop over programs. Ops are cloned once, behind what they are clones of.
    """

    def __init__(self, programs: ForOp) -> None:
        self._programs, self._own = programs, programs.body.args[0]
        builder = Builder(programs.body, programs.body.first)
        other = builder.value(NeighbourOp(self._own))
        self._there_is_one = _has_neighbour(builder, programs, other)
        self._of_other: dict[Value, Value] = {self._own: other}

    def shares(self, copy: BulkCopyOp) -> Value | None:
        """Whether it copies the same; None: it cannot."""
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
        """What a load in a loop takes from around it, and depends on the number of the program."""
        found = _closure(load.operands, lambda value: _needed_inside(value, loop))
        outer = [value for value in found if not _needed_inside(value, loop)]
        return [value for value in outer if self._own in self._computing(value)]

    def _computing(self, value: Value) -> list[Value]:
        """The values of the loop over programs that one is computed from, with it."""
        return _closure([value], self._needed)

    def _needed(self, value: Value) -> Sequence[Value]:
        return _needed_in(value, self._programs)

    def _other(self, value: Value) -> Value:
        """The same of the other program."""
        needed = {value.op for value in self._computing(value)}
        for op in [op for op in self._programs.body if op in needed]:
            if all(result not in self._of_other for result in op.results):
                Builder.after(op).emit(op.clone(self._of_other))
        return self._of_other[value]


def _closure(values: Iterable[Value], needed: Callable[[Value], Sequence[Value]]) -> list[Value]:
    """Values with what they need, and what that needs."""
    found: dict[Value, None] = {}
    pending = list(values)
    while pending:
        value = pending.pop()
        if value not in found:
            found[value] = None
            pending += needed(value)
    return list(found)


def _needed_in(value: Value, programs: ForOp) -> Sequence[Value]:
    """What a value of a loop over programs is computed from there."""
    op = value.op
    if op is None or op.parent is not programs.body:
        return ()
    return [operand for inner in _with_regions(op) for operand in inner.operands]


def _needed_inside(value: Value, loop: ForOp) -> Sequence[Value]:
    """What a value of a loop needs; nothing if it is one of around."""
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
    """Whether the other block runs a program, and is another one."""
    is_other = builder.ne(other, programs.index)
    is_program = builder.lt(other, programs.upper)
    return builder.bit_and(is_other, is_program)


def _release_in_both(roles: RolesOp, copied: ForOp) -> None:
    """Slots of loops in programs are released in both blocks, since either producer fills both; of
    the last program, if their number is odd, in its own, for both. copied: by the producer."""
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
