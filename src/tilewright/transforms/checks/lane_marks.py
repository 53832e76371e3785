"""Marks on elements that no access may use: values of i1 computed with those of the kernel.

    %v = mem.load %p, %m             undefined: not %m
    %w = arith.mul %v, %f            undefined where %v or %f is
    %o = arith.mul %n, %k : i32      wrapped where the exact product is none of i32

The rules are those of the interpreter (`interp/access_checks.py`): an undefined element marks
all that is computed from it, a wrapped one as long as the result may be an offset. Most values are
never marked; `markable` finds those that may be, so that the others cost nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from itertools import product

from tilewright.ir import Block, Builder, Function, Op, Trait, Value
from tilewright.ir.types import element_of, i1, i32, i64, shape_of
from tilewright.ops import (
    AddOp,
    AndOp,
    AsmOp,
    BroadcastOp,
    CastOp,
    CatOp,
    DotOp,
    ExpandDimsOp,
    ForOp,
    GatherOp,
    HintOp,
    HistogramOp,
    IfOp,
    ItemOp,
    JoinOp,
    LoadOp,
    MapOp,
    MulOp,
    NegOp,
    OffsetOp,
    OrOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    SelectOp,
    SortOp,
    SplatOp,
    SplitOp,
    SubOp,
    TransposeOp,
    WhileOp,
    YieldOp,
)
from tilewright.transforms.checks.lane_arithmetic import Lanes, emit_like, fold_axis


class Mark(enum.Enum):
    """Reasons why no access may use an element."""

    UNDEFINED = "uninit"
    WRAPPED = "overflow"


Marked = tuple[Mark, Value]
Marks = Sequence[Value | None]
_Flow = tuple[Value | None, Sequence[Value]]
"""From a value to the values that inherit its mark; None: marked by the op itself."""

_MAY_WRAP = (AddOp, SubOp, MulOp)
_KEEPS_WRAPPED = (AddOp, SubOp, MulOp, NegOp, CastOp, SelectOp, OffsetOp)
_SHAPES = (
    BroadcastOp, CatOp, ExpandDimsOp, ItemOp, JoinOp, ReshapeOp, SplatOp, SplitOp, TransposeOp,
)  # fmt: skip
_FOLDS = (ReduceOp, ScanOp, DotOp)
_SPREADS = (SortOp, HistogramOp, MapOp, AsmOp)
"""Ops of which an element of the result may come from any element of a line, a tile or a group."""


def begins(op: Op, mark: Mark) -> bool:
    """Whether an op marks results itself."""
    if mark is Mark.UNDEFINED:
        return isinstance(op, LoadOp) and op.mask is not None and op.other is None
    return isinstance(op, _MAY_WRAP) and element_of(op.type) is i32


def sources(op: Op, mark: Mark) -> Sequence[Value]:
    """The operands whose marks the results inherit."""
    if isinstance(op, _SHAPES) or isinstance(op, HintOp):
        return op.operands
    if isinstance(op, GatherOp):
        return (op.x,) if mark is Mark.WRAPPED else op.operands
    if mark is Mark.WRAPPED:
        kept = op.operands[1:] if isinstance(op, SelectOp) else op.operands
        return kept if isinstance(op, _KEEPS_WRAPPED) else ()
    if isinstance(op, LoadOp):
        return () if op.other is None else (op.other,)
    follows = isinstance(op, (*_FOLDS, *_SPREADS)) or Trait.ELEMENTWISE in op.traits
    return op.operands if follows else ()


def markable(function: Function, marks: Collection[Mark]) -> set[Marked]:
    """The values that may be marked in some run."""
    found: set[Marked] = set()
    before = -1
    while before != len(found):  # repeated until no loop carries a new mark
        before = len(found)
        for op, mark in product(function.walk(), marks):
            flows = (
                flow for flow in _flows(op, mark) if flow[0] is None or (mark, flow[0]) in found
            )
            found.update((mark, target) for _, targets in flows for target in targets)
    return found


def _flows(op: Op, mark: Mark) -> list[_Flow]:
    """Yield the flows of marks."""
    if isinstance(op, ForOp):
        return [*_passed(op.inits, (op.carried, op.results)), *_ended(op.body, op)]
    if isinstance(op, WhileOp):
        after = (op.body.args, op.results)
        ends = [*_passed(op.before.terminator.operands[1:], after), *_ended(op.body, op)]
        return [*_passed(op.inits, (op.before.args,)), *ends]
    if isinstance(op, IfOp):
        return [flow for block in op.regions for flow in _ended(block, op)]
    flows: list[_Flow] = [(source, op.results) for source in sources(op, mark)]
    return [*flows, (None, op.results)] if begins(op, mark) else flows


def _passed(values: Sequence[Value], targets: Sequence[Sequence[Value]]) -> list[_Flow]:
    return [(v, [target[i] for target in targets]) for i, v in enumerate(values)]


def _ended(block: Block, op: Op) -> list[_Flow]:
    """Flows from the values that a region yields."""
    targets: list[Sequence[Value]] = [op.results]
    if isinstance(op, ForOp):
        targets.append(op.carried)
    elif isinstance(op, WhileOp):
        targets = [op.before.args]
    return _passed(block.terminator.operands, targets)


def none(build: Builder, value: Value) -> Value:
    """Marks of a value without any: all false."""
    return Lanes(build, shape_of(value.type)).spread(False)


def follow(build: Builder, op: Op, mark: Mark, marks: Marks) -> list[Value | None]:
    """Emit the marks of an op's results. marks: those of its operands, None for none."""
    if isinstance(op, LoadOp):
        return [_loaded(build, op, marks) if mark is Mark.UNDEFINED else None]
    inherited = _inherited(build, op, mark, marks)
    if not begins(op, mark):
        return inherited
    own = _wrapped(build, op)
    (found,) = inherited
    return [own if found is None else Lanes(build, shape_of(op.type)).bit_or(own, found)]


