"""Which loads of a loop can be copied ahead through shared memory, and over how many iterations.

A load qualifies if

* it feeds products, through one conversion to their layout and element-wise code behind it;
* it is a copy that the hardware does: 4, 8 or 16 bytes of a thread, aligned, zeros where masked;
* its addresses follow from the index, from invariants and from carried scalars alone;
* no dependence in memory (`memory_dependences`) binds it to this iteration or the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign

from tilewright.analysis import Alignment, memory_dependences
from tilewright.backends.nvidia.layouts.access_vectors import vector_length
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.ir import Op, Trait, Value
from tilewright.ir.types import TileType, element_of
from tilewright.ops import ConstantOp, DotOp, ForOp, LoadOp, SplatOp, TransposeOp

MIN_COPY_BYTES = 4
"""An asynchronous copy moves 4, 8 or 16 bytes of a thread (PTX ISA, cp.async)."""


@dataclass(frozen=True, slots=True)
class PipelinedLoad:
    """A load that goes through shared memory, and the conversion that reads it."""

    load: LoadOp
    reader: ConvertOp
    vector: int

    @property
    def writer(self) -> TileType:
        """The tile as it is written: a transposition on the way renames its dims."""
        type_ = self.reader.x.type
        assert isinstance(type_, TileType)
        return type_

    @property
    def between(self) -> list[Op]:
        """Transpositions between the load and its conversion."""
        path: list[Op] = []
        op = self.reader.x.op
        while op is not self.load and op is not None:
            path.append(op)
            op = op.operands[0].op
        return path


def pipelined_loads(loop: ForOp, facts: dict[Value, Alignment]) -> list[PipelinedLoad]:
    """The loads of a loop that could be copied ahead if memory allowed it."""
    candidates: list[PipelinedLoad] = []
    for op in loop.body:
        if isinstance(op, LoadOp) and isinstance(op.type, TileType):
            reader, vector = _reader(op), _vector(op, facts)
            if reader is not None and vector and address_slice(loop, [op]) is not None:
                candidates.append(PipelinedLoad(op, reader, vector))
    return candidates


def slots_by_dependence(
    loop: ForOp, pipelined: Sequence[PipelinedLoad], most: int
) -> dict[LoadOp, int]:
    """How many slots the ring of each load may have, `most` at most.

    With S slots the load of iteration i stands at the start of iteration i - (S - 1). What it
    depends on over a distance d is done before iteration i - d + 1, so S <= d.
    """
    slots = {s.load: most for s in pipelined}
    # Dependences over `most` iterations or more limit nothing.
    for dependence in memory_dependences(loop, most - 1):
        if isinstance(dependence.sink, LoadOp) and dependence.sink in slots:
            slots[dependence.sink] = min(slots[dependence.sink], dependence.distance)
    return slots


def address_slice(loop: ForOp, loads: Sequence[LoadOp]) -> set[Op] | None:
    """The ops of the body that addresses, masks and the scalars behind them need; None if they need
    what only an iteration computes."""
    block = loop.body
    needed: set[Op] = set()
    stack: list[Value] = [v for load in loads for v in load.operands]
    needed.update(loads)
    seen: set[Value] = set()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.op
        carried = op is None and value.owner is block and value is not loop.index
        # It would be carried twice, once for the iteration ahead: tiles take many registers.
        if carried and isinstance(value.type, TileType):
            return None
        # Its value in the iteration ahead follows from what this one yields.
        if carried:
            # Argument 0 is the index, which is not yielded.
            stack.append(block.terminator.operands[value.index - 1])
        if op is None or op.parent is not block:
            continue
        # Addresses are computed again for the iteration ahead: pure ops only, and no products.
        if Trait.PURE not in op.traits or op.regions or isinstance(op, DotOp):
            return None
        needed.add(op)
        stack += op.operands
    return needed


def _reader(load: LoadOp) -> ConvertOp | None:
    """The only use, perhaps behind a transposition: a conversion that products use."""
    reader = _only_user(load)
    if isinstance(reader, TransposeOp):
        reader = _only_user(reader)
    if not isinstance(reader, ConvertOp):
        return None
    return reader if _feeds_products(reader) else None


def _only_user(op: Op) -> Op | None:
    users = list(op.results[0].uses)
    alone = len(users) == 1 and users[0].parent is op.parent
    return users[0] if alone else None


def _feeds_products(op: Op) -> bool:
    """Whether all uses are products, behind whatever computes their operands."""
    users = list(op.results[0].uses)
    return bool(users) and all(
        isinstance(user, DotOp | TransposeOp) or (_is_between(user) and _feeds_products(user))
        for user in users
    )


def _is_between(op: Op) -> bool:
    return isinstance(op, ConvertOp) or Trait.ELEMENTWISE in op.traits


def _vector(load: LoadOp, facts: dict[Value, Alignment]) -> int:
    """Elements of one copy; 0 if the load cannot be an asynchronous copy."""
    # cp.async has .ca and .cg only.
    if load.volatile or load.cache not in ("", ".cg", ".ca"):
        return 0
    if load.other is not None and not _is_zero(load.other):
        return 0
    # Without `most`: cp.async moves 16 bytes at most, even where loads move 32.
    length = vector_length(facts, load.pointer, load.mask)
    return length if length * element_of(load.type).bytes >= MIN_COPY_BYTES else 0


def _is_zero(value: Value) -> bool:
    """Whether all bits are 0: those of -0.0 are not."""
    op = value.op
    if isinstance(op, SplatOp):
        op = op.x.op
    return isinstance(op, ConstantOp) and op.value == 0 and copysign(1, op.value) > 0
