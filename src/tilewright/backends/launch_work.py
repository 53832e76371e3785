"""Work of a launch of known sizes: floating-point operations, and bytes of global memory.

Scalars are evaluated for all programs at a time, iteration by iteration; a tile is represented by
its first element, so tiles that start at one address are taken to be the same bytes. Masked
elements count as loaded and stored. Values that depend on memory are unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from math import prod
from typing import Any

import numpy as np

from tilewright.backends.explanation import LaunchSizes
from tilewright.ir import Block, Function, Op, Trait, Value
from tilewright.ir.types import DType, PointerType, dtype_of, element_of, shape_of
from tilewright.ops import (
    AddOp,
    AndOp,
    BroadcastOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DivOp,
    DotOp,
    ExpandDimsOp,
    ForOp,
    HintOp,
    IfOp,
    LoadOp,
    MaxOp,
    MinOp,
    MulOp,
    NumProgramsOp,
    OffsetOp,
    OrOp,
    ProgramIdOp,
    RangeOp,
    ReduceOp,
    RemOp,
    ReshapeOp,
    SelectOp,
    SplatOp,
    StoreOp,
    SubOp,
    TransposeOp,
    WhileOp,
)
from tilewright.support import errors
from tilewright.support.data_class import dataclass

Numbers = Any
"""An array with an integer for each program; one integer for all of them."""

_ARGUMENT_BITS = 48
"""Bits of the distance between arrays, which are placed by argument position."""

MAX_PROGRAMS, MAX_STEPS = 1 << 20, 1 << 16


@dataclass(slots=True)
class LaunchWork:
    """The work. dots: FLOPs by the type of the operands, as in {"f16": 2e9}; other: FLOPs
    elsewhere; requested: bytes that programs load and store; distinct: without repeated loads."""

    dots: dict[str, float] = field(default_factory=dict[str, float])
    other: float = 0.0
    requested: float = 0.0
    distinct: float = 0.0


def launch_work(function: Function, sizes: LaunchSizes) -> LaunchWork:
    """Count the work of a kernel in the front end's form.

    Errors: InvalidOption for sizes that a loop needs and that are not given, and loops that cannot
    be counted.
    """
    if prod(sizes.grid) > MAX_PROGRAMS:
        raise errors.InvalidOption("grid", f"of at most {MAX_PROGRAMS} programs", sizes.grid)
    counter = _Counter(function, sizes)
    counter.block(function.body, np.ones(prod(sizes.grid), bool))
    return counter.finished()


class _Counter:
    """Runs the scalar part of a kernel for all programs."""

    def __init__(self, function: Function, sizes: LaunchSizes) -> None:
        self.sizes = sizes
        self.work = LaunchWork()
        self.values: dict[Value, Numbers | None] = {}
        self.addresses: dict[Op, list[Numbers]] = {}
        self.steps = 0
        x, y, z = sizes.grid
        programs = np.arange(x * y * z, dtype=np.int64)
        self.ids = (programs % x, programs // x % y, programs // (x * y))
        for position, arg in enumerate(function.args):
            if isinstance(arg.type, PointerType):
                self.values[arg] = np.int64(position + 1) << _ARGUMENT_BITS
            else:
                known = sizes.values.get(arg.name)
                self.values[arg] = None if known is None else np.int64(known)

    def block(self, block: Block, active: Numbers) -> None:
        """Count the ops of a block for the active programs."""
        for op in block:
            if isinstance(op, ForOp):
                self._for(op, active)
            elif isinstance(op, IfOp):
                self._if(op, active)
            elif isinstance(op, WhileOp):
                raise errors.InvalidOption("sizes", "none: a `while` loop is not counted", "some")
            else:
                self._op(op, active)

    def _op(self, op: Op, active: Numbers) -> None:
        self._count(op, float(active.sum()))
        if isinstance(op, LoadOp | StoreOp):
            self._access(op, active)
        for result in op.results:
            self.values[result] = self._evaluated(op)

    def _evaluated(self, op: Op) -> Numbers | None:
        if isinstance(op, ProgramIdOp):
            return self.ids[op.axis]
        if isinstance(op, NumProgramsOp):
            return np.int64(self.sizes.grid[op.axis])
        rule = _RULES.get(type(op))
        if rule is None:
            return None
        operands = [self.values.get(value) for value in op.operands]
        return None if any(x is None for x in operands) else rule(op, *operands)

    def _for(self, op: ForOp, active: Numbers) -> None:
        index, upper, step = (self._bound(op, v) for v in (op.lower, op.upper, op.step))
        carried = [self.values.get(v) for v in op.inits]
        running = active & (index < upper)
        while running.any():
            self.steps += 1
            if self.steps > MAX_STEPS:
                expected = f"smaller: loops run for more than {MAX_STEPS} iterations"
                raise errors.InvalidOption("sizes", expected, dict(self.sizes.values))
            self.values[op.index] = index
            self.values.update(zip(op.carried, carried, strict=True))
            self.block(op.body, running)
            following = [self.values.get(v) for v in op.body.terminator.operands]
            carried = [
                _chosen(running, new, old) for old, new in zip(carried, following, strict=True)
            ]
            index = index + step
            running = running & (index < upper)
        self.values.update(zip(op.results, carried, strict=True))

    def _bound(self, op: ForOp, value: Value) -> Numbers:
        known = self.values.get(value)
        if known is None:
            raise errors.InvalidOption("sizes", self._missing(op), dict(self.sizes.values))
        return np.broadcast_to(known, self.ids[0].shape)

    def _missing(self, op: ForOp) -> str:
        unknown = [name for name in _arguments_behind((op.lower, op.upper, op.step))
                   if name not in self.sizes.values]  # fmt: skip
        if unknown:
            return f"with {', '.join(unknown)}, on which a loop depends"
        return "none: memory contents determine the trip count of a loop"

    def _if(self, op: IfOp, active: Numbers) -> None:
        condition = self.values.get(op.condition)
        for region, wanted in zip(op.regions, (True, False), strict=False):
            taken = active if condition is None else active & (condition == wanted)
            if taken.any():
                self.block(region, taken)

    def _access(self, op: LoadOp | StoreOp, active: Numbers) -> None:
        address = self.values.get(op.pointer)
        size = _bytes(op)
        self.work.requested += float(active.sum()) * size
        if address is None:
            self.work.distinct += float(active.sum()) * size
        else:
            known = np.broadcast_to(address, active.shape)[active]
            self.addresses.setdefault(op, []).append(np.unique(known))

    def _count(self, op: Op, times: float) -> None:
        if isinstance(op, DotOp):
            kind, k = dtype_of(op.a.type).name, shape_of(op.a.type)[-1]
            flops = 2.0 * prod(shape_of(op.type)) * k * times
            self.work.dots[kind] = self.work.dots.get(kind, 0.0) + flops
        elif isinstance(op, ReduceOp):
            self.work.other += times * sum(map(_floats, op.inputs))
        elif Trait.ELEMENTWISE in op.traits and not isinstance(op, _FREE):
            self.work.other += times * sum(map(_floats, op.results))

    def finished(self) -> LaunchWork:
        """The work, all ops seen."""
        for op, parts in self.addresses.items():
            assert isinstance(op, LoadOp | StoreOp)
            self.work.distinct += float(np.unique(np.concatenate(parts)).size) * _bytes(op)
        return self.work


_FREE = (ConstantOp, CastOp, SelectOp)
"""Element-wise ops that are no arithmetic."""


def _bytes(op: LoadOp | StoreOp) -> int:
    value = op.result if isinstance(op, LoadOp) else op.stored
    return prod(shape_of(value.type)) * element_of(value.type).bytes


def _floats(value: Value) -> int:
    element = element_of(value.type)
    is_float = isinstance(element, DType) and element.is_float
    return prod(shape_of(value.type)) if is_float else 0


def _arguments_behind(values: Sequence[Value]) -> Iterator[str]:
    """The names of the kernel's arguments from which values are computed."""
    stack, seen = list(values), set[Value]()
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.op is not None:
            stack += value.op.operands
        elif isinstance(value.owner, Block) and isinstance(value.owner.owner, Function):
            yield value.name