def _loaded(build: Builder, op: LoadOp, marks: Marks) -> Value | None:
    if op.mask is None or (op.other is not None and marks[2] is None):
        return None
    lanes = Lanes(build, shape_of(op.type))
    return lanes.select(op.mask, False, True if op.other is None else marks[2] or False)


def _wrapped(build: Builder, op: Op) -> Value:
    """Marks where the exact result does not fit i32."""
    lanes = Lanes(build, shape_of(op.type))
    exact = build.value(type(op)(*(lanes.cast(x, i64) for x in op.operands)))
    return lanes.ne(exact, lanes.cast(op.result, i64))


def _inherited(build: Builder, op: Op, mark: Mark, marks: Marks) -> list[Value | None]:
    given = {id(v): m for v, m in zip(op.operands, marks, strict=True) if m is not None}
    found = [given[id(v)] for v in sources(op, mark) if id(v) in given]
    if not found:
        return [None] * len(op.results)
    if isinstance(op, HintOp):
        return [found[0]]
    if isinstance(op, GatherOp):
        return [_gathered(build, op, marks)]
    if isinstance(op, SortOp | HistogramOp | MapOp | AsmOp):
        return _spread(build, op, marks)
    if isinstance(op, _SHAPES):
        whole = [m or none(build, v) for v, m in zip(op.operands, marks, strict=True)]
        return list(emit_like(build, op, whole).results)
    if isinstance(op, DotOp):
        return [_of_dot(build, op, marks)]
    if isinstance(op, ReduceOp | ScanOp):
        return [_folded(build, op, found)] * len(op.results)
    if isinstance(op, SelectOp):
        return [_selected(build, op, mark, marks)]
    return [_elementwise(build, op, found, marks)]


def _gathered(build: Builder, op: GatherOp, marks: Marks) -> Value:
    """Marks of the gathered elements, and of their indices."""
    of_elements, of_indices = marks
    if of_elements is None:
        assert of_indices is not None
        return of_indices
    moved = build.value(GatherOp(of_elements, op.index, op.axis))
    if of_indices is None:
        return moved
    return Lanes(build, shape_of(op.type)).bit_or(moved, of_indices)


