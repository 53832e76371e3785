"""Reductions and scans over lane values.

A reduction along the vector dimension has one accumulator vector, initialised by the first step,
and folds its lanes at the end by halves: lane i with lane i + n/2, then n/4 ... That order is fixed
for a given tile shape and vector width, so that results repeat from run to run.

A scan along it takes a vector, adds to each lane the lane before it, then two before, four ..., and
finally the result of the vectors before it to all lanes:

    a b c d  ->  a a+b b+c c+d  ->  a a+b a+b+c a+b+c+d
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.backends.cpu.lower.evaluate_lanes import Evaluator, RegionFunction
from tilewright.backends.cpu.lower.lane_values import Lanes, literal, uniform
from tilewright.backends.cpu.lower.loop_sections import Loop, loop
from tilewright.backends.cpu.lower.vector_access import Buffer, write_buffer
from tilewright.ir import Block, Trait, Value
from tilewright.llvm import Code, Val, integer_literal
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
    """Call the function on each lane."""
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


_LEAST_LANES = 4
"""Lanes from which a vector is scanned by steps of 1, 2, 4 ... lanes instead of element by
element."""

EvaluatorOf = Callable[[int], Evaluator]


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
        # The new value comes first where order is free: a NaN test is then off the loop-carried
        # chain.
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
            # An evaluator has one width, and caches values of that width.
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


def scan_along(ev_of: EvaluatorOf, bits: int, op: ScanOp, outputs: list[Buffer]) -> None:
    """Inclusive scan: contiguous elements by vectors along the axis, others one element after the
    other along the axis, with vectors across it.

    ev_of: an evaluator of a number of lanes; bits: of a vector. The running value is carried in
    registers.
    """
    shape = outputs[0].shape
    others, extent = [d for d in range(len(shape)) if d != op.axis], shape[op.axis]
    lanes = bits // max(8 * buffer.element.bytes for buffer in outputs)
    along = min(extent & -extent, lanes)
    ev = ev_of(1)
    if op.axis == len(shape) - 1 and along >= _LEAST_LANES and op.combine not in ev.env.functions:
        _scan_loops(ev_of(along), op, outputs, others, None, {})
        return
    across = others[-1] if others else None
    # 16: the fp32 lanes of the widest vector unit.
    width = 1 if across is None else min(shape[across] & -shape[across], 16)
    _scan_loops(ev_of(width), op, outputs, others, across, {})


def _scan_loops(
    ev: Evaluator,
    op: ScanOp,
    outputs: list[Buffer],
    others: list[int],
    across: int | None,
    coords: dict[int, Lanes],
) -> None:
    """The loops over the other dims; across: the one that runs over the lanes, or None."""
    if others:
        dim, step = others[0], ev.math.width if others[0] == across else 1
        with loop(ev.code, outputs[0].shape[dim], step) as opened:
            coord = Lanes(opened.index, 1 if step > 1 else 0, step)
            _scan_loops(ev, op, outputs, others[1:], across, {**coords, dim: coord})
        return
    _ScanLine(ev, op, outputs, coords, ev.math.width if across is None else 1).emit()


class _ScanLine:
    """The scan of one line, or of one line for each lane; step: elements of a line in one step."""

    __slots__ = ("coords", "ev", "op", "outputs", "step")

    def __init__(
        self, ev: Evaluator, op: ScanOp, outputs: list[Buffer], coords: dict[int, Lanes], step: int
    ) -> None:
        self.ev, self.op, self.outputs, self.coords = ev, op, outputs, coords
        self.step = step

    def emit(self) -> None:
        """Emit the first step, and a loop over the others that carries the last result."""
        ev, extent = self.ev, self.outputs[0].shape[self.op.axis]
        running = self._last(self._scanned(integer_literal(0), None))
        if extent == self.step:
            return
        with loop(ev.code, extent, self.step, start=self.step) as opened:
            phis = [opened.carry(ev.math.vector(v)) for v in running]
            results = self._scanned(opened.index, [ev.math.wrap(phi) for phi in phis])
            for phi, value in zip(phis, self._last(results), strict=True):
                opened.update(phi, ev.math.vector(value))

    def _scanned(self, index: Val, running: list[Lanes] | None) -> list[Lanes]:
        """Read, scan and write the elements of a step. running: the result of the steps before"""
        ev, coords = self.ev, self._coords_at(index)
        values = [ev.lanes(v, coords) for v in self.op.inputs]
        distance = 1
        while distance < self.step:
            values = self._with_earlier(values, distance)
            distance *= 2
        if running is not None:
            # The running value comes first: a combine region need not be commutative.
            values = apply_region(ev, self.op.combine, running + values)
        for buffer, value in zip(self.outputs, values, strict=True):
            write_buffer(ev.math, buffer, coords, value)
        return values

    def _coords_at(self, index: Val) -> tuple[Lanes, ...]:
        extent, math = self.outputs[0].shape[self.op.axis], self.ev.math
        along = Lanes(index, int(self.step > 1), self.step)
        if self.op.reverse:
            first = math.add(literal(extent - self.step), Lanes(index, 0, self.step), "sub")
            along = Lanes(first.base, int(self.step > 1), self.step)
        merged = {**self.coords, self.op.axis: along}
        return tuple(merged[d] for d in range(len(merged)))

    def _with_earlier(self, values: list[Lanes], distance: int) -> list[Lanes]:
        """Each lane combined with the one `distance` before it, if there is one."""
        ev, step = self.ev, range(self.step)
        back = -distance if self.op.reverse else distance
        vectors = [ev.math.vector(v) for v in values]
        sources = [i - back if i - back in step else i for i in step]
        earlier = [ev.math.wrap(ev.code.shuffle(v, sources)) for v in vectors]
        both = apply_region(ev, self.op.combine, earlier + [ev.math.wrap(v) for v in vectors])
        chosen = [self.step + i if i - back in step else i for i in step]
        return [
            ev.math.wrap(ev.code.shuffle(v, chosen, ev.math.vector(combined)))
            for v, combined in zip(vectors, both, strict=True)
        ]

    def _last(self, values: list[Lanes]) -> list[Lanes]:
        """The last element of a step, in all lanes."""
        if self.step == 1:
            return values
        lanes = [0 if self.op.reverse else self.step - 1] * self.step
        ev = self.ev
        return [ev.math.wrap(ev.code.shuffle(ev.math.vector(v), lanes)) for v in values]
