"""Loops with a computable trip count, and their bounds for `cf.for`.

`for (i = a; i < b; i += c)` is counted, also with <=, >, >= and -=, if the body does not assign i,
has no jump out of the loop, and does not change b or c. A counter that would overflow ends the
loop, which C leaves undefined for signed types and defines as a wrap for unsigned ones. A step that
is known only at run time must be positive, or the launch is stopped at the loop.
"""

from __future__ import annotations

from functools import reduce

from tilewright.frontend import semantics
from tilewright.frontend.c import syntax
from tilewright.frontend.c.lower.function_frame import FunctionFrame, Variable
from tilewright.frontend.c.lower.integer_promotion import common_type, integer_type, promoted
from tilewright.frontend.c.syntax_queries import assigned, is_pure, jump_kinds, reads
from tilewright.frontend.dtype_promotion import fits
from tilewright.frontend.semantics import Bound
from tilewright.ir.types import DType, i32
from tilewright.language import constexpr, tensor, type_of, unwrap
from tilewright.ops import AssertOp
from tilewright.support.data_class import dataclass

STUCK = "the step of this loop is not positive, so it would never end"
"""The message of the run-time assertion on the step."""

_SYMBOLS = {
    (False, False): "lt",
    (False, True): "le",
    (True, False): "gt",
    (True, True): "ge",
}
"""The comparison of a loop, by whether it counts down and includes its limit."""

# `n > i` is `i < n`: the test may name the counter on either side.
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class CountedLoop:
    """outside: whether the variable is declared outside the loop; down: whether it counts down;
    inclusive: whether the limit is included."""

    variable: Variable
    outside: bool
    limit: syntax.Expression
    step: syntax.Expression | None
    down: bool
    inclusive: bool


def match_counted_loop(frame: FunctionFrame, node: syntax.Loop) -> CountedLoop | None:
    """The counting of a loop; None if its trip count is not computable."""
    test, name = node.test, _counter(node)
    if name is None or not isinstance(test, syntax.Binary) or test.operator not in _FLIPPED:
        return None
    symbol, limit = test.operator, test.right
    if not (isinstance(test.left, syntax.Name) and test.left.name == name):
        if not (isinstance(test.right, syntax.Name) and test.right.name == name):
            return None
        symbol, limit = _FLIPPED[symbol], test.left
    down = symbol[0] == ">"
    step = _step(node.step, name)
    if step is None or step[0] != ("-" if down else "+"):
        return None
    amount = step[1]
    changed = {name, *assigned(node.body)}
    parts = [part for part in (limit, amount) if part is not None]
    # Limit and step are evaluated once before the loop, which needs them to stay the same.
    if any(not is_pure(part) or reads(part) & changed for part in parts):
        return None
    variable = frame.find(name)
    if variable is None or not _is_countable(variable, down):
        return None
    outside = not isinstance(node.start, syntax.Declaration)
    return CountedLoop(variable, outside, limit, amount, down, symbol.endswith("="))


def _counter(node: syntax.Loop) -> str | None:
    """The variable that the loop initializes, if its body does not assign it."""
    start = node.start
    name: str | None = None
    if isinstance(start, syntax.Declaration) and len(start.variables) == 1:
        name = start.variables[0].name if start.variables[0].value is not None else None
    elif isinstance(start, syntax.Evaluate) and isinstance(start.value, syntax.Assign):
        target = start.value.target
        name = target.name if isinstance(target, syntax.Name) else None
    # `continue` is fine: the next iteration follows. Other jumps need a test in each iteration.
    leaves = jump_kinds(node.body) & {"break", "return"}
    return None if name is None or leaves or name in assigned(node.body) else name


def _is_countable(variable: Variable, down: bool) -> bool:
    """Unsigned numbers wrap at 0, so a loop that counts down in them cannot be counted."""
    type_ = variable.type
    # Narrower counters wrap after 127 or 65535 steps, which the i32 index would not.
    if not isinstance(type_, DType) or not type_.is_integer or type_.is_bool or type_.bits < 32:
        return False
    return type_.is_signed or not down


