"""Tiles of indices that may wrap around, and run-time tests whether they do.

    %at = (splat %start) + tile.range 0, 256      start, start + 1, ...
    %r = arith.rem %at, (splat %n)                usually start % n, start % n + 1, ...

A remainder is a vector of arbitrary numbers, and loads through it are gathers. But where the first
one is so far below n that the tile does not wrap, the same number is subtracted everywhere:

    x % n = x - shift,    shift = x[0] - x[0] % n

which leaves addresses affine. So a nest that is cheaper with it is emitted twice, and the program
selects (`fused_loop_nest.py`). Nothing is assumed of x and n: a negative tile counts as wrapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.evaluate_lanes import Environment, Evaluator
from tilewright.backends.cpu.lower.fusion import is_inlinable
from tilewright.backends.cpu.lower.lane_values import Lanes, literal, uniform
from tilewright.backends.cpu.lower.loop_clipping import IndexedValue
from tilewright.ir import Op, Trait, Value
from tilewright.ir.types import DType, dtype_of, element_of, shape_of
from tilewright.llvm import Code, ModuleText, Val, integer_literal, lower_elementwise
from tilewright.ops import RemOp

_MAX_TILES = 4
"""Remainders of a nest that are tried; each takes a few evaluations of the nest."""


class RunRemainder(NamedTuple):
    """A remainder of a dividend that is consecutive along one dim, for `last` + 1 elements.

    at_first: coordinates whose lanes run along that dim, from the first element on
    """

    op: RemOp
    last: int
    at_first: tuple[Lanes, ...]

    def operands(self, code: Code, env: Environment) -> tuple[Lanes, Lanes]:
        """Dividend and divisor; two lanes show whether the dividend is consecutive."""
        ev = Evaluator(code, env, 2)
        return ev.lanes(self.op.lhs, self.at_first), ev.lanes(self.op.rhs, self.at_first)


def run_remainders(state: CpuLowering, values: Iterable[Value]) -> list[RunRemainder]:
    """The tiles that may wrap, among the values that some values depend on."""
    found: list[RunRemainder] = []
    for op in _remainders(state, values)[:_MAX_TILES]:
        shape = shape_of(op.result.type)
        dims = [d for d, extent in enumerate(shape) if extent > 1]
        along = Lanes(integer_literal(0), 1, 1 << 20)
        at_first = tuple(along if d in dims else literal(0) for d in range(len(shape)))
        if len(dims) == 1:
            tile = RunRemainder(op, shape[dims[0]] - 1, at_first)
            # Into a module that is discarded: only the facts about the lanes matter.
            x, n = tile.operands(Code(ModuleText()), state.env)
            wraps = n.base.constant is not None and n.base.constant <= tile.last
            if x.stride == 1 and n.is_uniform and not wraps and tile.last <= _greatest(op):
                found.append(tile)
    return found


def _remainders(state: CpuLowering, values: Iterable[Value]) -> list[RemOp]:
    """The integer tiles that are remainders."""
    found: list[RemOp] = []
    for op in evaluated_ops(state, values):
        element = element_of(op.results[0].type)
        if isinstance(op, RemOp) and isinstance(element, DType) and element.is_integer:
            found.append(op)
    return found


def evaluated_ops(state: CpuLowering, values: Iterable[Value]) -> Iterator[Op]:
    """The ops that a nest evaluates for some values, each once, users before operands."""
    reached: set[Value] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        op = value.op
        if value in reached or value in state.env.buffers or op is None or not is_inlinable(op):
            continue
        reached.add(value)
        stack += op.operands
        yield op


def _greatest(op: RemOp) -> int:
    return dtype_of(op.result.type).max_int


def axes_of_remainders(value: Value) -> dict[Value, set[int]]:
    """The dimensions of a tile along which the remainders run that it is computed from."""
    reached, found = set[IndexedValue](), dict[Value, set[int]]()
    stack = [IndexedValue(value, tuple(range(len(shape_of(value.type)))))]
    while stack:
        item = stack.pop()
        op, inner = item.value.op, item.inner()
        if item in reached or op is None or not is_inlinable(op) or not item.axes:
            continue
        reached.add(item)
        if isinstance(op, RemOp):
            found.setdefault(item.value, set()).update(a for a in item.axes if a is not None)
        if inner is not None:
            stack.append(inner)
        elif Trait.ELEMENTWISE in op.traits:
            stack += [IndexedValue(v, item.axes) for v in op.operands]
    return found


def shift_without_wrap(
    state: CpuLowering, tile: RunRemainder, last: Val | None = None
) -> tuple[Val, Lanes]:
    """Emit whether a tile does not wrap, as an i1, and the number to subtract from its dividend
    then.

    last: the last element that matters (i32), if it is not the tile's
    """
    code, op = state.code, tile.op
    x, n = (lanes.base for lanes in tile.operands(code, state.env))
    first, kind = lower_elementwise(code, op, [x, n]), x.type
    less = "icmp slt" if dtype_of(op.result.type).is_signed else "icmp ult"
    end = _literal(tile.last, kind)
    if last is not None:
        end = last if kind == "i32" else code.convert("sext", last, kind)
    # x >= 0, and x + end is a number of the type: unsigned, a negative number is a large one
    within = code.compare("icmp ule", x, _literal(_greatest(op) - tile.last, kind))
    # n > end and first + end < n, of which neither side can wrap if n > end
    long = code.compare(less, end, n)
    below = code.compare(less, first, code.binary("sub", n, end))
    inside = code.binary("and", within, code.binary("and", long, below))
    return inside, uniform(code.binary("sub", x, first))


def _literal(value: int, kind: str) -> Val:
    """A number as LLVM writes it: all its integers are signed."""
    half = 1 << (int(kind[1:]) - 1)
    return integer_literal((value + half) % (2 * half) - half, kind)