def _spread(
    build: Builder, op: SortOp | HistogramOp | MapOp | AsmOp, marks: Marks
) -> list[Value | None]:
    lanes = Lanes(build, shape_of(op.operands[0].type))
    if isinstance(op, HistogramOp):
        counted = None if marks[0] is None else lanes.masked(marks[0], op.mask)
        given = [m for m in (counted, *marks[1:]) if m is not None]
    else:
        given = [m for m in marks if m is not None]
    marked = given[0]
    for more in given[1:]:
        marked = lanes.bit_or(marked, more)
    if isinstance(op, SortOp):
        return [_along_axis(build, marked, op.axis, shape_of(op.type))]
    if isinstance(op, HistogramOp):
        return [Lanes(build, shape_of(op.type)).spread(lanes.fold(marked, OrOp))]
    if op.pack > 1:
        marked = _of_groups(build, marked, op.pack)
    return [marked] * len(op.results)


def _of_groups(build: Builder, marked: Value, pack: int) -> Value:
    """Marks of each group of adjacent elements along the last dimension."""
    shape = shape_of(marked.type)
    groups = (*shape[:-1], shape[-1] // pack, pack)
    split = build.value(ReshapeOp(marked, groups))
    return build.value(ReshapeOp(_along_axis(build, split, len(shape), groups), shape))


def _along_axis(build: Builder, marked: Value, axis: int, shape: tuple[int, ...]) -> Value:
    """Mark a whole line in which one element is marked."""
    folded = fold_axis(build, marked, axis, OrOp)
    if len(shape) == 1:
        return build.splat(folded, shape)
    return build.value(BroadcastOp(build.value(ExpandDimsOp(folded, axis)), shape))


def _elementwise(build: Builder, op: Op, found: Sequence[Value], marks: Marks) -> Value:
    lanes = Lanes(build, shape_of(op.results[0].type))
    marked = found[0]
    for more in found[1:]:
        marked = lanes.bit_or(marked, more)
    if isinstance(op, AndOp | OrOp) and element_of(op.type) is i1:
        # False and anything is False, True or anything is True: the other operand does not matter.
        for value, own in zip(op.operands, marks, strict=True):
            open_ = value if isinstance(op, AndOp) else lanes.select(value, False, True)
            marked = lanes.masked(marked, open_ if own is None else lanes.bit_or(open_, own))
    return marked


def _selected(build: Builder, op: SelectOp, mark: Mark, marks: Marks) -> Value:
    lanes = Lanes(build, shape_of(op.type))
    x, y = (False if m is None else m for m in marks[1:])
    condition = marks[0] if mark is Mark.UNDEFINED else None
    if x is False and y is False:
        assert condition is not None
        return condition
    chosen = build.select(op.condition, lanes.spread(x), lanes.spread(y))
    return chosen if condition is None else lanes.bit_or(chosen, condition)


def _folded(build: Builder, op: ReduceOp | ScanOp, found: Sequence[Value]) -> Value:
    lanes = Lanes(build, shape_of(found[0].type))
    marked = found[0]
    for more in found[1:]:
        marked = lanes.bit_or(marked, more)
    if isinstance(op, ReduceOp):
        return fold_axis(build, marked, op.axis, OrOp)
    block = Block((i1, i1))
    inner = Builder(block, loc=build.loc)
    inner.emit(YieldOp((inner.bit_or(*block.args),)))
    return build.value(ScanOp((marked,), block, op.axis, op.reverse))


def _of_dot(build: Builder, op: DotOp, marks: Marks) -> Value:
    """Marks of a dot: rows and columns with a mark, and those of the accumulator."""
    shape = shape_of(op.type)
    lanes = Lanes(build, shape)
    rank = len(shape)
    marked = marks[2]
    for given, axis in ((marks[0], rank - 1), (marks[1], rank - 2)):
        if given is None:
            continue
        line = build.value(ExpandDimsOp(fold_axis(build, given, axis, OrOp), axis))
        wide = build.value(BroadcastOp(line, shape))
        marked = wide if marked is None else lanes.bit_or(marked, wide)
    assert marked is not None
    return marked
