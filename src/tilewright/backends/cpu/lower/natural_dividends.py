"""Run-time tests that tile indices are not negative, where ranges do not prove it.

    %at = (splat %start) + tile.range 0, 256      start, start + 1, ...
    %q = arith.div %at, 16                        one quotient for 16 lanes, unless negative

Division truncates, so 16 numbers from a multiple of 16 on have one quotient by 16 if they are not
negative: lanes stay uniform, and the address needs one load. A start that is only known at run time
may be negative, or so large that the tile wraps. So a nest that is cheaper without negative
dividends is emitted twice, and the program selects by the first element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.evaluate_lanes import Evaluator
from tilewright.backends.cpu.lower.lane_values import Lanes, literal
from tilewright.backends.cpu.lower.wrapped_tiles import evaluated_ops
from tilewright.ir import Value
from tilewright.ir.types import DType, dtype_of, element_of, shape_of
from tilewright.llvm import Code, ModuleText, Val, integer_literal
from tilewright.ops import ConstantOp, DivOp, RemOp, SplatOp

_MAX_DIVIDENDS = 4
"""Dividends of a nest that are tried; each takes a few evaluations of the nest."""


class CountingDividend(NamedTuple):
    """A signed dividend that is consecutive along each dim. span: from its first element to its
    last"""

    value: Value
    span: int

    def is_natural(self, state: CpuLowering) -> Val:
        """Emit whether no element is negative, as an i1."""
        zeros = tuple(literal(0) for _ in shape_of(self.value.type))
        first = Evaluator(state.code, state.env, 1).lanes(self.value, zeros).base
        # As an unsigned number, a negative one is above all others.
        most = dtype_of(self.value.type).max_int - self.span
        return state.code.compare("icmp ule", first, integer_literal(most, first.type))


def counting_dividends(state: CpuLowering, values: Iterable[Value]) -> list[CountingDividend]:
    """The dividends of constants without a proved sign, among the values that some values depend
    on."""
    found: list[CountingDividend] = []
    for value in _dividends(state, values):
        span = _span(state, value)
        if span is not None and span <= dtype_of(value.type).max_int:
            found.append(CountingDividend(value, span))
        if len(found) == _MAX_DIVIDENDS:
            break
    return found


def _dividends(state: CpuLowering, values: Iterable[Value]) -> Iterator[Value]:
    """Signed integer tiles that constants divide, and that may be negative."""
    divided: set[Value] = set()
    for op in evaluated_ops(state, values):
        if isinstance(op, DivOp | RemOp) and op.lhs not in divided and _is_index(op):
            divided.add(op.lhs)
            if not state.env.is_natural(op.lhs):
                yield op.lhs


def _is_index(op: DivOp | RemOp) -> bool:
    element = element_of(op.lhs.type)
    divisor = op.rhs.op.x.op if isinstance(op.rhs.op, SplatOp) else op.rhs.op
    signed = isinstance(element, DType) and element.is_integer and element.is_signed
    return signed and bool(shape_of(op.lhs.type)) and isinstance(divisor, ConstantOp)


def _span(state: CpuLowering, value: Value) -> int | None:
    """From the first element of a tile to its last; None where it is not consecutive along each
    dim.

    Emitted into a module that is discarded: only the facts about the lanes matter.
    """
    shape, span = shape_of(value.type), 0
    for dim, extent in enumerate(shape):
        if extent == 1:
            continue
        at = tuple(
            Lanes(integer_literal(0), 1, 1 << 20)
            if d == dim
            else literal(0) if n == 1 else Lanes(Val(f"%p{d}", "i32"))
            for d, n in enumerate(shape)
        )  # fmt: skip
        stride = Evaluator(Code(ModuleText()), state.env, 2).lanes(value, at).stride
        if stride is None or stride < 0:
            return None
        span += stride * (extent - 1)
    return span
