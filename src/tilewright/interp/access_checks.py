"""The checks of `check=`: races, and marks on elements that no access may use.

    UNDEFINED   a lane that a mask left out of a load without `other`, and results computed from it
    WRAPPED     an int32 sum, difference or product that overflowed, if offsets depend on it

Marks accompany the elements of a value through arithmetic, shapes, selects, folds and sorts. They
are reported at a store, an address, a mask, or a condition of control flow. Intended wrapping, as
in hashes, is not reported: bit operations, remainders and comparisons drop the mark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from tilewright.interp import access_errors
from tilewright.interp.concrete_value import ConcreteValue
from tilewright.interp.numpy_dtypes import Array, as_array
from tilewright.interp.numpy_rules import evaluate
from tilewright.interp.race_watch import RaceWatch
from tilewright.ir import REFERENCE_RULES, Op, Trait
from tilewright.ir.types import element_of, i32
from tilewright.ops import (
    AddOp,
    AndOp,
    AsmOp,
    BroadcastOp,
    CastOp,
    CatOp,
    DotOp,
    ExpandDimsOp,
    GatherOp,
    HintOp,
    HistogramOp,
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
)

UNDEFINED, WRAPPED = 1, 2

_EXACT: dict[type[Op], Callable[[Array, Array], Array]] = {
    AddOp: np.add, SubOp: np.subtract, MulOp: np.multiply,
}  # fmt: skip
_KEEPS_WRAPPED = (AddOp, SubOp, MulOp, NegOp, CastOp, SelectOp, OffsetOp, HintOp)
_SHAPES = (
    BroadcastOp, CatOp, ExpandDimsOp, HintOp, ItemOp, JoinOp, ReshapeOp, SplatOp, SplitOp,
    TransposeOp,
)  # fmt: skip


class AccessChecks:
    """The checks of one launch. kinds: of `support.CHECK_KINDS`"""

    def __init__(self, kinds: Collection[str]) -> None:
        self.races = RaceWatch() if "race" in kinds else None
        self._overflow = "overflow" in kinds
        self._uninit = "uninit" in kinds

    def follow(
        self, op: Op, inputs: Sequence[ConcreteValue], results: Sequence[ConcreteValue]
    ) -> None:
        """Mark the results of an op."""
        marks = [value.marks for value in inputs]
        if isinstance(op, LoadOp):
            results[0].marks = self._loaded(inputs, marks)
        elif any(mark is not None for mark in marks):
            for result, mark in zip(results, _moved(op, inputs, marks, results), strict=True):
                result.marks = mark if mark is not None and mark.any() else None
        if self._overflow and type(op) in _EXACT and element_of(results[0].type) is i32:
            self._mark_wrapped(op, inputs, results[0])

    def _mark_wrapped(self, op: Op, inputs: Sequence[ConcreteValue], result: ConcreteValue) -> None:
        left, right = (value.data.astype(np.int64) for value in inputs)
        wrapped = _EXACT[type(op)](left, right) != result.data
        if wrapped.any():
            marks = np.zeros(result.data.shape, np.uint8) if result.marks is None else result.marks
            result.marks = as_array(marks | (wrapped * np.uint8(WRAPPED)))

    def _loaded(
        self, inputs: Sequence[ConcreteValue], marks: Sequence[Array | None]
    ) -> Array | None:
        if not self._uninit or len(inputs) < 2:
            return None
        shape = inputs[0].data.shape
        mask = np.broadcast_to(inputs[1].data, shape)
        given = marks[2] if len(inputs) > 2 else np.uint8(UNDEFINED)
        if given is None or mask.all():
            return None
        return as_array(np.where(mask, np.uint8(0), given).astype(np.uint8))

    def check_condition(self, what: str, *values: ConcreteValue) -> None:
        """Check scalars before control flow depends on them. Errors: UndefinedElement."""
        for value in values:
            if value.marks is not None and (value.marks & UNDEFINED).any():
                raise access_errors.undefined_condition(what)

    def check_operands(
        self,
        verb: str,
        pointer: ConcreteValue,
        mask: Sequence[ConcreteValue],
        *values: ConcreteValue,
    ) -> None:
        """Check the addresses, masks and stored values of an access for marks.

        Errors: UndefinedElement, OffsetOverflow.
        """
        active = np.broadcast_to(mask[0].data if mask else True, pointer.data.shape)
        if mask and _index_of(mask[0].marks, UNDEFINED, active) is not None:
            raise access_errors.undefined_mask(verb)
        index = _index_of(pointer.marks, UNDEFINED, active)
        if index is not None:
            raise access_errors.undefined_address(verb, pointer.root, index)
        index = _index_of(pointer.marks, WRAPPED, active)
        if index is not None:
            raise access_errors.wrapped_offset(verb, pointer.root, index)
        for value in values:
            index = _index_of(value.marks, UNDEFINED, active)
            if index is not None:
                raise access_errors.undefined_value(pointer.root, index)


def _index_of(marks: Array | None, mark: int, active: Array) -> tuple[int, ...] | None:
    """Index of the first lane that is active and marked, or None."""
    if marks is None:
        return None
    wrong = np.argwhere(np.broadcast_to(marks & mark != 0, active.shape) & active)
    return tuple(map(int, wrong[0])) if len(wrong) else None


def _moved(
    op: Op,
    inputs: Sequence[ConcreteValue],
    marks: Sequence[Array | None],
    results: Sequence[ConcreteValue],
) -> list[Array | None]:
    """The marks of the results, from those of the operands."""
    full = [
        np.zeros(value.data.shape, np.uint8) if mark is None else mark
        for value, mark in zip(inputs, marks, strict=True)
    ]
    if isinstance(op, _SHAPES):
        return list(evaluate(op, REFERENCE_RULES[type(op)], *full))
    if isinstance(op, GatherOp):
        # The op itself on marks for elements; positions are unchanged.
        moved = evaluate(op, REFERENCE_RULES[GatherOp], full[0], inputs[1].data)[0]
        return [as_array(moved | (full[1] & UNDEFINED))]
    if isinstance(op, SortOp | HistogramOp | MapOp | AsmOp):
        return _spread(op, inputs, full, results)
    if isinstance(op, ReduceOp):
        folded = np.bitwise_or.reduce([f & UNDEFINED for f in full])
        return [as_array(np.bitwise_or.reduce(folded, axis=op.axis))] * len(results)
    if isinstance(op, ScanOp):
        return [_scanned(op, np.bitwise_or.reduce([f & UNDEFINED for f in full]))] * len(results)
    if isinstance(op, DotOp):
        rows = np.bitwise_or.reduce(full[0] & UNDEFINED, axis=-1)[..., :, None]
        columns = np.bitwise_or.reduce(full[1] & UNDEFINED, axis=-2)[..., None, :]
        return [as_array(rows | columns | (full[2] & UNDEFINED))]
    if Trait.ELEMENTWISE not in op.traits:
        return [None] * len(results)
    return [_elementwise(op, inputs, full)]


def _spread(
    op: SortOp | HistogramOp | MapOp | AsmOp,
    inputs: Sequence[ConcreteValue],
    full: Sequence[Array],
    results: Sequence[ConcreteValue],
) -> list[Array | None]:
    """The marks of results whose every element may come from any element of a line or a tile."""
    marks = as_array(full[0] & UNDEFINED)
    if isinstance(op, SortOp):
        marks = np.bitwise_or.reduce(marks, axis=op.axis, keepdims=True)
    elif isinstance(op, HistogramOp):
        counted = inputs[1].data if len(inputs) > 1 else True
        marks = np.bitwise_or.reduce(marks * counted, axis=None)
        marks = marks | np.bitwise_or.reduce(full[-1] & UNDEFINED, axis=None) * (len(inputs) > 1)
    else:
        marks = np.bitwise_or.reduce([x & UNDEFINED for x in full])
        groups = marks.reshape(*marks.shape[:-1], -1, op.pack) if marks.shape else marks
        marks = np.bitwise_or.reduce(groups, axis=-1, keepdims=True) if marks.shape else marks
        return [
            as_array(np.broadcast_to(marks, groups.shape).reshape(r.data.shape)) for r in results
        ]
    return [as_array(np.broadcast_to(marks, r.data.shape)) for r in results]


def _scanned(op: ScanOp, marks: Array) -> Array:
    marks = np.flip(marks, op.axis) if op.reverse else marks
    found = np.maximum.accumulate(marks, axis=op.axis)
    return as_array(np.flip(found, op.axis) if op.reverse else found)


def _elementwise(op: Op, inputs: Sequence[ConcreteValue], full: Sequence[Array]) -> Array:
    if isinstance(op, SelectOp):
        chosen = np.where(inputs[0].data, full[1], full[2])
        return as_array(chosen | (full[0] & UNDEFINED))
    marks = as_array(np.bitwise_or.reduce(np.broadcast_arrays(*full)))
    if isinstance(op, AndOp | OrOp) and inputs[0].data.dtype == np.bool_:
        # False and anything is False, True or anything is True: the other operand does not matter
        decides = isinstance(op, OrOp)
        for value, own in zip(inputs, full, strict=True):
            decided = (value.data == decides) & (own & UNDEFINED == 0)
            marks = as_array(np.where(decided, np.uint8(0), marks))
    return marks if isinstance(op, _KEEPS_WRAPPED) else as_array(marks & UNDEFINED)
