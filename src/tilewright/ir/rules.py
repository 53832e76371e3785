"""Rewrite rules, sets of them, and the driver that applies them until nothing matches.

    @rule(AddOp)
    def add_zero(op: AddOp, ctx: RuleContext) -> Value | None:
        '''x + 0 -> x'''
        return op.lhs if is_constant(op.rhs, 0) else None

A rule takes an op and returns the replacement of its results: a value, or a tuple of values (empty
for an op without results, which is then erased). None means that the rule does not match; it has
changed nothing then. New ops are emitted through `ctx`, before the op. The docstring states the
identity. transforms/rules/README.md has further requirements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tilewright.ir.arith_builder import ArithmeticBuilder
from tilewright.ir.builder import Builder, Rewriter
from tilewright.ir.core import Block, Function, Op, Value
from tilewright.ir.op_definition import Effect, Trait
from tilewright.support import Recorder, RuleFired, current_recorder
from tilewright.support.data_class import dataclass
from tilewright.support.errors import InternalCompilerError

RuleResult = Value | tuple[Value, ...] | None
OpT = TypeVar("OpT", bound=Op)
RewriteFunction = Callable[[Any, "RuleContext"], RuleResult]


class RuleContext(ArithmeticBuilder):
    """The context of a rule: emits ops before the one that it matches."""

    __slots__ = ("builder",)

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def emit(self, op: OpT) -> OpT:
        """Insert an op before the matched one."""
        return self.builder.emit(op)

    def value(self, op: Op) -> Value:
        """Insert an op before the matched one; returns its only result."""
        return self.builder.value(op)

    @staticmethod
    def replace_uses(old: Value, new: Value) -> None:
        """Replace a value inside the regions of the matched op."""
        Rewriter.replace_uses(old, new)

    def inline(self, block: Block, args: Iterable[Value] = ()) -> tuple[Value, ...]:
        """Copy a block before the matched op; returns the operands of its terminator."""
        return tuple(Rewriter.inline_block(block, args, self.builder))


@dataclass(frozen=True, slots=True)
class Rule:
    """One identity, for one or several op classes."""

    name: str
    matches: tuple[type[Op], ...]
    function: RewriteFunction
    identity: str
    """The first line of the docstring."""
    file: str
    """`file:line` of the function."""

    def __call__(self, op: Op, ctx: RuleContext) -> RuleResult:
        return self.function(op, ctx)


def rule(*op_classes: type[Op]) -> Callable[[RewriteFunction], Rule]:
    """Declare a function as a rule for ops of these classes."""

    def decorate(function: RewriteFunction) -> Rule:
        code = function.__code__
        identity = (function.__doc__ or "").strip().partition("\n")[0]
        assert identity, f"the rule {function.__name__} does not state its identity"
        where = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
        return Rule(function.__name__, op_classes, function, identity, where)

    return decorate


class RuleSet:
    """Rules indexed by op class; `+` joins sets. Those of a class are tried in order."""

    __slots__ = ("by_class", "rules")

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules = tuple(rules)
        self.by_class: dict[type[Op], tuple[Rule, ...]] = {}
        for item in self.rules:
            for cls in item.matches:
                self.by_class[cls] = (*self.by_class.get(cls, ()), item)

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet((*self.rules, *other.rules))

    def __len__(self) -> int:
        return len(self.rules)


def rewrite(function: Function, rules: RuleSet) -> bool:
    """Apply rules, and remove pure ops without uses, until nothing matches. Return whether any did.

    Raises InternalCompilerError, naming the busiest rules, if they do not come to an end.
    """
    return _Driver(function, rules).run()


_READ = frozenset((Effect.READ,))
_FIRINGS_PER_OP = 64
_FIRINGS_AT_LEAST = 4096


class _Driver:
    """The worklist: an op is visited again when its operands, users or regions change."""

    __slots__ = ("budget", "context", "fired", "queue", "queued", "recorder", "rules")

    def __init__(self, function: Function, rules: RuleSet) -> None:
        ops = list(function.walk())
        self.rules = rules.by_class
        self.context = RuleContext(Builder(function.body))
        self.recorder: Recorder | None = current_recorder()
        # A stack: popped from the end, so ops are visited in the order of the text.
        self.queue: list[Op] = ops[::-1]
        self.queued: set[Op] = set(ops)
        self.fired: Counter[str] = Counter()
        # A bound, since rules that undo each other would not terminate; small functions may need
        # many rewrites per op.
        self.budget = max(_FIRINGS_AT_LEAST, _FIRINGS_PER_OP * len(ops))

    def run(self) -> bool:
        changed = False
        queue, queued, rules = self.queue, self.queued, self.rules
        while queue:
            op = queue.pop()
            queued.discard(op)
            # erased since it was queued
            if op.parent is None:
                continue
            results = op.results
            if (not results or not results[0].uses) and _is_dead(op):
                self._erase(op)
                changed = True
            else:
                candidates = rules.get(type(op))
                if candidates is not None and self._try(candidates, op, op.parent):
                    changed = True
        return changed

    def _try(self, candidates: tuple[Rule, ...], op: Op, block: Block) -> bool:
        """Apply the first rule that matches."""
        context, before = self.context, op.prev
        builder = context.builder
        # one builder for all ops, since most ops match no rule
        builder.block, builder.before, builder.loc = block, op, op.loc
        for candidate in candidates:
            result = candidate.function(op, context)
            if result is not None:
                self._count(candidate, op)
                values = result if isinstance(result, tuple) else (result,)
                self._replace(op, block, values, before)
                return True
        assert op.prev is before, f"a rule for {op.opcode} made ops and did not match"
        return False

    def _replace(self, op: Op, block: Block, values: tuple[Value, ...], before: Op | None) -> None:
        self._push_new(before.next if before is not None else block.first, op)
        self._push_users(op.results)
        # Read before they are dropped: their definitions may be dead now.
        operands = _nested_operands(op)
        Rewriter.replace(op, values)
        self._push_around(block)
        self._push_definitions((*operands, *values))

    def _erase(self, op: Op) -> None:
        operands = _nested_operands(op)
        block = op.parent
        Rewriter.erase(op)
        self._push_around(block)
        self._push_definitions(operands)

    def _count(self, candidate: Rule, op: Op) -> None:
        self.fired[candidate.name] += 1
        if self.recorder is not None:
            self.recorder.record(RuleFired(candidate.name, candidate.file, op.opcode))
        self.budget -= 1
        if self.budget < 0:
            busiest = ", ".join(f"{name} ({n}x)" for name, n in self.fired.most_common(4))
            raise InternalCompilerError(f"rewriting does not come to an end: {busiest}")

    def _push(self, op: Op) -> None:
        if op not in self.queued:
            self.queued.add(op)
            self.queue.append(op)

    def _push_around(self, block: Block | None) -> None:
        """Queue the owner of a block, which may have lost its last effect."""
        if block is not None and isinstance(block.owner, Op):
            self._push(block.owner)

    def _push_new(self, first: Op | None, op: Op) -> None:
        """Queue the ops from `first` up to `op`, regions included."""
        while first is not op:
            assert first is not None
            for inner in first.walk():
                self._push(inner)
            first = first.next

    def _push_users(self, results: Sequence[Value]) -> None:
        for value in results:
            for user in value.uses:
                self._push(user)

    def _push_definitions(self, values: Iterable[Value]) -> None:
        """Queue the defining ops of values, which may be dead now or match another rule."""
        for value in values:
            if isinstance(value.owner, Op):
                self._push(value.owner)


def _is_dead(op: Op) -> bool:
    return not any([value.uses for value in op.results]) and removable(op)


def _nested_operands(op: Op) -> list[Value]:
    """The operands of an op and of all ops in its regions."""
    if not op.regions:
        return list(op.operands)
    return [value for inner in op.walk() for value in inner.operands]


def removable(op: Op) -> bool:
    """Whether an op may be removed once its results are unused.

    It may if the op and all ops in its regions have no effects but reads that are not `volatile`,
    and terminate.
    """
    return _only_reads(op) and (
        not op.regions
        # the last op of a block is its terminator, which `_only_reads` rejects
        or all(_only_reads(inner) for inner in op.walk() if inner is op or inner.next is not None)
    )


def _only_reads(op: Op) -> bool:
    """The requirement of `removable` on each op, terminators of its regions excepted."""
    traits, effects = op.traits, op.effects
    if effects - _READ or Trait.ENDLESS in traits or op.attrs.get("volatile"):
        return False
    return Trait.TERMINATOR not in traits
