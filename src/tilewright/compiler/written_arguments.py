"""Analysis of the pointer arguments that a kernel may store through, or load from.

Launches reject read-only arrays by it. A stored-to pointer is traced back to the arguments that it
may come from: through pointer arithmetic, shapes, selections, loops and branches. An address that
was an integer on its way may come from any argument that is converted to an integer anywhere.
Pointers that are loaded from memory come from no argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilewright.ir import Effect, Function, Op, Value
from tilewright.ir.types import PointerType, element_of
from tilewright.ops import CastOp, ForOp, IfOp, LoadOp, WhileOp

Roots = frozenset[int]
_NONE: Roots = frozenset()


def stored_arguments(function: Function) -> tuple[int, ...]:
    """Positions of the arguments through which the function may write, in order."""
    return tuple(sorted({*accessed_arguments(function, Effect.WRITE)}))


def accessed_arguments(function: Function, effect: Effect) -> Iterator[int]:
    """Positions of the arguments through which each op with an effect may access memory."""
    roots = _Roots(function)
    for op in function.walk():
        if effect in op.effects:
            yield from sorted({*_NONE.union(*map(roots.of, filter(_is_pointer, op.operands)))})


class _Roots:
    """For each pointer value the arguments that it may be derived from, to a fixed point."""

    def __init__(self, function: Function) -> None:
        self._of: dict[Value, Roots] = {
            arg: frozenset((i,)) for i, arg in enumerate(function.args) if _is_pointer(arg)
        }
        # one set for all integers: the uses of a number are not traced
        self._as_integers: Roots = _NONE
        self._flows = [flow for op in function.walk() for flow in _flows(op)]
        self._casts = [op for op in function.walk() if isinstance(op, CastOp)]
        # Sets of arguments only grow, so this ends; loops need more than one round.
        while self._step():
            pass

    def of(self, value: Value) -> Roots:
        return self._of.get(value, _NONE)

    def _step(self) -> bool:
        """Propagate once over the function; returns whether anything changed."""
        changed = False
        for op in self._casts:
            if _is_pointer(op.result):
                changed |= self._add(op.result, self._as_integers)
            elif _is_pointer(op.x) and not self.of(op.x) <= self._as_integers:
                self._as_integers |= self.of(op.x)
                changed = True
        for source, target in self._flows:
            changed |= self._add(target, self.of(source))
        return changed

    def _add(self, value: Value, roots: Roots) -> bool:
        before = self.of(value)
        if roots <= before:
            return False
        self._of[value] = before | roots
        return True


def _is_pointer(value: Value) -> bool:
    return isinstance(element_of(value.type), PointerType)


def _flows(op: Op) -> Iterator[tuple[Value, Value]]:
    """Pairs (from, to) of pointer values such that `to` may be derived from `from`."""
    # a loaded pointer comes from memory, not from the pointer that it is loaded through
    if isinstance(op, LoadOp):
        return
    pairs: Iterable[tuple[Value, Value]]
    if isinstance(op, ForOp):
        ends = op.body.terminator.operands
        pairs = _matched((op.inits, ends), (op.carried, op.results))
    elif isinstance(op, WhileOp):
        go_on = op.before.terminator.operands[1:]
        into = (op.inits, op.body.terminator.operands)
        pairs = [
            *_matched(into, (op.before.args,)),
            *_matched((go_on,), (op.body.args, op.results)),
        ]
    elif isinstance(op, IfOp):
        ends = (op.then.terminator.operands, op.orelse.terminator.operands)
        pairs = _matched(ends, (op.results,))
    else:
        pairs = _each_to_each(op)
    yield from ((source, target) for source, target in pairs if _is_pointer(target))


def _matched(
    sources: Iterable[Sequence[Value]], targets: Iterable[Sequence[Value]]
) -> Iterator[tuple[Value, Value]]:
    """The values of each source with those of each target, position by position."""
    targets = list(targets)
    for source in sources:
        for target in targets:
            yield from zip(source, target, strict=True)


def _each_to_each(op: Op) -> Iterator[tuple[Value, Value]]:
    """Pairs of an op whose results, and arguments of regions, may derive from any operand."""
    inner = [arg for block in op.regions for arg in block.args]
    ends = [value for block in op.regions for value in block.terminator.operands]
    for source in op.operands:
        if _is_pointer(source):
            yield from ((source, target) for target in (*op.results, *inner))
    for source in ends:
        if _is_pointer(source):
            yield from ((source, target) for target in op.results)
