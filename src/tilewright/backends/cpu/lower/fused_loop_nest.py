"""Emits a fused loop nest: vectors along one dimension, loops over the others.

In each step all values are evaluated before the first one is written, so that no store is between
the loads of its step. With reductions, the loops over kept dimensions are outside, the reduced one
inside.

A nest of stores is clipped where a mask ends it (see loop_clipping.py): an unmasked main loop,
whose loads and stores have no mask, and a masked tail.

    for (i = 0; i < active & -32; i += 32)  unmasked step    perhaps non-temporal
    for (; i < active; i += 32)             masked step      at most one

The same holds for a reduction, whose steps beyond the mask run as without clipping, and for a nest
that computes a loop-carried tile. A masked store that misses the caches takes up to four times as
long as an unmasked one. The figures are in ADR 0033.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.dot_operands import operand_strides
from tilewright.backends.cpu.lower.evaluate_lanes import Coords, Evaluated, Evaluator
from tilewright.backends.cpu.lower.fusion import EXPENSIVE, LoopNest, recompute_cost
from tilewright.backends.cpu.lower.lane_reductions import Accumulators
from tilewright.backends.cpu.lower.lane_values import Lanes, holds, uniform
from tilewright.backends.cpu.lower.loop_clipping import (
    MIN_STEPS_TO_CLIP,
    ActiveExtent,
    IndexedValue,
    active_extent,
    holding_extent,
)
from tilewright.backends.cpu.lower.loop_sections import Loop, loop, steps_between
from tilewright.backends.cpu.lower.prefetch import Prefetcher, RunAhead
from tilewright.backends.cpu.lower.row_conditions import row_condition
from tilewright.backends.cpu.lower.step_width import full_width, lanes_along
from tilewright.backends.cpu.lower.streaming_stores import nest_may_stream, nontemporal_hint
from tilewright.backends.cpu.lower.usual_indices import usual_variant
from tilewright.backends.cpu.lower.vector_access import Access, Buffer, store, write_buffer
from tilewright.ir import Op, Value
from tilewright.ir.types import PointerType, element_of
from tilewright.llvm import Code, ModuleText, Val, constant, integer_literal
from tilewright.ops import AddOp, AndOp, MulOp, OrOp, ReduceOp, StoreOp, XorOp, pointee

_ZERO = integer_literal(0)


def emit_loop_nest(state: CpuLowering, nest: LoopNest) -> None:
    """Emit the nest; materialized values and results of reductions have buffers afterwards."""
    emitter, streamed = _NestEmitter(state, nest), state.streamed_nests
    usual = usual_variant(emitter)
    if usual is None:
        emitter.emit()
    else:
        _emit_either(state.code, usual.condition, usual.emit, emitter.emit)
    if state.record is not None:
        streams = state.streamed_nests > streamed
        state.record.nest(nest, emitter.vector_dim, emitter.width, streams)
    for value, buffer in emitter.buffers:
        state.env.buffers[value] = buffer


def _emit_either(
    code: Code, condition: Val, emit_one: Callable[[], None], emit_other: Callable[[], None]
) -> None:
    """A branch on a condition that holds for the whole nest. Neither side defines new scalars."""
    one, other, done = (code.label(name) for name in ("one", "other", "done"))
    code.line(f"br i1 {condition}, label %{one}, label %{other}")
    for label, emit in ((one, emit_one), (other, emit_other)):
        code.line(f"{label}:")
        emit()
        code.line(f"br label %{done}")
    code.line(f"{done}:")


class _NestEmitter:
    """Emits one nest. shifts: see `Evaluator`."""

    def __init__(
        self, state: CpuLowering, nest: LoopNest, shifts: Mapping[Value, Lanes] | None = None
    ) -> None:
        self.state, self.nest, self.code = state, nest, state.code
        self.shifts = shifts
        self.streaming = False  # whether its stores are non-temporal
        self.holding: frozenset[IndexedValue] = (
            frozenset()
        )  # conditions that hold in the present code
        self.reduces = [s for s in nest.sinks if isinstance(s, ReduceOp)]
        self.stores = [s for s in nest.sinks if isinstance(s, StoreOp)]
        self.only_stores = bool(self.stores) and not self.reduces and not nest.materialized
        carries = not nest.sinks and any(v in state.assigned_buffers for v in nest.materialized)
        alone = bool(self.reduces) and not self.stores and not nest.materialized
        self.carries, ahead = carries, self.only_stores or carries or alone
        self.ahead = RunAhead(state, nest, self.stores) if ahead else None
        self.fetches = not alone  # of the present code
        self.axis = self.reduces[0].axis if self.reduces else None
        self.vector_dim, self.width = self._choose_vectors()
        self.ev = state.evaluator(self.width, shifts)
        self.buffers = [(v, self._buffer(v)) for v in nest.materialized]
        self.results = [
            (r, None if r.type is element_of(r.type) else state.buffer_for(r))
            for op in self.reduces
            for r in op.results
        ]
        self.buffers += [(r, b) for r, b in self.results if b is not None]
        self.accumulators: list[Accumulators] = []
        self.prefetcher = Prefetcher(state, self.width)

    def _buffer(self, value: Value) -> Buffer:
        return self.state.buffer_for(
            value, operand_strides(self.state.unit, value, self.state.alignments)
        )

    def variant(self, shifts: Mapping[Value, Lanes]) -> _NestEmitter:
        """Another emitter of the nest."""
        return _NestEmitter(self.state, self.nest, shifts)

    # -- shape of the nest ----------------------------------------------------------------------

    def _choose_vectors(self) -> tuple[int, int]:
        """The dimension that runs over lanes: the one with the cheapest step per element."""
        shape = self.nest.shape
        best, best_cost = len(shape) - 1, float("inf")
        # From the last: at equal cost it is preferred, since it is usually contiguous in memory.
        for dim in reversed(range(len(shape))):
            if shape[dim] == 1 and len(shape) > 1:
                continue
            cost = 0.0 if len(shape) == 1 else self._instructions_per_element(dim)
            if cost < best_cost:
                best, best_cost = dim, cost
        return best, lanes_along(self.state, self.nest, best)

    def cost(self, inside: bool = False) -> float:
        """Cost of the chosen step per element. inside: where the masks of its stores hold"""
        return self._instructions_per_element(self.vector_dim, inside)

    def _instructions_per_element(self, dim: int, inside: bool = False) -> float:
        """The instructions of a step with lanes along `dim` by its elements; a gather counts as its
        lanes. inside: see `cost`"""
        width = lanes_along(self.state, self.nest, dim)
        # Emitted into a module that is discarded: the instructions are only counted.
        code = Code(ModuleText())
        code.sections += [[] for _ in self.nest.shape]
        ev = Evaluator(code, self.state.env, width, shifts=self.shifts)
        # Levels as in the nest itself, so that the innermost section contains the whole step.
        inner = [dim] if self.axis in (None, dim) else [dim, self.axis]
        order = [*self._outer_dims(dim), *inner]
        coords = tuple(
            Lanes(
                Val(f"%p{d}", "i32", order.index(d) + 1),
                int(d == dim and width > 1),
                width if d == dim else 1,
            )
            for d in range(len(self.nest.shape))
        )
        for op in self.stores:
            if inside and op.mask is not None:
                ev.assume_from_now_on(op.mask, coords)
        for value in self.inputs():
            ev.at(value, coords)
        for op in self.stores:
            address = Access(ev.at(op.pointer, coords), element_of(op.stored.type))
            store(ev.math, address, ev.lanes(op.stored, coords))
        for value in self.nest.materialized:
            buffer = self.state.assigned_buffers.get(value)
            if buffer is not None:
                write_buffer(ev.math, buffer, coords, ev.at(value, coords))
        cost = _instructions(code.sections[-1], width)
        if self.axis == dim:
            # A shuffle and an operation for each halving of the lanes, once for each result.
            cost += 2 * (width.bit_length() - 1) * width / self.nest.shape[dim]
        elif self.axis is not None:
            # The loop over vectors is around that of the reduced dimension.
            cost += _instructions(code.sections[-2], width) / self.nest.shape[self.axis]
        return cost / width

    def _outer_dims(self, vector_dim: int) -> list[int]:
        """The dimensions of the loops around the loops over vectors and over the reduced
        dimension."""
        return [d for d in range(len(self.nest.shape)) if d not in (vector_dim, self.axis)]

    def inputs(self) -> list[Value]:
        """The values that each step evaluates."""
        inputs = list(self.nest.materialized)
        for op in self.reduces:
            inputs += op.inputs
        for op in self.stores:
            inputs += [v for v in (op.pointer, op.stored, op.mask) if v is not None]
        return inputs

    # -- loops ----------------------------------------------------------------------------------

    def emit(self) -> None:
        self._loops(self._outer_dims(self.vector_dim), {})

    def _loops(self, dims: list[int], coords: dict[int, Lanes]) -> None:
        """Open the loops over `dims`, then the vector loop, then that of the reduced dimension."""
        if dims:
            self._outer_loop(dims, coords)
        else:
            self._by_shared_condition(coords)

    def _by_shared_condition(self, coords: dict[int, Lanes]) -> None:
        """The inner loops, without the mask that all their lanes share where it holds.

        Some CPUs do not prefetch masked loads (see row_conditions.py).
        """
        self_contained = all(buffer is not None for _, buffer in self.results)
        # A nest that stores what another has read finds it in the cache, with masks or not, and is
        # slower without them.
        again = bool(self.stores and self.nest.prefetches)
        # nor in the few remaining iterations of a loop, which are not worth the code
        possible = self_contained and not again and self.state.done_from_memory is None
        condition = row_condition(self.nest, coords) if possible else None
        if condition is None:
            self._inner_loops(coords)
            return
        before = self.ev
        value = before.lanes(condition.value, condition.coords(coords))

        def side(holds: bool) -> None:
            # Values of one side do not exist on the other.
            self.ev, self.prefetcher = before.branch(), Prefetcher(self.state, self.width)
            if holds:
                self.ev.assume_from_now_on(condition.value, condition.coords(coords))
            self._inner_loops(coords)

        _emit_either(self.code, value.base, partial(side, True), partial(side, False))
        self.ev, self.prefetcher = before, Prefetcher(self.state, self.width)

    def _inner_loops(self, coords: dict[int, Lanes]) -> None:
        """The vector loop and that of the reduced dimension."""
        if self.only_stores:
            self._store_steps(self.vector_dim, coords)
        elif self.axis is None:
            self._along(self.vector_dim, coords, reducing=False)
        elif self.axis == self.vector_dim:
            self._along(self.axis, coords, reducing=True)
        else:
            with loop(self.code, self.nest.shape[self.vector_dim], self.width) as opened:
                vector = self._vector_coord(opened.index)
                self._along(self.axis, {**coords, self.vector_dim: vector}, reducing=True)

    def _outer_loop(self, dims: list[int], coords: dict[int, Lanes]) -> None:
        """The loop over `dims[0]`, with those over the others inside."""
        # Rows of results and buffers cannot be skipped: later code reads them.
        active = self._active_extent(dims[0], coords, 1) if self.only_stores else None
        if active is None:
            with loop(self.code, self.nest.shape[dims[0]]) as opened:
                self._loops(dims[1:], {**coords, dims[0]: uniform(opened.index)})
            return
        with steps_between(self.code, _ZERO, active.elements, 1) as index:
            inside = {**coords, dims[0]: uniform(index)}
            with self._rows_where(active, inside):
                self._loops(dims[1:], inside)

    @contextmanager
    def _rows_where(self, active: ActiveExtent, coords: dict[int, Lanes]) -> Generator[None]:
        """The code emitted inside runs for the rows whose condition holds."""
        before, after = self.ev, self.code.label("after")
        if not active.is_exact:
            condition = before.lanes(active.condition.value, active.condition.coords(coords))
            row = self.code.label("row")
            self.code.line(f"br i1 {condition.base}, label %{row}, label %{after}")
            self.code.line(f"{row}:")
            # Values evaluated inside do not exist after it.
            self.ev, self.prefetcher = before.branch(), Prefetcher(self.state, self.width)
        with self._where_it_holds(active.condition, coords):
            yield
        if not active.is_exact:
            self.code.line(f"br label %{after}")
            self.code.line(f"{after}:")
            self.ev, self.prefetcher = before, Prefetcher(self.state, self.width)

    def _vector_coord(self, index: Val) -> Lanes:
        if index.constant is not None:
            # The multiple of the constant; 0 is a multiple of every number. It is a step, not 0,
            # where the first step of a reduction is before the loop.
            return Lanes(index, int(self.width > 1), index.constant & -index.constant or 1 << 20)
        return Lanes(index, int(self.width > 1), self.width)

    def _along(self, dim: int, coords: dict[int, Lanes], reducing: bool) -> None:
        """Emit the innermost loop; a reduction without a neutral element starts with its first
        step."""
        along_lanes = dim == self.vector_dim
        extent, step = self.nest.shape[dim], self.width if along_lanes else 1
        starts = [neutral_elements(op) for op in self.reduces] if reducing else []
        self.accumulators, first = [], 0
        if reducing and None not in starts:
            lanes = [[uniform(n) for n in start or []] for start in starts]
            self._open_accumulators(lanes)
        elif reducing:
            start = self._coord(dim, integer_literal(0))
            self._open_accumulators(self._step(dim, coords, start)[0])
            first = step
        if first < extent:
            self._steps(dim, coords, step, first)
        if reducing:
            self._finish(coords, along_lanes)

    def _steps(self, dim: int, coords: dict[int, Lanes], step: int, first: int) -> None:
        """The innermost loop itself, from `first` on."""
        extent, active = self.nest.shape[dim], self._active_extent(dim, coords, step)
        count, start = None if active is None else active.elements, first
        if active is not None and dim == self.vector_dim and self._unmasked_steps_pay():
            start = self._unmasked_steps_of_values(dim, coords, active, first)
        elif active is None and dim == self.vector_dim:
            if self.carries and extent >= MIN_STEPS_TO_CLIP * step:
                holding = holding_extent(self.state, self.nest, dim, coords)
                if holding is not None:
                    start = self._unmasked_steps_of_values(dim, coords, holding, first)
            else:
                start = self._fetching_steps(dim, coords, integer_literal(extent), first)
        opened, kept = self._reducing_steps(
            dim, coords, loop(self.code, extent, step, start, count)
        )
        if count is not None and self.nest.materialized and not opened.runs_once:
            self._fill(dim, coords, step, opened, kept)

    def _reducing_steps(
        self, dim: int, coords: dict[int, Lanes], steps: AbstractContextManager[Loop],
        condition: IndexedValue | None = None,
    ) -> tuple[Loop, list[Lanes]]:  # fmt: skip
        """A loop that carries the accumulators, and the values of the last step that go to
        buffers."""
        with steps as opened:
            for accumulator in self.accumulators:
                accumulator.enter(opened)
            coord = self._coord(dim, opened.index)
            with self._where_it_holds(condition, {**coords, dim: coord}):
                inputs, kept = self._step(dim, coords, coord)
            for accumulator, values in zip(self.accumulators, inputs, strict=True):
                accumulator.fold(opened, values)
            lanes = [
                self.ev.as_lanes(x, v) for x, v in zip(kept, self.nest.materialized, strict=True)
            ]
            opened.outlets = [x.base for x in lanes]
        for accumulator in self.accumulators:
            accumulator.leave(opened)
        return opened, [replace(x, base=b) for x, b in zip(lanes, opened.outlets, strict=True)]

    def _unmasked_steps_pay(self) -> bool:
        """Whether a reduction gets an unmasked main loop: not where it prefetches the loads of the
        next program, so that its own were prefetched, and computes little.

        Such a reduction waits for memory, and an unmasked loop makes it slower. Other loads the CPU
        prefetches by itself, but not under a mask (figures in ADR 0033).
        """
        inputs = [value for op in self.reduces for value in op.inputs]
        computes = any(recompute_cost(value, load=0) >= EXPENSIVE for value in inputs)
        fetches = any(not prefetch.for_store for prefetch in self.nest.prefetches)
        return bool(inputs) and (computes or not fetches)

    def _unmasked_steps_of_values(
        self, dim: int, coords: dict[int, Lanes], active: ActiveExtent, first: int
    ) -> Val:
        """The unmasked main loop of a reduction or a loop-carried tile; returns the index of the
        next step."""
        unmasked = self.code.binary("and", active.holding, integer_literal(-self.width))
        start = self._fetching_steps(dim, coords, unmasked, first, active.condition)
        steps = loop(self.code, unmasked, self.width, start)
        self._reducing_steps(dim, coords, steps, active.condition)
        if not first:
            return unmasked
        return self.code.intrinsic("umax", "i32", unmasked, integer_literal(first))

    def _fetching_steps(
        self, dim: int, coords: dict[int, Lanes], end: Val, first: int,
        condition: IndexedValue | None = None,
    ) -> int | Val:  # fmt: skip
        """The steps that prefetch for later ones: none, or all of them where the grid touches
        enough memory; returns the index of the next step."""
        if self.fetches or self.ahead is None or not self.ahead.loads:
            return first
        self.state.fetching_nests += 1
        begin, fetching = integer_literal(first), Val("%fetching", "i1")
        end = self.code.let(f"select i1 {fetching}, {end.typed}, {begin.typed}", "i32", end)
        end = self.code.intrinsic("umax", "i32", end, begin) if first else end
        self.fetches = True
        self._reducing_steps(dim, coords, loop(self.code, end, self.width, first), condition)
        self.fetches = False
        return end

    def _active_extent(
        self, dim: int, coords: dict[int, Lanes], step: int, steps: int = MIN_STEPS_TO_CLIP
    ) -> ActiveExtent | None:
        """The extent along a dimension beyond which steps have no effect, if a test for it pays."""
        if self.nest.shape[dim] < steps * step:
            return None
        return active_extent(self.state, self.nest, dim, coords)

    # -- stores alone -----------------------------------------------------------------------------

    def _store_steps(self, dim: int, coords: dict[int, Lanes]) -> None:
        """The innermost loop of a nest of stores: an unmasked main loop and a masked tail."""
        extent, width = self.nest.shape[dim], self.width
        # A tile of less than a full step is not worth another copy of its code.
        full = width == full_width(self.state, self.nest)
        active = self._active_extent(dim, coords, width, 1 if full else MIN_STEPS_TO_CLIP)
        if active is None:
            self._unmasked_store_steps(dim, coords, partial(loop, self.code, extent, width), None)
            return
        unmasked = self.code.binary("and", active.holding, integer_literal(-width))
        opened = partial(steps_between, self.code, _ZERO, unmasked, width)
        self._unmasked_store_steps(dim, coords, opened, active.condition)
        if width > 1:
            with steps_between(self.code, unmasked, active.elements, width) as index:
                self._step(dim, coords, self._coord(dim, index))

    def _unmasked_store_steps(
        self,
        dim: int,
        coords: dict[int, Lanes],
        opened: Callable[[], AbstractContextManager[Loop | Val]],
        condition: IndexedValue | None,
    ) -> None:
        """Steps in which a condition holds; with non-temporal stores and without, selected by the
        program."""

        def emit() -> None:
            with opened() as inside:
                index = inside.index if isinstance(inside, Loop) else inside
                coord = self._coord(dim, index)
                with self._where_it_holds(condition, {**coords, dim: coord}):
                    self._step(dim, coords, coord)

        holding = self.holding if condition is None else self.holding | {condition}
        if not self._masks_hold(holding) or not nest_may_stream(self.state, self.nest):
            emit()
            return
        self.state.streamed_nests += 1
        before = self.ev

        def side(streaming: bool) -> None:
            # Values of one side do not exist on the other.
            self.ev, self.streaming = before.branch(), streaming
            self.prefetcher = Prefetcher(self.state, self.width)
            emit()

        condition_of_grid = Val("%streaming", "i1")
        _emit_either(self.code, condition_of_grid, partial(side, True), partial(side, False))
        self.ev, self.streaming = before, False
        self.prefetcher = Prefetcher(self.state, self.width)

    def _masks_hold(self, holding: frozenset[IndexedValue]) -> bool:
        """Whether the masks of all stores consist of conditions that hold."""
        everywhere = tuple(range(len(self.nest.shape)))
        stack = [IndexedValue(s.mask, everywhere) for s in self.stores if s.mask is not None]
        while stack:
            condition = stack.pop()
            parts = condition.conjuncts()
            if condition not in holding and not parts:
                return False
            stack += () if condition in holding else parts
        return True

    @contextmanager
    def _where_it_holds(
        self, condition: IndexedValue | None, coords: dict[int, Lanes]
    ) -> Generator[None]:
        """The code emitted inside runs where a condition holds at these coordinates."""
        before = self.holding
        if condition is not None:
            self.holding |= {condition}
            self.ev.assume(condition.value, condition.coords(coords))
        yield
        self.holding = before

    def _fill(
        self, dim: int, coords: dict[int, Lanes], step: int, opened: Loop, kept: list[Lanes]
    ) -> None:
        """Write the values of the last step that ran to buffers, for the skipped steps."""
        level = self.code.level
        assert opened.following is not None
        extent = integer_literal(self.nest.shape[dim])
        # None where the loop has run to its end.
        with steps_between(self.code, opened.following, extent, step) as index:
            at_coords = {**coords, dim: self._coord(dim, index)}
            ordered = tuple(at_coords[d] for d in range(len(at_coords)))
            for value, evaluated in zip(self.nest.materialized, kept, strict=True):
                # After the loop its values are outside of it, as in `Loop.final`.
                base = replace(evaluated.base, level=min(evaluated.base.level, level))
                lanes = replace(evaluated, base=base)
                write_buffer(self.ev.math, self.state.assigned_buffers[value], ordered, lanes)

    def _coord(self, dim: int, index: Val) -> Lanes:
        return self._vector_coord(index) if dim == self.vector_dim else uniform(index)

    def _open_accumulators(self, starts: list[list[Lanes]]) -> None:
        self.accumulators = [
            Accumulators(self.ev, op, start) for op, start in zip(self.reduces, starts, strict=True)
        ]

    def _step(
        self, dim: int, coords: dict[int, Lanes], coord: Lanes
    ) -> tuple[list[list[Lanes]], list[Evaluated]]:
        """One step of the innermost loop; returns the inputs of each reduction and each buffer."""
        at_coords = {**coords, dim: coord}
        ordered = tuple(at_coords[d] for d in range(len(at_coords)))
        computed = -len(self.code.sections[-1])
        values = self._evaluate(ordered)
        computed += len(self.code.sections[-1])
        inputs = [[self.ev.lanes(v, ordered) for v in op.inputs] for op in self.reduces]
        if self.ahead is not None and self.fetches and self._is_whole(ordered):
            self.ahead.emit(self.ev, ordered, computed, self.streaming)
        self._write(ordered, values)
        for prefetch in self.nest.prefetches:
            self.prefetcher.emit(prefetch, ordered)
        if self.reduces:
            # The caller continues with the reductions.
            self.code.locate(self.reduces[-1].loc)
        return inputs, values

    # -- the body -------------------------------------------------------------------------------

    def _evaluate(self, coords: Coords) -> list[Evaluated]:
        evaluated = [self.ev.at(v, coords) for v in self.nest.materialized]
        for op in self.stores:
            self.ev.at(op.pointer, coords)
            self.ev.at(op.stored, coords)
            if op.mask is not None:
                self.ev.at(op.mask, coords)
        for op in self.reduces:
            for value in op.inputs:
                self.ev.at(value, coords)
        return evaluated

    def _is_whole(self, coords: Coords) -> bool:
        """Whether a step stores all of its elements."""
        masks = [op.mask for op in self.stores if op.mask is not None]
        return all(holds(self.ev.lanes(mask, coords)) for mask in masks)

    def _write(self, coords: Coords, values: list[Evaluated]) -> None:
        for value, evaluated in zip(self.nest.materialized, values, strict=True):
            write_buffer(self.ev.math, self.state.assigned_buffers[value], coords, evaluated)
        for op in self.stores:
            self.code.locate(op.loc)
            mask = None if op.mask is None else self.ev.lanes(op.mask, coords)
            element = element_of(pointee(op.pointer.type))
            access = Access(self.ev.at(op.pointer, coords), element, mask)
            hint = nontemporal_hint(self.state) if self.streaming else ""
            if self.state.record is not None:
                self.state.record.access(op, access, self.width)
            store(self.ev.math, access, self.ev.lanes(op.stored, coords), hint)

    # -- reductions -----------------------------------------------------------------------------

    def _finish(self, coords: dict[int, Lanes], along_lanes: bool) -> None:
        """Results of one line: a scalar folded from the lanes, or a vector of results."""
        kept = tuple(coords[d] for d in sorted(coords) if d != self.axis)
        position = 0
        for accumulator in self.accumulators:
            if along_lanes:
                lanes = accumulator.across_lanes()
            else:
                lanes = [self.ev.math.wrap(v) for v in accumulator.vectors]
            for evaluated in lanes:
                value, buffer = self.results[position]
                position += 1
                if buffer is None:
                    self.state.env.scalars[value] = evaluated
                else:
                    write_buffer(self.ev.math, buffer, kept, evaluated)


def _instructions(lines: list[str], width: int) -> int:
    """The number of instructions of lines; a gather or scatter is an extraction or insertion and an
    access for each lane."""
    gathers = sum("masked.gather" in text or "masked.scatter" in text for text in lines)
    return len(lines) + 2 * width * gathers


_NEUTRAL: dict[type[Op], int] = {AddOp: 0, MulOp: 1, AndOp: -1, OrOp: 0, XorOp: 0}


def neutral_elements(op: ReduceOp) -> list[Val] | None:
    """The neutral element of a reduction by one op; None if it must start with an element.

    A float minimum or maximum has none: of NaNs alone it is NaN.
    """
    first = op.combine.first
    element = element_of(op.inputs[0].type)
    if first is None or first.next is None or first.next.next is not None or len(op.inputs) > 1:
        return None
    # The op must combine the two arguments; `x + x` or `x + 1` is no reduction.
    if isinstance(element, PointerType) or set(first.operands) != set(op.combine.args):
        return None
    number = _NEUTRAL.get(type(first))
    if number is None:
        return None
    # -0.0, because 0.0 + -0.0 is 0.0: a sum of -0.0 alone has to stay -0.0.
    return [constant(-0.0 if element.is_float and number == 0 else number, element)]
