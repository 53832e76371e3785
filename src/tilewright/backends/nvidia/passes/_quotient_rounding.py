"""Inference of the fp32 quotients that must be correctly rounded.

    %q = arith.div %x, %y : tile<64xf32>              %q = arith.div %x, %y {rounding = "exact"}
    %n = arith.math %q {function = "floor"}     ->    %n = arith.math %q {function = "floor"}
    %r = arith.div %x, %z : tile<64xf32>              %r = arith.div %x, %z {rounding = "full"}
    mem.store %p, %r                                  mem.store %p, %r

`div.full` is within 2 ulp, as in Triton, but 6 / 3 need not be 2. Stored, that is an error of an
ulp; before floor, ceil, trunc, a remainder, a truncating conversion or a comparison it changes the
result. So each quotient is followed through the ops that preserve its last bits, reductions and
branches included. A conversion to a narrower float and `round_even` end the search: they round to
nearest, and an error of 2 ulp of fp32 changes the result for ties only.

A quotient by the divisor of a row is exact as well, unless it ends in such conversions only: that
takes one more multiplication for each element, fewer instructions than `div.full`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.ir import Function, Op, Trait, Value
from tilewright.ir.types import DType, element_of
from tilewright.ops import (
    BroadcastOp,
    CastOp,
    CatOp,
    CompareOp,
    ConditionOp,
    DivOp,
    ExpandDimsOp,
    ForOp,
    HintOp,
    ItemOp,
    JoinOp,
    MathOp,
    RemOp,
    ReshapeOp,
    ShrOp,
    SplatOp,
    SplitOp,
    TransposeOp,
    WhileOp,
    YieldOp,
)

_STEPS = ("floor", "ceil", "trunc")
_SHAPE_OPS = (
    BroadcastOp, CatOp, ExpandDimsOp, HintOp, ItemOp, JoinOp, ReshapeOp, SplatOp, SplitOp,
    TransposeOp,
)  # fmt: skip


def infer_quotient_rounding(function: Function) -> bool:
    """Choose between "exact" and "full" for quotients whose rounding is "by_use"; whether there
    were any. Functions must not be expanded yet: `floor` is followed as one op."""
    undecided = [
        op
        for op in function.walk()
        if isinstance(op, DivOp) and op.rounding == "by_use" and _float_bits(op.result)
    ]
    for op in undecided:
        op.attrs["rounding"] = "exact" if _is_exact(op) else "full"
    return bool(undecided)


def _is_exact(op: DivOp) -> bool:
    seen, pending = {op.result}, [op.result]
    is_kept = False
    while pending:
        source = pending.pop()
        for use in source.uses:
            if _is_step(use):
                return True
            is_kept = is_kept or _keeps(use)
            following = [v for v in _following(use, source) if v not in seen]
            seen.update(following)
            pending += following
    return is_kept and _is_shared(op.rhs)


def _is_shared(value: Value) -> bool:
    """Whether elements of a tile share a divisor: that of a row, or a scalar."""
    op = value.op
    while isinstance(op, ReshapeOp | TransposeOp | ExpandDimsOp):
        op = op.operands[0].op
    return isinstance(op, BroadcastOp | SplatOp)


def _keeps(op: Op) -> bool:
    """Whether an op uses a number as it is, without a result that depends on its last bits."""
    return Trait.ELEMENTWISE not in op.traits and not isinstance(op, _SHAPE_OPS)


def _is_step(op: Op) -> bool:
    """Whether the result of an op is discontinuous in its operand."""
    if isinstance(op, CastOp):
        return bool(_float_bits(op.x)) and (not _float_bits(op.result) or op.rounding == "rtz")
    if isinstance(op, MathOp):
        return op.function in _STEPS
    # The upper bits of a float are the truncated float.
    return isinstance(op, CompareOp | RemOp | ShrOp) or _compares(op)


def _compares(op: Op) -> bool:
    """Whether a reduction, a scan or a map compares elements."""
    if isinstance(op, ForOp | WhileOp):
        return False
    return any(isinstance(inner, CompareOp) for region in op.regions for inner in region)


def _following(op: Op, value: Value) -> Sequence[Value]:
    """The values that have the last bits of an operand."""
    if isinstance(op, YieldOp | ConditionOp):
        assert op.parent is not None
        return list(_carried(op.parent.owner, op.values, value))
    if isinstance(op, ForOp | WhileOp):
        return list(_carried(op, op.inits, value))
    rounds = isinstance(op, MathOp) and op.function == "round_even"
    narrows = isinstance(op, CastOp) and _float_bits(op.result) < _float_bits(op.x)
    return () if rounds or narrows else op.results


def _carried(owner: Op | Function | None, passed: Sequence[Value], value: Value) -> Iterator[Value]:
    """The results and region arguments that a value becomes, by its positions in a list."""
    if not isinstance(owner, Op):
        return
    lists = [owner.results, *(region.args for region in owner.regions)]
    for place in (i - len(passed) for i, v in enumerate(passed) if v is value):
        yield from (values[place] for values in lists if len(values) >= len(passed))


def _float_bits(value: Value) -> int:
    """Bits of the elements of a value; 0 for elements that are no floats."""
    element = element_of(value.type)
    return element.bits if isinstance(element, DType) and element.is_float else 0
