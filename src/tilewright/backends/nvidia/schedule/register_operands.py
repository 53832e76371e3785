"""Register operands of deferred dots: computed part by part while the tensor cores work.

    cf.for ... (%k, %acc) {                   cf.for ... (%k, %acc) {
      %x = nvidia.convert %w                    %y = nvidia.read %w {axis = 0, start = 0}
      %b = arith.cast %x                        %g = arith.cast %y
      %c = nvidia.wgmma %a, %b, %acc    ->      %c = nvidia.wgmma %a, %g, %acc {pending = 1}
      cf.yield %c                               %x = nvidia.read %w {axis = 0, start = 32}
    }                                           %b = arith.cast %x
                                                %d = nvidia.wgmma %a, %b, %c {k_start = 32, ...}
                                                cf.yield %d
                                              }

The operand of a dot must not change before the dot completes (PTX ISA, wgmma.fence). So there are
two parts: halves along K, or the operands of two dots. While the tensor cores read one part,
threads compute the other: the first part of an iteration during the second dot of the previous one.
This takes no more registers than the whole operand, and the loop does not carry it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilewright.backends.nvidia.buffer_ops import PartOp, ReadOp, WgmmaOp
from tilewright.backends.nvidia.layouts.layout_propagation import part_along
from tilewright.backends.nvidia.layouts.operand_chains import register_operand
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.backends.nvidia.schedule.schedule_loop import LoopSchedule, readers
from tilewright.ir import Builder, Op, Trait, Value, is_pure
from tilewright.ir.types import TileType, dtype_of, shape_of
from tilewright.layout import LinearLayout, wgmma_fragment
from tilewright.ops import ForOp, JoinOp, LoadOp, ReshapeOp, TransposeOp
from tilewright.support.data_class import dataclass

Half = tuple[int, int]
"""An axis of a tile, and the number of the half along it."""

Read = Callable[[ConvertOp, Half | None], Value]
"""Emits a read of a copied tile, or of half of it, in place of a conversion."""


@dataclass(frozen=True, slots=True)
class RegisterOperand:
    """An operand that a loop computes from tiles that are copied ahead.

    index: of the operand; reads: the conversions of those tiles; made: the ops that depend on them;
    ops: `made` and all other ops of the body that it needs, in order
    """

    dot: WgmmaOp
    index: int
    reads: frozenset[Op]
    made: frozenset[Op]
    ops: tuple[Op, ...]

    @property
    def value(self) -> Value:
        """The operand."""
        return self.dot.operands[self.index]

    @property
    def k_axis(self) -> int:
        """The axis along which the dot reduces."""
        return 1 - self.index


@dataclass(frozen=True, slots=True)
class DotPart:
    """A dot, or half of one along K. operand: None if none is computed in registers."""

    dot: WgmmaOp
    operand: RegisterOperand | None
    half: Half | None = None


def dot_parts(schedule: LoopSchedule, dots: Sequence[WgmmaOp]) -> list[DotPart] | None:
    """The alternating parts of the operands; [] if none is computed in registers, None if they
    cannot be computed so."""
    loop = schedule.loop
    found = [_computed_in_registers(dot, loop) for dot in dots]
    if not any(found):
        return []
    operands = [
        register_operand_of(dot, schedule) if is_computed else None
        for dot, is_computed in zip(dots, found, strict=True)
    ]
    first = dots[0]
    if None in [o for o, is_computed in zip(operands, found, strict=True) if is_computed]:
        return None
    if first.keep is not None and _is_in(first.keep, loop):
        return None
    if len(dots) > 1:
        return [DotPart(p, o) for p, o in zip(dots, operands, strict=True)]
    operand = operands[0]
    if operand is None or not _can_be_halved(operand):
        return None
    return [DotPart(first, operand, (operand.k_axis, half)) for half in range(2)]


def replaced_ops(parts: Sequence[DotPart]) -> set[Op]:
    """The ops of the body that only operands need; they are emitted with the parts."""
    operands = [part.operand for part in parts if part.operand is not None]
    made = {op for operand in operands for op in operand.made}
    users = made | set[Op](operand.dot for operand in operands)
    reads = {op for operand in operands for op in operand.reads}
    return made | {op for op in reads if all(user in users for user in op.results[0].uses)}


def _computed_in_registers(dot: WgmmaOp, loop: ForOp) -> bool:
    index = register_operand(dot)
    return index is not None and _is_in(dot.operands[index], loop)


def _is_in(value: Value, loop: ForOp) -> bool:
    """Whether a value is defined in the body of a loop."""
    return value.block is loop.body


def register_operand_of(dot: WgmmaOp, schedule: LoopSchedule) -> RegisterOperand | None:
    """The register operand of a dot, if it can be computed from copies for the iteration ahead: by
    pure ops from the index, loads that are issued ahead, and invariants."""
    index = register_operand(dot)
    assert index is not None
    loop = schedule.loop
    found_readers = (reader.op for ahead in schedule.copies for reader in readers(ahead))
    conversions = set[Op](op for op in found_readers if isinstance(op, ConvertOp))
    loaded = set[Op](ahead.load for ahead in schedule.loads if not ahead.is_copied)
    needed: set[Op] = set()
    reads: set[Op] = set()
    # Grows during the iteration.
    for value in (found := [dot.operands[index]]):
        op = value.op
        # Carried values are available.
        if not _is_in(value, loop) or op is None or op in loaded or op in needed:
            continue
        if op in conversions:
            reads.add(op)
        elif op.regions or not is_pure(op) or isinstance(op, LoadOp):
            return None
        else:
            needed.add(op)
            found += op.operands
    ops = tuple(op for op in loop.body if op in needed)
    made = _dependents(ops, reads)
    inside = made | set[Op]((dot,))
    is_shared = any(u not in inside for op in made for r in op.results for u in r.uses)
    if is_shared or dot.operands[index].op not in made | reads:
        return None
    return RegisterOperand(dot, index, frozenset(reads), made, ops)


def _dependents(ops: Sequence[Op], sources: set[Op]) -> frozenset[Op]:
    """The ops, in order, that depend on some sources."""
    made: set[Op] = set()
    for op in ops:
        if any(x.op in made or x.op in sources for x in op.operands):
            made.add(op)
    return frozenset(made)


# ---- halves --------------------------------------------------------------------------------------


def _can_be_halved(operand: RegisterOperand) -> bool:
    """Whether both halves along K are whole steps of the dot, in registers of their own."""
    dot = operand.dot
    element = dtype_of(operand.value.type)
    step = wgmma_fragment(dot.columns, 8 * element.bytes).k
    if shape_of(operand.value.type)[operand.k_axis] < 2 * step:
        return False
    stack = [(operand.value, operand.k_axis)]
    while stack:
        value, axis = stack.pop()
        if _half(_layout(value), axis) is None:
            return False
        if value.op in operand.made:
            assert value.op is not None
            its = _source_axis(value.op, axis)
            if its is None:
                return False
            stack += [(x, its) for x in value.op.operands if isinstance(x.type, TileType)]
    return True


def _source_axis(op: Op, axis: int) -> int | None:
    """The axis along which halves of the operands give halves of the result; None without one."""
    if Trait.ELEMENTWISE in op.traits or isinstance(op, JoinOp):
        return axis
    if isinstance(op, TransposeOp):
        return op.order[axis]
    if not isinstance(op, ReshapeOp):
        return None
    there, here = shape_of(op.x.type), shape_of(op.type)
    distance = prod(here[axis:]) // 2
    return next((d for d in range(len(there)) if prod(there[d:]) // 2 == distance), None)


def part_read(view: Value, op: Op, half: Half | None) -> ReadOp:
    """The read of the tile that an op converts, or of half of it, from a slot."""
    type_ = op.results[0].type
    if half is None:
        return ReadOp(view, result_type=type_)
    part, (axis, number) = _half_type(type_, half[0]), half
    return ReadOp(view, result_type=part, axis=axis, start=number * part.shape[axis])


def _half_type(type_: object, axis: int) -> TileType:
    """The type of a half of a tile."""
    assert isinstance(type_, TileType)
    half = _half(_layout_of(type_), axis)
    assert half is not None, type_
    return TileType(half.shape, type_.element, half)


def _half(layout: LinearLayout, axis: int) -> LinearLayout | None:
    """The layout of both halves, if each has registers of its own."""
    found = part_along(layout, axis, layout.shape[axis] // 2)
    return None if found is None else found[0]


def _layout(value: Value) -> LinearLayout:
    assert isinstance(value.type, TileType)
    return _layout_of(value.type)


def _layout_of(type_: TileType) -> LinearLayout:
    assert isinstance(type_.layout, LinearLayout)
    return type_.layout


# ---- code ----------------------------------------------------------------------------------------


def emit_part(part: DotPart, builder: Builder, mapping: dict[Value, Value], read: Read) -> Op:
    """Emit a part of a dot. mapping: of the values of the loop; results are added."""
    dot, own = part.dot, dict(mapping)
    if part.operand is not None:
        code = OperandCode(part.operand, builder, mapping, read)
        own[part.operand.value] = code.emit(part.half)
    # The second half adds to the first, whatever that added to.
    is_second = dot.result in mapping
    if is_second:
        own[dot.acc] = mapping[dot.result]
    new = dot.clone(own)
    # While it runs, threads may compute the operand of the previous part.
    new.attrs["pending"] = 1
    if part.half is not None:
        axis, half = part.half
        new.attrs["k_start"] = half * shape_of(new.operands[1 - axis].type)[axis]
    if is_second and dot.keep is not None:
        new.operands.pop()
    mapping[dot.result] = builder.emit(new).results[0]
    return new


class OperandCode:
    """Emits an operand, or half of it, for the iteration of a mapping and its reads."""

    def __init__(
        self, operand: RegisterOperand, builder: Builder, mapping: dict[Value, Value], read: Read
    ) -> None:
        self._operand, self._builder, self._read = operand, builder, read
        self._whole = dict(mapping)
        self._halves: dict[tuple[Value, Half], Value] = {}

    def emit(self, half: Half | None) -> Value:
        """The operand."""
        value = self._operand.value
        return self._value(value) if half is None else self._half(value, *half)

    def _value(self, value: Value) -> Value:
        op = value.op
        if value in self._whole or op is None:
            return self._whole.get(value, value)
        if op in self._operand.reads:
            assert isinstance(op, ConvertOp)
            self._whole[value] = self._read(op, None)
        elif op in self._operand.ops:
            for x in op.operands:
                self._value(x)
            self._builder.emit(op.clone(self._whole))
        return self._whole.get(value, value)

    def _half(self, value: Value, axis: int, half: int) -> Value:
        key = (value, (axis, half))
        if key not in self._halves:
            self._halves[key] = self._new_half(value, axis, half)
        return self._halves[key]

    def _new_half(self, value: Value, axis: int, half: int) -> Value:
        op = value.op
        if op in self._operand.reads:
            assert isinstance(op, ConvertOp)
            return self._read(op, (axis, half))
        if op is None or op not in self._operand.made:
            type_ = _half_type(value.type, axis)
            whole = self._value(value)
            start = half * type_.shape[axis]
            return self._builder.value(PartOp(whole, axis=axis, start=start, result_type=type_))
        its = _source_axis(op, axis)
        assert its is not None, op
        mapping = {
            x: self._half(x, its, half) if isinstance(x.type, TileType) else self._value(x)
            for x in op.operands
        }
        copy = op.clone(mapping)
        type_ = copy.results[0].type = _half_type(value.type, axis)
        if "result_type" in copy.attrs:
            copy.attrs["result_type"] = type_
        if isinstance(copy, ReshapeOp):
            copy.attrs["shape"] = type_.shape
        self._builder.emit(copy)
        return copy.results[0]
