"""Loops whose iterations can be counted before they run, and the bounds of `cf.for` for them.

`for (i = a; i < b; i += c)` counts, and with <=, >, >= and -= too, if the body leaves i alone and
does not leave the loop, and if nothing in it changes b or c. C says nothing of signed numbers that
overflow, so `i <= b` is `i < b + 1`; a step that is known only at run time is taken to go forward.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from tilewright.frontend import semantics
from tilewright.frontend.c import syntax
from tilewright.frontend.c.jumps import assigned, is_plain, jumps, reads
from tilewright.frontend.c.lower.activation import Activation, Variable
from tilewright.frontend.promotion import RESULTS, literal_dtype
from tilewright.ir import Value
from tilewright.ir.types import DType, i32
from tilewright.language import constexpr, tensor, type_of, unwrap

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Counted:
    """outside: whether the variable lives on after the loop; down: whether it counts down;
    inclusive: whether the limit is reached."""

    variable: Variable
    outside: bool
    limit: syntax.Expression
    step: syntax.Expression | None
    down: bool
    inclusive: bool


def counted(act: Activation, node: syntax.Loop) -> Counted | None:
    """How a loop counts; None if it does not."""
    test, name = node.test, _counter(node)
    if name is None or not isinstance(test, syntax.Binary) or test.operator not in _FLIPPED:
        return None
    symbol, limit = test.operator, test.right
    if not (isinstance(test.left, syntax.Name) and test.left.name == name):
        if not (isinstance(test.right, syntax.Name) and test.right.name == name):
            return None
        symbol, limit = _FLIPPED[symbol], test.left
    down = symbol[0] == ">"
    found = _step(node.step, name)
    if found is None or found[0] != ("-" if down else "+"):
        return None
    changed = {name, *assigned(node.body)}
    parts = [part for part in (limit, found[1]) if part is not None]
    if any(not is_plain(part) or reads(part) & changed for part in parts):
        return None
    variable = act.find(name)
    if variable is None or not _counts(variable, down):
        return None
    outside = not isinstance(node.start, syntax.Declaration)
    return Counted(variable, outside, limit, found[1], down, symbol.endswith("="))


def _counter(node: syntax.Loop) -> str | None:
    """The variable that the loop starts, if its body does not touch it."""
    start = node.start
    name: str | None = None
    if isinstance(start, syntax.Declaration) and len(start.variables) == 1:
        name = start.variables[0].name if start.variables[0].value is not None else None
    elif isinstance(start, syntax.Evaluate) and isinstance(start.value, syntax.Assign):
        target = start.value.target
        name = target.name if isinstance(target, syntax.Name) else None
    leaves = jumps(node.body) & {"break", "return"}
    return None if name is None or leaves or name in assigned(node.body) else name


def _counts(variable: Variable, down: bool) -> bool:
    """Unsigned numbers wrap at 0, so a loop that counts down in them cannot be counted."""
    type_ = variable.type
    if not isinstance(type_, DType) or not type_.is_integer or type_.is_bool or type_.bits < 32:
        return False
    return type_.is_signed or not down


def _step(node: syntax.Expression | None, name: str) -> tuple[str, syntax.Expression | None] | None:
    """The sign and amount of `i++`, `i -= c`, `i = i + c`; an amount of None is 1."""
    if isinstance(node, syntax.Step) and _is(node.target, name):
        return node.operator, None
    if not isinstance(node, syntax.Assign) or not _is(node.target, name):
        return None
    if node.operator in ("+", "-"):
        return _signed(node.operator, node.value)
    value = node.value
    if not node.operator and isinstance(value, syntax.Binary) and value.operator in ("+", "-"):
        return _signed(value.operator, value.right) if _is(value.left, name) else None
    return None


def _signed(symbol: str, amount: syntax.Expression) -> tuple[str, syntax.Expression] | None:
    """A literal that is not positive turns the loop around: it is not counted."""
    if isinstance(amount, syntax.Number) and amount.value <= 0:
        return None
    return symbol, amount


def _is(node: syntax.Expression, name: str) -> bool:
    return isinstance(node, syntax.Name) and node.name == name


@dataclass(frozen=True, slots=True)
class Bounds:
    """Operands of the loop. start: where one that counts down begins, else None."""

    lower: Value
    upper: Value
    step: Value
    start: Value | None

    def index(self, act: Activation, node: syntax.Loop, loop: Counted, counter: Value) -> tensor:
        """The value of the variable, in its own type."""
        value = tensor(counter)
        ctx = act.at(node)
        if self.start is not None:
            value = semantics.binary(ctx, "sub", tensor(self.start), value)
        assert isinstance(loop.variable.type, DType)
        return semantics.cast_to(ctx, value, type_of(loop.variable.type))


def bounds_of(act: Activation, node: syntax.Loop, loop: Counted) -> Bounds | None:
    """Emit the bounds in the common type of all; None if that cannot count."""
    start = act.values[loop.variable]
    limit = act.expression(loop.limit)
    step: object = constexpr(1) if loop.step is None else act.expression(loop.step)
    kinds = [_dtype(part) for part in (start, limit, step)]
    known = [kind for kind in kinds if kind is not None]
    amount = None if isinstance(step, tensor) else unwrap(step)
    if len(known) < 3 or (isinstance(amount, int) and amount <= 0):
        return None
    index = reduce(lambda a, b: RESULTS["add"][a, b], known, i32)
    if {kind.is_signed for kind in known if kind is not i32} == {True, False} or (
        loop.down and not index.is_signed
    ):
        return None
    ctx = act.at(node)
    dtype = type_of(index)
    first, last, size = (semantics.cast_to(ctx, part, dtype) for part in (start, limit, step))
    upper = semantics.binary(ctx, "sub", first, last) if loop.down else last
    if loop.inclusive:
        upper = semantics.binary(ctx, "add", upper, 1)
    if not loop.down:
        return Bounds(first.handle, upper.handle, size.handle, None)
    zero = semantics.cast_to(ctx, 0, dtype)
    return Bounds(zero.handle, upper.handle, size.handle, first.handle)


def _dtype(value: object) -> DType | None:
    """The type of an integer scalar; None for anything else."""
    if isinstance(value, tensor):
        type_ = value.handle.type
        return type_ if isinstance(type_, DType) and not type_.is_float else None
    number = unwrap(value)
    return literal_dtype(number) if isinstance(number, int) else None
