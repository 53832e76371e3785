"""Emits the matmul of matrices in memory that replaces a loop of dots.

    rows, columns = those of the result that are stored        (live_extents.py)
    K = those of all iterations within the masks along K
    if every other mask holds in the corners, tiles do not wrap, rows are dense, ...
        acc = matmul(a, b, strides, K, rows, columns)
        trips = 0                                              or the remaining ones
    else
        acc = 0
    the loop

The matmul of fp16 may fail, and then leaves the work to the loop.

Most loops have tiles that end at the edges of the result: of 1000 x 1000 elements a third of all
blocks of 256 x 256 do. The matmul computes only the elements within them.

Elements beyond K are zeros on both sides if both masks end there. Where one side has other numbers,
which must not be multiplied by zero if they are infinite, only whole iterations are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.evaluate_lanes import Environment, Evaluator
from tilewright.backends.cpu.lower.gemm_groups import (
    emit_group_query,
    kept_panels,
    multiply_group,
    note_failure,
    unless_failed,
)
from tilewright.backends.cpu.lower.lane_values import Address, Lanes, literal, uniform
from tilewright.backends.cpu.lower.live_extents import live_extents
from tilewright.backends.cpu.lower.loop_clipping import ClippingBound, IndexedValue
from tilewright.backends.cpu.lower.matmuls_from_memory import MemoryMatmul, Operand
from tilewright.backends.cpu.lower.non_fusible import call_of_memory_matmul
from tilewright.backends.cpu.lower.vector_access import memory_type
from tilewright.backends.cpu.lower.wrapped_tiles import axes_of_remainders, shift_without_wrap
from tilewright.backends.cpu.microkernel import DotSpec, memory_step
from tilewright.ir import Value
from tilewright.ir.types import TileType, dtype_of, element_of
from tilewright.llvm import Val, integer_literal
from tilewright.ops import CompareOp, ConstantOp, LoadOp, pointee

_EVERYWHERE = 1 << 62
"""A length that no matmul has."""


def _i64(value: int) -> Val:
    return integer_literal(value, "i64")


class MemoryMatmulEmitter:
    """Emits a matmul before its loop, from the values of the loop's scalars there.

    starts: lower bound, then initial values; of tiles anything
    fits: the conditions for it; grouped: with those of the next programs (gemm_groups.py)
    """

    def __init__(
        self,
        state: CpuLowering,
        found: MemoryMatmul,
        starts: Sequence[Val],
        upper: Val,
        grouped: bool = False,
    ) -> None:
        self.state, self.code, self.found, self.starts = state, state.code, found, starts
        self.grouped = grouped
        self.shifts = dict[Value, Lanes]()
        self.evaluators = dict[Val, Evaluator]()
        self.fits: list[Val] = []
        self.trips = self._trips(upper)
        self.last_trip = self.code.binary("sub", self.trips, _i64(1))
        self.kept = live_extents(state, found.loop, found.result)
        last = [self.code.binary("sub", n, integer_literal(1)) for n in self.kept]
        self.last_of_a: list[Val | None] = [last[0], None]
        self.last_of_b: list[Val | None] = [None, last[1]]

    def emit(
        self, name: str, spec: DotSpec, accumulators: Val, fill: Callable[[], None]
    ) -> list[Val]:
        """Emit the call of the micro-kernel of a specification, which may be that of a group, where
        the conditions hold, and elsewhere the code that fills the accumulators; returns the starts
        of the rest of the loop."""
        code = self.code
        self._unwrap()
        a, a_row = self._operand(self.found.a)
        b, b_row = self._operand(self.found.b)
        for side, last in ((self.found.a, self.last_of_a), (self.found.b, self.last_of_b)):
            self._side_masks_hold(side, last)
        depth, count = self._length()
        self.fits += [code.compare("icmp sgt", depth, _i64(0))]
        self.fits += [code.compare("icmp sgt", n, integer_literal(0)) for n in self.kept]
        fits = self._all(self.fits)
        rows, columns = (code.convert("sext", n, "i64") for n in self.kept)
        operands = [rows, a, a_row, b, b_row, depth, columns]
        if self.grouped:
            emit_group_query(self.state, fits, operands)
        then, other, filled, done = (code.label(n) for n in ("whole", "other", "filled", "rest"))
        code.line(f"br i1 {fits}, label %{then}, label %{other}")
        code.line(f"{other}:")
        fill()
        for line in (f"br label %{filled}", f"{filled}:", f"br label %{done}", f"{then}:"):
            code.line(line)
        may_fail, ends = spec.may_fail, [then]
        if self.grouped:
            there = code.label("there") if may_fail else done
            ends = [there if may_fail else then, code.label("multiply")]
            rows, columns = multiply_group(self.state, ends[-1], there, (rows, columns))
        sizes = (a_row, b_row, depth, rows, columns)
        kept = kept_panels(self.state) if self.grouped else ()
        numbers = call_of_memory_matmul(spec, sizes, adds=False, kept=kept)
        call = f"@{name}({accumulators.typed}, {a.typed}, {b.typed}, {numbers})"
        if may_fail:
            right = code.let_here(f"call i1 {call}", "i1")
            if self.grouped:
                note_failure(self.state, right)
            code.line(f"br i1 {right}, label %{done}, label %{other}")
            if self.grouped:
                unless_failed(self.state, ends[0], done, other)
        else:
            code.line(f"call void {call}")
            code.line(f"br label %{done}")
        code.line(f"{done}:")
        known = ", ".join(f"[ {count}, %{end} ]" for end in ends)
        done_trips = code.let_here(f"phi i64 {known}, [ 0, %{filled} ]", "i64")
        return [self._after(n, done_trips) for n in range(len(self.starts))]

    def _all(self, conditions: Sequence[Val]) -> Val:
        return reduce(lambda x, y: self.code.binary("and", x, y), dict.fromkeys(conditions))

    def _trips(self, upper: Val) -> Val:
        """Iterations of the loop, as an i64."""
        code, step = self.code, self._constant_step()
        low, high = (code.convert("sext", v, "i64") for v in (self.starts[0], upper))
        distance = code.binary("sub", high, low)
        above = code.binary("add", distance, _i64(step - 1))
        trips = code.binary("sdiv", above, _i64(step))
        some = code.compare("icmp sgt", distance, _i64(0))
        return code.select(some, trips, _i64(0))

    def _constant_step(self) -> int:
        op = self.found.loop.step.op
        assert isinstance(op, ConstantOp)
        return int(op.value)

    def _unwrap(self) -> None:
        """Substitute shifts for all remainders, which hold if `fits` does."""
        sides = ((self.found.a, self.last_of_a), (self.found.b, self.last_of_b))
        axes = [axes_of_remainders(side.load.pointer) for side, _ in sides]
        for tile in self.found.remainders:
            value = tile.op.result
            lasts = {
                last[axis] for (_, last), known in zip(sides, axes, strict=True)
                for axis in known.get(value, ())
            }  # fmt: skip
            last = lasts.pop() if len(lasts) == 1 else None
            inside, self.shifts[value] = shift_without_wrap(self.state, tile, last)
            self.fits.append(inside)

    def _after(self, number: int, trips: Val) -> Val:
        """A scalar of the loop after a number of iterations: the index, then the others."""
        code, start = self.code, self.starts[number]
        if number == 0:
            step: Val | None = integer_literal(self._constant_step(), start.type)
        else:
            value = self.found.steps[number - 1]
            step = None if value is None else self.state.evaluator().lanes(value, ()).base
        if step is None:
            return start
        if start.type == "ptr":
            wide = code.convert("sext", step, "i64")
            element = element_of(pointee(self.found.loop.inits[number - 1].type))
            distance = code.binary("mul", wide, trips)
            return code.element_address(start, distance, memory_type(element))
        count = trips if start.type == "i64" else code.convert("trunc", trips, start.type)
        return code.binary("add", start, code.binary("mul", step, count))

    def _evaluator(self, trips: Val) -> Evaluator:
        """An evaluator of values in the iteration after a number of trips."""
        if trips not in self.evaluators:
            self.evaluators[trips] = self._new_evaluator(trips)
        return self.evaluators[trips]

    def _new_evaluator(self, trips: Val) -> Evaluator:
        outside = self.state.env
        env = Environment(outside.alignments)
        env.functions, env.buffers = outside.functions, outside.buffers
        env.scalars = dict(outside.scalars)
        for number, arg in enumerate(self.found.loop.body.args):
            if not isinstance(arg.type, TileType):
                value = self._after(number, trips)
                env.scalars[arg] = Address(value) if value.type == "ptr" else uniform(value)
        return Evaluator(self.code, env, 1, self.shifts)

    # -- masks ------------------------------------------------------------------------------------

    def _side_masks_hold(self, side: Operand, last: Sequence[Val | None]) -> None:
        """Conditions that do not depend on K alone hold everywhere if they hold in the corners."""
        depth = integer_literal(self.found.depth - 1)
        ends = [
            [literal(0), uniform(depth if n is None else n)] for n in last
        ]  # fmt: skip
        for trips in (_i64(0), self.last_trip):
            ev = self._evaluator(trips)
            for condition in (c for c in side.conditions if not _is_length(side, c)):
                for corner in product(*ends):
                    at = condition.coords(dict(enumerate(corner)))
                    self.fits.append(ev.lanes(condition.value, at).base)

    def _length(self) -> tuple[Val, Val]:
        """K of the matmul, and the number of iterations that it replaces."""
        code, found = self.code, self.found
        total = code.binary("mul", self.trips, _i64(found.depth))
        ends = [self._end(side) for side in (found.a, found.b)]
        length = code.intrinsic("smin", "i64", total, code.intrinsic("smin", "i64", *ends))
        at_end = code.compare("icmp eq", length, total)
        if found.a.masks_zeros and found.b.masks_zeros:
            at_end = code.binary("or", at_end, code.compare("icmp eq", *ends))
        past = code.binary("and", length, _i64(memory_step(found.spec) - 1))
        no_partial_step = code.compare("icmp eq", past, _i64(0))
        to_end = code.binary("and", at_end, no_partial_step)
        count = code.binary("sdiv", length, _i64(found.depth))
        if found.together > 1:
            count = code.binary("and", count, _i64(-found.together))
        whole = code.binary("mul", count, _i64(found.depth))
        return code.select(to_end, length, whole), code.select(to_end, self.trips, count)

    def _end(self, side: Operand) -> Val:
        """The index at which the masks along K end, from the first iteration on."""
        end = _i64(_EVERYWHERE)
        for condition in side.conditions:
            if _is_length(side, condition):
                end = self.code.intrinsic("smin", "i64", end, self._end_of(side, condition))
        return end

    def _end_of(self, side: Operand, condition: IndexedValue) -> Val:
        """The index at which a condition ends that continues along K from iteration to iteration.

        `x < n` holds for the first n - x indices if x is increasing; it always holds if x is
        decreasing.
        """
        code = self.code
        first = self._slack(side, condition, 0, 0)
        along = code.binary("sub", self._slack(side, condition, 0, 1), first)
        from_turn = code.binary("sub", self._slack(side, condition, 1, 0), first)
        falls = code.binary(
            "and", code.compare("icmp eq", along, _i64(-1)),
            code.compare("icmp eq", from_turn, _i64(-self.found.depth)),
        )  # fmt: skip
        rises = self._all([
            code.compare("icmp sge", along, _i64(0)), code.compare("icmp sge", from_turn, _i64(0)),
            code.compare("icmp sgt", first, _i64(0)),
        ])  # fmt: skip
        self.fits.append(code.binary("or", falls, rises))
        return code.select(falls, first, _i64(_EVERYWHERE))

    def _slack(self, side: Operand, condition: IndexedValue, turn: int, at: int) -> Val:
        """A number that is positive where a condition holds, in an iteration at an index along
        K."""
        code, op = self.code, condition.value.op
        assert isinstance(op, CompareOp)
        ev, coords = self._evaluator(_i64(turn)), condition.coords({side.along: literal(at)})
        low, high = (
            code.convert("sext", ev.lanes(v, coords).base, "i64") for v in ClippingBound.sides(op)
        )
        slack = code.binary("sub", high, low)
        return code.binary("add", slack, _i64(1)) if op.predicate in ("le", "ge") else slack

    # -- addresses --------------------------------------------------------------------------------

    def _operand(self, side: Operand) -> tuple[Val, Val]:
        """The address of the first element, and the bytes from a row (or column) to the next; the
        other dimension has to be dense, and an iteration to continue where the one before ends."""
        code, load, now = self.code, side.load, self._evaluator(_i64(0))
        soon = self._evaluator(_i64(1))
        start = self._address(now, load, (0, 0))
        down, across = (self._distance(start, now, load, at) for at in ((1, 0), (0, 1)))
        dense, row = (down, across) if side.in_columns else (across, down)
        step = across if side.along else down
        expected = code.binary("mul", step, _i64(self.found.depth))
        moved = self._distance(start, soon, load, (0, 0))
        self.fits.append(code.compare("icmp eq", moved, expected))
        size = dtype_of(load.result.type).bytes
        self.fits.append(code.compare("icmp eq", dense, _i64(size)))
        return start, row

    def _distance(self, start: Val, ev: Evaluator, load: LoadOp, at: tuple[int, int]) -> Val:
        """Bytes from an address to that of an element."""
        code = self.code
        ends = [code.convert("ptrtoint", v, "i64") for v in (self._address(ev, load, at), start)]
        return code.binary("sub", *ends)

    def _address(self, ev: Evaluator, load: LoadOp, at: tuple[int, int]) -> Val:
        address = ev.at(load.pointer, tuple(map(literal, at)))
        assert isinstance(address, Address)
        return ev.math.first(address, memory_type(element_of(load.result.type)))


def _is_length(side: Operand, condition: IndexedValue) -> bool:
    """Whether a condition depends on K alone."""
    return set(condition.axes) - {None} == {side.along}
