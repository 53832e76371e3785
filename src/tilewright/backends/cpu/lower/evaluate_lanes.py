"""Evaluation of a tile value at the coordinates of the lanes: tile ops as functions of an index.

Ops that only compute or move elements have no code of their own: `Evaluator.at(value, coords)`
walks from a use up to existing values (a buffer, a scalar, memory) and emits the code of one vector
step. Results are cached for the nest, so that a value with several sinks in a nest is computed
once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from tilewright.analysis import Alignment, integer_range
from tilewright.backends.cpu.lower.affine_lanes import AFFINE, Evaluated
from tilewright.backends.cpu.lower.lane_values import LaneMath, Lanes, uniform
from tilewright.backends.cpu.lower.lowering_record import LoweringRecord
from tilewright.backends.cpu.lower.vector_access import Buffer, memory_type, read_buffer
from tilewright.ir import Block, Op, Trait, Value
from tilewright.ir.types import PointerType, TileType, element_of, f16, f32
from tilewright.llvm import Code, Val, lower_elementwise
from tilewright.ops import CastOp, DivOp
from tilewright.support.data_class import dataclass

Coords = tuple[Lanes, ...]
Steps = Generator[tuple[Value, Coords], Evaluated, Evaluated]
"""Steps of a computation: yields the operands, receives them evaluated, returns the value."""


@dataclass(frozen=True, slots=True)
class RegionFunction:
    """The LLVM function of scalars of a region.

    captured: outside values that follow the region's arguments; results: LLVM types
    """

    name: str
    captured: tuple[Value, ...]
    results: tuple[str, ...]


class Environment:
    """The values that exist in the function so far: scalars, tiles in buffers, functions of
    regions; and facts about all values.

    for_hints: for the addresses of prefetches, whose integer arithmetic is assumed not to wrap
    """

    __slots__ = ("_natural", "alignments", "buffers", "for_hints", "functions", "scalars")

    def __init__(self, alignments: Mapping[Value, Alignment], for_hints: bool = False) -> None:
        self.alignments = alignments
        self.for_hints = for_hints
        self._natural: dict[Value, bool] = {}
        self.functions: dict[Block, RegionFunction] = {}
        self.scalars: dict[Value, Evaluated] = {}
        self.buffers: dict[Value, Buffer] = {}

    def is_natural(self, value: Value) -> bool:
        """Whether all elements of an integer value are proved not to be negative."""
        natural = self._natural.get(value)
        if natural is None:
            natural = self._natural[value] = self._is_proved_natural(value)
        return natural

    def _is_proved_natural(self, value: Value) -> bool:
        if self.for_hints:
            facts = self.alignments.get(value)
            return facts is not None and facts.natural
        found = integer_range(value)
        return found is not None and found.low >= 0

    @contextmanager
    def where_natural(self, values: Iterable[Value]) -> Generator[None]:
        """The code emitted inside runs only where no element of some values is negative."""
        before = dict(self._natural)
        self._natural.update(dict.fromkeys(values, True))
        yield
        self._natural = before


class Evaluator:
    """Evaluates values for one nest.

    shifts: remainders that equal the dividend less a number wherever the code runs (see
    wrapped_tiles.py); record: of the loads that are emitted, see lowering_record.py
    """

    __slots__ = ("assumed", "code", "env", "record", "shifts", "evaluated", "math")

    def __init__(
        self,
        code: Code,
        env: Environment,
        width: int,
        shifts: Mapping[Value, Lanes] | None = None,
        record: LoweringRecord | None = None,
    ) -> None:
        self.code = code
        self.env = env
        self.record = record
        self.shifts = shifts or {}
        self.math = LaneMath(code, width)
        # Conditions that hold wherever this evaluator's code runs.
        self.assumed: dict[tuple[Value, Coords], Lanes] = {}
        # Valid across loops: keys hold the loop's index, and code without one is hoisted by `let`.
        self.evaluated: dict[tuple[Value, Coords], Evaluated] = {}

    def branch(self) -> Evaluator:
        """An evaluator for a side of a branch, whose values do not exist on the other side."""
        side = Evaluator(self.code, self.env, self.math.width, self.shifts, self.record)
        side.assumed.update(self.assumed)
        side.evaluated.update(self.evaluated)
        side.math.vectors.update(self.math.vectors)
        return side

    def assume(self, condition: Value, coords: Coords) -> None:
        """Assume that a condition holds at these coordinates, in the loop that is open now.

        The level keeps loads without a mask, which depend on the condition, in the loop.
        """
        self.evaluated[condition, coords] = self._known_to_hold()

    def assume_from_now_on(self, condition: Value, coords: Coords) -> None:
        """Assume that a condition, a scalar or a tile at these coordinates, holds in all later
        code."""
        self.assumed[condition, coords] = self._known_to_hold()

    def _known_to_hold(self) -> Lanes:
        return uniform(Val("true", "i1", self.code.level))

    def at(self, value: Value, coords: Coords) -> Evaluated:
        """The value at the lanes' coordinates (none for a scalar)."""
        evaluated_value = self._existing(value, coords)
        return self._walk(value, coords) if evaluated_value is None else evaluated_value

    def _existing(self, value: Value, coords: Coords) -> Evaluated | None:
        """A value that needs no code, or that has been evaluated before."""
        is_tile = isinstance(value.type, TileType)
        if not is_tile:
            # A scalar is the same at all coordinates: it is cached once.
            coords = ()
        if self.assumed and (value, coords) in self.assumed:
            return self.assumed[value, coords]
        if not is_tile:
            evaluated_value = self.env.scalars.get(value)
            if evaluated_value is not None:
                return evaluated_value
        cached = self.evaluated.get((value, coords))
        if cached is not None:
            return cached
        buffer = self.env.buffers.get(value)
        if buffer is None:
            return None
        evaluated_value = self.evaluated[value, coords] = read_buffer(self.math, buffer, coords)
        return evaluated_value

    def _walk(self, value: Value, coords: Coords) -> Evaluated:
        """Evaluate a value after its operands, depth first.

        The stack is a list, since a chain may have thousands of values.
        """
        stack: list[tuple[Value, Coords, Steps]] = []
        evaluated_value: Evaluated | None = None
        while True:
            if evaluated_value is None:
                coords = coords if isinstance(value.type, TileType) else ()
                stack.append((value, coords, self._compute(value, coords)))
            value, coords, steps = stack[-1]
            if value.op is not None:
                self.code.locate(value.op.loc)
            try:
                request = next(steps) if evaluated_value is None else steps.send(evaluated_value)
            except StopIteration as done:
                stack.pop()
                computed: Evaluated = done.value
                evaluated_value = self.evaluated[value, coords] = computed
                if not stack:
                    return computed
            else:
                value, coords = request
                evaluated_value = self._existing(value, coords)

    def lanes(self, value: Value, coords: Coords) -> Lanes:
        """The value at the coordinates, as `at`, with addresses as a vector of pointers."""
        return self.as_lanes(self.at(value, coords), value)

    def as_lanes(self, evaluated_value: Evaluated, value: Value) -> Lanes:
        """Addresses expanded to a vector of pointers."""
        if isinstance(evaluated_value, Lanes):
            return evaluated_value
        if evaluated_value.offset is None:
            return uniform(evaluated_value.base)
        element = element_of(value.type)
        assert isinstance(element, PointerType)
        return self.math.wrap(self.math.addresses(evaluated_value, memory_type(element.element)))

    def vector(self, value: Value, coords: Coords) -> Val:
        return self.math.vector(self.lanes(value, coords))

    def _compute(self, value: Value, coords: Coords) -> Steps:
        op = value.op
        assert op is not None, f"argument {value} has no buffer"
        shift = self.shifts.get(value)
        if shift is not None:
            return self._shifted(op.operands[0], shift, coords)
        function = INDEX_FUNCTIONS.get(type(op))
        if function is not None:
            return function(self, op, value, coords)
        assert Trait.ELEMENTWISE in op.traits, f"{op.opcode} is not an index function"
        return self._elementwise(op, coords)

    def _shifted(self, dividend: Value, shift: Lanes, coords: Coords) -> Steps:
        x = self.as_lanes((yield dividend, coords), dividend)
        return self.math.add(x, shift, "sub")

    def _elementwise(self, op: Op, coords: Coords) -> Steps:
        evaluated: list[Evaluated] = []
        for operand in op.operands:
            evaluated.append((yield operand, coords))
        return self.elementwise(op, evaluated)

    def elementwise(self, op: Op, evaluated: list[Evaluated]) -> Evaluated:
        """One element-wise op on evaluated operands: on scalars if all are uniform."""
        affine = AFFINE.get(type(op))
        if affine is not None:
            result = affine(self.math, op, evaluated)
            if result is not None:
                return result
        operands = [self.as_lanes(x, v) for x, v in zip(evaluated, op.operands, strict=True)]
        if all(lanes.is_uniform for lanes in operands):
            return uniform(lower_elementwise(self.code, op, [lanes.base for lanes in operands]))
        vectors = [self.math.vector(lanes) for lanes in operands]
        if _rounds_quotient(op):
            vectors = [self.code.fenced(vectors[0], 32 * vectors[0].width)]
        return self.math.wrap(lower_elementwise(self.code, op, vectors))


def _rounds_quotient(op: Op) -> bool:
    """Whether an op rounds a quotient of f32 to f16.

    LLVM would divide in f16 instead, with the same result, which is slower where a CPU has
    instructions for it (figures in ADR 0033).
    """
    return (
        isinstance(op, CastOp)
        and element_of(op.result.type) is f16
        and element_of(op.x.type) is f32
        and isinstance(op.x.op, DivOp)
    )


INDEX_FUNCTIONS: dict[type[Op], Callable[[Evaluator, Any, Value, Coords], Steps]] = {}
"""How the elements of an op's result are computed from those of its operands; see
index_functions.py."""

OpT = TypeVar("OpT", bound=Op)
IndexFunction = Callable[[Evaluator, OpT, Value, Coords], Steps]


def index_function(
    *op_classes: type[OpT],
) -> Callable[[IndexFunction[OpT]], IndexFunction[OpT]]:
    """Register the function that computes the elements of a result of these ops."""

    def register(function: IndexFunction[OpT]) -> IndexFunction[OpT]:
        for op_class in op_classes:
            INDEX_FUNCTIONS[op_class] = function
        return function

    return register
