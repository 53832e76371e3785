"""Reductions and scans over lane values.

A reduction along the vector dimension keeps one accumulator vector, started with the first step,
and folds its lanes at the end by halves: lane i with lane i + n/2, then n/4 ... That order is
fixed for a given tile shape and vector width, so results repeat from run to run.
"""

from __future__ import annotations

from tilewright.backends.cpu.lower.evaluate_lanes import Environment, Evaluator, RegionFunction
from tilewright.backends.cpu.lower.lane_values import Lanes, literal, uniform
from tilewright.backends.cpu.lower.loop_sections import Loop, loop
from tilewright.backends.cpu.lower.vector_access import Buffer, write_buffer
from tilewright.ir import Block, Trait, Value
from tilewright.llvm import Code, Val
from tilewright.ops import ReduceOp, ScanOp


def apply_region(ev: Evaluator, block: Block, args: list[Lanes]) -> list[Lanes]:
    """Run the ops of a combine region on lane values."""
    function = ev.env.functions.get(block)
    if function is not None:
        return _call(ev, function, args)
    local: dict[Value, Lanes] = dict(zip(block.args, args, strict=True))
    for op in block:
        operands = [local[v] if v in local else ev.lanes(v, ()) for v in op.operands]
        if op.next is None:
            return operands
        if op.operands:
            result = ev.elementwise(op, list(operands))
            assert isinstance(result, Lanes)
            local[op.result] = result
        else:
            local[op.result] = ev.lanes(op.result, ())
    raise AssertionError("combine region without terminator")


def _call(ev: Evaluator, function: RegionFunction, args: list[Lanes]) -> list[Lanes]:
    """The function on each lane."""
    captured = [ev.lanes(value, ()) for value in function.captured]
    operands = [*args, *captured]
    if all(lanes.is_uniform for lanes in operands):
        return [uniform(v) for v in _called(ev.code, function, [x.base for x in operands])]
    vectors = [ev.math.vector(lanes) for lanes in operands]
    columns: list[list[Val]] = []
    for lane in range(ev.math.width):
        scalars = [ev.code.extract(vector, lane) for vector in vectors]
        columns.append(_called(ev.code, function, scalars))
    return [ev.math.wrap(_gathered(ev.code, list(row))) for row in zip(*columns, strict=True)]


def _called(code: Code, function: RegionFunction, operands: list[Val]) -> list[Val]:
    type_ = f"{{ {', '.join(function.results)} }}"
    typed = ", ".join(value.typed for value in operands)
    found = code.let_here(f"call {type_} @{function.name}({typed})", type_)
    return [
        code.let_here(f"extractvalue {found.typed}, {number}", result)
        for number, result in enumerate(function.results)
    ]


def _gathered(code: Code, lanes: list[Val]) -> Val:
    type_ = f"<{len(lanes)} x {lanes[0].type}>"
    vector = Val("poison", type_)
    for number, lane in enumerate(lanes):
        text = f"insertelement {vector.typed}, {lane.typed}, i64 {number}"
        vector = code.let_here(text, type_)
    return vector