def _step(node: syntax.Expression | None, name: str) -> tuple[str, syntax.Expression | None] | None:
    """The sign and amount of `i++`, `i -= c`, `i = i + c`; an amount of None is 1."""
    if isinstance(node, syntax.Step) and _is_name(node.target, name):
        return node.operator, None
    if not isinstance(node, syntax.Assign) or not _is_name(node.target, name):
        return None
    if node.operator in ("+", "-"):
        return _signed_step(node.operator, node.value)
    value = node.value
    if not node.operator and isinstance(value, syntax.Binary) and value.operator in ("+", "-"):
        return _signed_step(value.operator, value.right) if _is_name(value.left, name) else None
    return None


def _signed_step(symbol: str, amount: syntax.Expression) -> tuple[str, syntax.Expression] | None:
    """The sign and amount of a step; None for a literal that is not positive."""
    if isinstance(amount, syntax.Number) and amount.value <= 0:
        return None
    return symbol, amount


def _is_name(node: syntax.Expression, name: str) -> bool:
    return isinstance(node, syntax.Name) and node.name == name


def emit_loop_bounds(
    frame: FunctionFrame, node: syntax.Loop, loop: CountedLoop
) -> semantics.LoopBounds | None:
    """Emit the bounds in the common type of all; None if that cannot count."""
    parts = (
        frame.values[loop.variable],
        frame.expression(loop.limit),
        constexpr(1) if loop.step is None else frame.expression(loop.step),
    )
    start, limit, step = map(_integer_bound, parts)
    if start is None or limit is None or step is None or (isinstance(step, int) and step <= 0):
        return None
    # A literal is promoted like a variable: common_type works on promoted types.
    kinds = [promoted(kind) for part in parts if (kind := integer_type(part)) is not None]
    index = reduce(common_type, kinds, i32)
    # C converts the limit to the common type before it compares: -1 is 4294967295u.
    limit = index.wrap(limit) if isinstance(limit, int) else limit
    # Mixed signs compare unsigned in C, where a negative number is a large one.
    if {kind.is_signed for kind in kinds if kind is not i32} == {True, False} or (
        loop.down and not index.is_signed
    ):
        return None
    ctx = frame.at(node)
    if isinstance(step, tensor):
        _check_step(ctx, loop, (start, limit, step), index)
    # `i <= 9` is `i < 10` where 10 fits; the largest number needs the inclusive form.
    past = limit + (-1 if loop.down else 1) if isinstance(limit, int) else None
    # A run-time limit might be the largest number, to which 1 cannot be added.
    if loop.inclusive and (past is None or not fits(past, index)):
        return semantics.inclusive_bounds(ctx, index, start, limit, step, loop.down)
    end = past if loop.inclusive and past is not None else limit
    return (semantics.descending_bounds if loop.down else semantics.ascending_bounds)(
        ctx, index, start, end, step
    )


def _check_step(
    ctx: semantics.Context, loop: CountedLoop, parts: tuple[Bound, Bound, tensor], index: DType
) -> None:
    """Stop the launch where a loop with a run-time step would not terminate."""
    start, limit, step = parts
    if semantics.is_positive_step(step.handle):
        return
    dtype = type_of(index)
    first, last = (semantics.cast_to(ctx, part, dtype) for part in (start, limit))
    goes = _SYMBOLS[loop.down, loop.inclusive]
    runs = semantics.compare(ctx, goes, first, last)
    progresses = semantics.compare(ctx, "gt", step, 0)
    # Only if the loop runs at all: an empty loop may have any step.
    holds = semantics.logical(ctx, "or", progresses, semantics.unary(ctx, "not", runs))
    ctx.emitter.emit(AssertOp(holds.handle, STUCK))


def _integer_bound(value: object) -> Bound | None:
    """An integer scalar or number; None for anything else."""
    if isinstance(value, tensor):
        type_ = value.handle.type
        return value if isinstance(type_, DType) and not type_.is_float else None
    number = unwrap(value)
    return number if isinstance(number, int) and integer_type(value) is not None else None
