"""A forward dataflow solver over structured control flow.

An analysis computes a fact for each value from the facts of the operands, and the meet of facts at
loops and branches. Loops are iterated until the facts of loop-carried values are stable; a lattice
of finite height guarantees termination, and a bound on rounds detects an error in the lattice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tilewright.ir import Block, Function, Op, Value
from tilewright.ops import ForOp, IfOp, WhileOp
from tilewright.support.fresh_stack import nested

F = TypeVar("F")
_MAX_ROUNDS = 64


class Forward(Generic[F]):
    """The facts of all values of a function.

    transfer(op, operand facts) -> facts of its results, for ops without regions; meet combines two
    facts; unknown(value) is the fact that always holds; index(op, facts of the bounds) that of a
    loop index.
    """

    def __init__(
        self,
        transfer: Callable[[Op, Sequence[F]], Sequence[F]],
        meet: Callable[[F, F], F],
        unknown: Callable[[Value], F],
        index: Callable[[ForOp, Sequence[F]], F],
    ) -> None:
        self._transfer, self._meet, self._unknown, self._index = transfer, meet, unknown, index
        self.facts: dict[Value, F] = {}
        self._operands: dict[Op, list[F]] = {}

    def run(self, function: Function, arguments: Sequence[F]) -> dict[Value, F]:
        """Solve; the result has a fact for every value."""
        self.facts.update(zip(function.args, arguments, strict=True))
        self._block(function.body)
        return self.facts

    @nested
    def _block(self, block: Block) -> None:
        for op in block:
            if not op.regions:
                self._visit(op)
            elif isinstance(op, ForOp):
                self._for(op)
            elif isinstance(op, WhileOp):
                self._while(op)
            elif isinstance(op, IfOp):
                self._if(op)
            else:
                self._opaque(op)

    def _visit(self, op: Op) -> None:
        """Visit an op without regions, if the fact of an operand has changed."""
        operands = self._facts_of(op.operands)
        if self._operands.get(op) != operands:
            self._operands[op] = operands
            results = self._transfer(op, operands)
            self.facts.update(zip(op.results, results, strict=True))

    def _opaque(self, op: Op) -> None:
        for region in op.regions:
            self.facts.update((arg, self._unknown(arg)) for arg in region.args)
            self._block(region)
        self.facts.update((result, self._unknown(result)) for result in op.results)

    def _facts_of(self, values: Sequence[Value]) -> list[F]:
        return [self.facts[v] for v in values]

    def _fixpoint(
        self, args: Sequence[Value], start: list[F], step: Callable[[], list[F]]
    ) -> list[F]:
        """Repeat `step` until the facts of `args` are a fixpoint."""
        current = start
        # Each round lowers a fact, and chains of facts are short: more rounds indicate a `meet`
        # that is not monotonic.
        for _ in range(_MAX_ROUNDS):
            self.facts.update(zip(args, current, strict=True))
            joined = [self._meet(a, b) for a, b in zip(current, step(), strict=True)]
            if joined == current:
                return current
            current = joined
        raise AssertionError("dataflow facts do not reach a fixpoint")

    def _for(self, op: ForOp) -> None:
        # Outside the iteration: the bounds of a loop do not depend on loop-carried values.
        self.facts[op.index] = self._index(op, self._facts_of([op.lower, op.upper, op.step]))

        def step() -> list[F]:
            self._block(op.body)
            return self._facts_of(op.body.terminator.operands)

        final = self._fixpoint(op.carried, self._facts_of(op.inits), step)
        self.facts.update(zip(op.results, final, strict=True))

    def _while(self, op: WhileOp) -> None:
        def step() -> list[F]:
            self._block(op.before)
            passed = self._facts_of(op.before.terminator.operands[1:])
            self.facts.update(zip(op.body.args, passed, strict=True))
            self._block(op.body)
            return self._facts_of(op.body.terminator.operands)

        self._fixpoint(op.before.args, self._facts_of(op.inits), step)
        passed = self._facts_of(op.before.terminator.operands[1:])
        self.facts.update(zip(op.results, passed, strict=True))

    def _if(self, op: IfOp) -> None:
        branches: list[list[F]] = []
        for region in op.regions:
            self._block(region)
            branches.append(self._facts_of(region.terminator.operands))
        met = (self._meet(a, b) for a, b in zip(*branches, strict=True))
        self.facts.update(zip(op.results, met, strict=True))