class Accumulators:
    """The running values of a reduction inside one loop."""

    __slots__ = ("ev", "op", "phis", "vectors")

    def __init__(self, ev: Evaluator, op: ReduceOp, first: list[Lanes]) -> None:
        self.ev, self.op = ev, op
        self.vectors: list[Val] = [ev.math.vector(v) for v in first]
        self.phis: list[Val] = []

    def enter(self, opened: Loop) -> None:
        """Carry the accumulators around a loop that was just opened."""
        self.phis = [opened.carry(v) for v in self.vectors]

    def fold(self, opened: Loop, values: list[Lanes]) -> None:
        """Combine one more step into the accumulators."""
        # Phis, not `vectors`: those are the values before the loop.
        current = [self.ev.math.wrap(phi) for phi in self.phis]
        # The newcomer goes first where order is free: a NaN test is then off the carried chain.
        both = values + current if _is_one_commutative_op(self.op.combine) else current + values
        results = apply_region(self.ev, self.op.combine, both)
        for phi, result in zip(self.phis, results, strict=True):
            opened.update(phi, self.ev.math.vector(result))

    def leave(self, opened: Loop) -> None:
        """After the loop, take its final values as the accumulators."""
        self.vectors = [opened.final(phi) for phi in self.phis]

    def across_lanes(self) -> list[Lanes]:
        """Fold the lanes of each accumulator into one scalar."""
        vectors, width = self.vectors, self.ev.math.width
        while width > 1:
            width //= 2
            # An evaluator has one width, and remembers values of that width.
            half = Evaluator(self.ev.code, self.ev.env, width)
            low = [self._part(v, 0, width) for v in vectors]
            high = [self._part(v, width, width) for v in vectors]
            lanes = [half.math.wrap(v) for v in low + high]
            vectors = [half.math.vector(r) for r in apply_region(half, self.op.combine, lanes)]
        return [uniform(v) for v in vectors]

    def _part(self, vector: Val, start: int, width: int) -> Val:
        if width == 1:
            return self.ev.code.extract(vector, start)
        return self.ev.code.shuffle(vector, list(range(start, start + width)))


def _is_one_commutative_op(block: Block) -> bool:
    first = block.first
    if first is None or first.next is None or first.next.next is not None:
        return False
    return Trait.COMMUTATIVE in first.traits


def scan_along(code: Code, env: Environment, op: ScanOp, outputs: list[Buffer]) -> None:
    """Inclusive scan, one element after the other along the axis, vectors across it.

    Inputs are read where they are; the running value is carried in registers.
    """
    shape = outputs[0].shape
    others = [d for d in range(len(shape)) if d != op.axis]
    across = others[-1] if others else None
    # 16: the fp32 lanes of the widest vector unit.
    width = 1 if across is None else min(shape[across] & -shape[across], 16)
    ev = Evaluator(code, env, width)
    _scan_loops(ev, op, outputs, others, across, {})


def _scan_loops(
    ev: Evaluator,
    op: ScanOp,
    outputs: list[Buffer],
    others: list[int],
    across: int | None,
    coords: dict[int, Lanes],
) -> None:
    if others:
        dim, step = others[0], ev.math.width if others[0] == across else 1
        with loop(ev.code, outputs[0].shape[dim], step) as opened:
            coord = Lanes(opened.index, 1 if step > 1 else 0, step)
            _scan_loops(ev, op, outputs, others[1:], across, {**coords, dim: coord})
        return
    _scan_line(ev, op, outputs, coords)


def _scan_line(ev: Evaluator, op: ScanOp, outputs: list[Buffer], coords: dict[int, Lanes]) -> None:
    extent = outputs[0].shape[op.axis]
    last = literal(extent - 1)

    def coords_at(step: Lanes) -> tuple[Lanes, ...]:
        along = ev.math.add(last, step, "sub") if op.reverse else step
        merged = {**coords, op.axis: along}
        return tuple(merged[d] for d in range(len(merged)))

    def read(step: Lanes) -> list[Lanes]:
        return [ev.lanes(v, coords_at(step)) for v in op.inputs]

    running = read(literal(0))
    for buffer, value in zip(outputs, running, strict=True):
        write_buffer(ev.math, buffer, coords_at(literal(0)), value)
    if extent == 1:
        return
    with loop(ev.code, extent, 1, start=1) as opened:
        phis = [opened.carry(ev.math.vector(v)) for v in running]
        step = Lanes(opened.index)
        current = [ev.math.wrap(phi) for phi in phis]
        # The running value first: a combine region need not be commutative.
        results = apply_region(ev, op.combine, current + read(step))
        for phi, buffer, value in zip(phis, outputs, results, strict=True):
            write_buffer(ev.math, buffer, coords_at(step), value)
            opened.update(phi, ev.math.vector(value))
