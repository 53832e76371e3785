"""Variables that a loop carries from one iteration to the next.

Before the body is lowered, each name that it assigns and that already exists is split into leaves
(see `control_flow_joins`); each leaf that can be a run-time value becomes a loop-carried value.
After the body, the new value must have the same structure and types; if not, the body is lowered
again: an initial literal takes the type of the variable in the body (`total = 0` before
`total += x`); any other variable is not carried, and reading it is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import NoReturn

from tilewright.frontend.python.captured_names import MISSING
from tilewright.frontend.python.lower.control_flow_joins import (
    as_value,
    can_hold,
    common_type,
    leaf_type,
    leaves,
    rebuild,
    same_leaf,
    same_structure,
)
from tilewright.frontend.python.lower.function_frame import FunctionFrame
from tilewright.frontend.python.lower.language_values import DeferredError, describe
from tilewright.ir import Block, Value
from tilewright.ir.types import Type
from tilewright.language import tensor, type_of
from tilewright.support import errors
from tilewright.support.data_class import dataclass


class RetryLowering(Exception):
    """The types of the carried variables have changed: lower the body again."""


@dataclass(slots=True)
class FixpointState:
    """The types inferred for the carried variables of a loop, across attempts.

    types: types tried for a leaf's initial literal, by variable and leaf; the last one is in use.
    dropped: variables that do not keep one type; reading them is an error. may_be_left: a `break`
    has been found in a loop over a range, which a `cf.for` cannot have.
    Each retry adds a type from a finite chain of promotions or drops a variable, so retries end.
    """

    types: dict[tuple[str, int], list[Type]] = field(
        default_factory=dict[tuple[str, int], list[Type]]
    )
    dropped: dict[str, DeferredError] = field(default_factory=dict[str, DeferredError])
    may_be_left: bool = False


@dataclass(slots=True)
class CarriedVariable:
    """One carried variable: its value before the loop, its leaves, and the type of each.

    A type of None marks a leaf that remains a compile-time value.
    """

    name: str
    initial: object
    parts: list[object]
    types: list[Type | None]

    def with_values(self, values: Iterator[Value]) -> object:
        """The variable with other run-time values."""
        parts = [
            part if type_ is None else tensor(next(values))
            for part, type_ in zip(self.parts, self.types, strict=True)
        ]
        return rebuild(self.initial, iter(parts))


@dataclass(slots=True)
class CarriedVariables:
    """The carried variables of one loop. construct: the name of the loop in messages."""

    variables: list[CarriedVariable]
    node: ast.For | ast.While
    construct: str
    state: FixpointState

    @property
    def names(self) -> list[str]:
        """The name of the variable of each carried value."""
        return [v.name for v in self.variables for t in v.types if t is not None]

    def initial_values(self, frame: FunctionFrame) -> tuple[Value, ...]:
        """The initial values of the loop; literals become constants here."""
        ctx = frame.at(self.node)
        return tuple(
            as_value(ctx, part, type_)
            for variable in self.variables
            for part, type_ in zip(variable.parts, variable.types, strict=True)
            if type_ is not None
        )

    def add_arguments(self, block: Block) -> None:
        """One argument of `block` for each carried value, named after its variable."""
        for variable in self.variables:
            for type_ in variable.types:
                if type_ is not None:
                    block.add_arg(type_, variable.name)

    def bind(self, frame: FunctionFrame, values: Sequence[Value]) -> None:
        """Bind the names to the carried values."""
        frame.scope.update(self.state.dropped)
        remaining = iter(values)
        for variable in self.variables:
            frame.scope[variable.name] = variable.with_values(remaining)

    def next_values(self, frame: FunctionFrame) -> list[Value]:
        """The values at the end of the body, for the next iteration. Errors: RetryLowering."""
        values: list[Value] = []
        for variable in self.variables:
            values += self._next(frame, variable)
        return values

    def _next(self, frame: FunctionFrame, variable: CarriedVariable) -> Iterator[Value]:
        final = frame.scope.get(variable.name, MISSING)
        if final is MISSING or isinstance(final, DeferredError):
            error = errors.PossiblyUndefined(variable.name, self.construct)
            self._drop(
                variable, final if isinstance(final, DeferredError) else DeferredError(error)
            )
        if not same_structure(variable.initial, final):
            self._inconsistent(frame, variable, final)
        pairs = zip(variable.parts, variable.types, leaves(final), strict=True)
        for index, (part, type_, leaf) in enumerate(pairs):
            if type_ is None:
                if not same_leaf(part, leaf):
                    self._inconsistent(frame, variable, final)
            elif leaf_type(leaf) is type_ or can_hold(type_, leaf):
                yield as_value(frame.ctx, leaf, type_)
            else:
                self._widen(frame, variable, index, leaf, final)

    def _widen(
        self,
        frame: FunctionFrame,
        variable: CarriedVariable,
        index: int,
        leaf: object,
        final: object,
    ) -> NoReturn:
        """Retry with the type that the body gives a variable whose initial value is a literal."""
        initial = variable.parts[index]
        if not isinstance(initial, tensor):
            self._refuse_widening(frame, variable.name, leaf_type(initial), leaf_type(leaf))
        type_ = None if isinstance(initial, tensor) else common_type(initial, leaf)
        tried = self.state.types.setdefault((variable.name, index), [])
        # A type tried twice would be tried forever.
        if type_ is None or type_ in tried:
            self._inconsistent(frame, variable, final)
        tried.append(type_)
        raise RetryLowering

    def _refuse_widening(
        self, frame: FunctionFrame, name: str, before: Type | None, after: Type | None
    ) -> None:
        """Under `strict_triton`, refuse a variable whose type changes. Errors: BeyondTriton."""
        if before is not None and after is not None:
            header = self.node.iter if isinstance(self.node, ast.For) else self.node.test
            construct = changed_in_loop(name, type_of(before), type_of(after))
            frame.at(header).refuse_extension(construct)

    def _inconsistent(
        self, frame: FunctionFrame, variable: CarriedVariable, final: object
    ) -> NoReturn:
        before, after = describe(variable.initial), describe(final)
        error = errors.InconsistentType(variable.name, self.construct, before, after)
        # Dropped, not raised: the variable may be a temporary that nothing reads after the loop.
        self._drop(variable, DeferredError(error.with_loc(frame.loc(self.node))))

    def _drop(self, variable: CarriedVariable, why: DeferredError) -> NoReturn:
        self.state.dropped[variable.name] = why
        raise RetryLowering


def changed_in_loop(name: str, before: object, after: object) -> str:
    """Description, for messages, of a variable whose type an iteration changes."""
    return f"'{name}', which the loop changes from {before} to {after},"


def carried_variables(
    frame: FunctionFrame, node: ast.For | ast.While, names: Sequence[str], state: FixpointState
) -> CarriedVariables:
    """The variables among `names` that exist before the loop, with the types reached so far."""
    variables: list[CarriedVariable] = []
    for name in names:
        value = frame.scope.get(name, MISSING)
        # A name first assigned inside has no initial value; reading it later is refused.
        if value is MISSING or isinstance(value, DeferredError) or name in state.dropped:
            continue
        parts = list(leaves(value))
        # The last type tried is in use; without any, the leaf's own.
        types = [state.types.get((name, i), [leaf_type(part)])[-1] for i, part in enumerate(parts)]
        variables.append(CarriedVariable(name, value, parts, types))
    return CarriedVariables(variables, node, f"loop of line {frame.loc(node).line}", state)