def _chosen(condition: Numbers, x: Numbers | None, y: Numbers | None) -> Numbers | None:
    return None if x is None or y is None else _where(condition, x, y)


_where: Callable[[Numbers, Numbers, Numbers], Numbers] = np.where


def _first(_op: Op, x: Numbers, *_rest: Numbers) -> Numbers:
    return x


def _offset(op: OffsetOp, pointer: Numbers, offset: Numbers) -> Numbers:
    element = element_of(op.type)
    assert isinstance(element, PointerType)
    return pointer + offset * element.element.bytes


def _quotient(x: Numbers, y: Numbers) -> Numbers:
    """Quotient toward zero; that of a division by zero is unused."""
    divisor = np.where(y == 0, 1, y)
    return np.sign(x) * np.sign(divisor) * (abs(x) // abs(divisor))


def _divided(op: DivOp, x: Numbers, y: Numbers) -> Numbers | None:
    return _quotient(x, y) if not dtype_of(op.type).is_float else None


def _start(op: RangeOp) -> Numbers:
    return np.int64(op.start)


def _remainder(_op: Op, x: Numbers, y: Numbers) -> Numbers:
    return x - _quotient(x, y) * y


def _selected(_op: Op, condition: Numbers, x: Numbers, y: Numbers) -> Numbers:
    return _where(condition, x, y)


def _constant(op: ConstantOp) -> Numbers | None:
    return None if isinstance(op.value, float) else np.int64(op.value)


def _compared(op: CompareOp, x: Numbers, y: Numbers) -> Numbers:
    return getattr(operator, op.predicate)(x, y)


def _binary(function: Callable[[Numbers, Numbers], Numbers]) -> Callable[..., Numbers]:
    def rule(_op: Op, x: Numbers, y: Numbers) -> Numbers:
        return function(x, y)

    return rule


_SAME = (CastOp, SplatOp, BroadcastOp, ExpandDimsOp, ReshapeOp, TransposeOp, HintOp)
"""Ops whose first element is that of their operand."""

_RULES: dict[type[Op], Callable[..., Numbers | None]] = {
    AddOp: _binary(np.add),
    SubOp: _binary(np.subtract),
    MulOp: _binary(np.multiply),
    MinOp: _binary(np.minimum),
    MaxOp: _binary(np.maximum),
    AndOp: _binary(np.bitwise_and),
    OrOp: _binary(np.bitwise_or),
    **dict.fromkeys(_SAME, _first),
    ConstantOp: _constant,
    RangeOp: _start,
    OffsetOp: _offset,
    DivOp: _divided,
    RemOp: _remainder,
    CompareOp: _compared,
    SelectOp: _selected,
}
