"""Joins of values at control flow: the two sides of an `if`, the iterations of a loop.

A value is split into leaves: tensors, compile-time numbers, and other compile-time objects. Tuples
and aggregates are structure around leaves. Two leaves join in one SSA value if their types are
equal, or if one is a literal that the other's type can hold; two equal compile-time leaves remain
compile-time values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from tilewright.frontend.dtype_promotion import common_dtype, fits, is_weak, literal_dtype
from tilewright.frontend.python.lower.language_values import is_tuple, static_value, tuple_like
from tilewright.frontend.semantics import Context, constant
from tilewright.ir import Value
from tilewright.ir.types import DType, Type, element_of
from tilewright.language import Constexpr, aggregate_value, base_value, tensor
from tilewright.support.data_class import dataclass


def leaves(value: object) -> Iterator[object]:
    """The leaves of a value in order."""
    if is_tuple(value):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, aggregate_value):
        for part in value.parts():
            yield from leaves(part)
    else:
        yield value


def rebuild(template: object, parts: Iterator[object]) -> object:
    """A value of the template's structure with other leaves."""
    if is_tuple(template):
        return tuple_like(template, [rebuild(item, parts) for item in template])
    if isinstance(template, aggregate_value):
        return template.rebuild([rebuild(part, parts) for part in template.parts()])
    return next(parts)


def same_structure(left: object, right: object) -> bool:
    """Whether two values differ at most in their leaves."""
    if is_tuple(left) and is_tuple(right):
        return len(left) == len(right) and all(map(same_structure, left, right))
    if isinstance(left, aggregate_value) and isinstance(right, aggregate_value):
        same_parts = map(same_structure, left.parts(), right.parts())
        return left.same_kind(right) and all(same_parts)
    aggregate = (tuple, aggregate_value)
    return not isinstance(left, aggregate) and not isinstance(right, aggregate)


def same_leaf(left: object, right: object) -> bool:
    """Whether two leaves are one and the same value, at compile time or at run time."""
    if isinstance(left, tensor) or isinstance(right, tensor):
        return (
            isinstance(left, tensor) and isinstance(right, tensor) and left.handle is right.handle
        )
    if isinstance(left, base_value) or isinstance(right, base_value):
        return left is right
    a, b = static_value(left), static_value(right)
    # repr distinguishes 0.0 from -0.0, the type True from 1; both pairs compare equal.
    return a is b or (type(a) is type(b) and repr(a) == repr(b) and a == b)


def leaf_type(leaf: object) -> Type | None:
    """The type of a leaf that can be a run-time value; None for other compile-time objects."""
    if isinstance(leaf, tensor):
        return leaf.handle.type
    number = leaf.value if isinstance(leaf, Constexpr) else None
    return literal_dtype(number) if isinstance(number, int | float) else None


def common_type(left: object, right: object) -> Type | None:
    """The type in which two leaves can be one value, or None."""
    a, b = leaf_type(left), leaf_type(right)
    if a is None or b is None or a is b:
        return a if a is b else None
    left_weak, right_weak = not isinstance(left, tensor), not isinstance(right, tensor)
    # Two literals: both may grow, as 0 and 0.5 join in a float.
    if left_weak and right_weak and isinstance(a, DType) and isinstance(b, DType):
        return common_dtype(a, b)
    # A literal joined with a tensor takes its type; the tensor is never converted.
    if right_weak and can_hold(a, right):
        return a
    return b if left_weak and can_hold(b, left) else None


def can_hold(type_: Type, literal: object) -> bool:
    """Whether a type can take a compile-time number, in each element, without changing its kind."""
    element = element_of(type_)
    if isinstance(literal, tensor) or not isinstance(element, DType) or leaf_type(literal) is None:
        return False
    number = cast("int | float", static_value(literal))
    # Weak and fitting: 1 joins a float tensor, 0.5 no int tensor, 300 no int8.
    return is_weak(number, element) and fits(number, element)


def joinable(left: object, right: object) -> bool:
    """Whether two leaves can be one value."""
    left, right = (Constexpr(x) if isinstance(x, int | float) else x for x in (left, right))
    return common_type(left, right) is not None


def as_joined(ctx: Context, number: float, others: Iterable[object]) -> Value:
    """A number in the common type of it and other leaves."""
    leaf: object = Constexpr(number)
    type_ = leaf_type(leaf)
    for other in others:
        other = Constexpr(other) if isinstance(other, int | float) else other
        joined = common_type(leaf, other)
        if joined is not None and isinstance(other, tensor):
            return as_value(ctx, leaf, joined)
        if isinstance(type_, DType) and isinstance(joined, DType):
            type_ = common_dtype(type_, joined)
    assert type_ is not None
    return as_value(ctx, leaf, type_)


def as_value(ctx: Context, leaf: object, type_: Type) -> Value:
    """A leaf as an SSA value of a type that holds it."""
    if isinstance(leaf, tensor):
        assert leaf.handle.type is type_
        return leaf.handle
    return constant(ctx, cast("int | float", static_value(leaf)), type_)


@dataclass(frozen=True, slots=True)
class ResultSlot:
    """Entry of a plan: the number of the result that a leaf becomes."""

    index: int


JoinPlan = list[object]
"""For each leaf of a value either the leaf that all paths share, or a ResultSlot."""


class Join:
    """Pairs of leaves that become results of one `cf.if`."""

    def __init__(self) -> None:
        self.types: list[Type] = []
        self.left: list[object] = []
        self.right: list[object] = []

    def add(self, left: object, right: object) -> JoinPlan | None:
        """Plan to join two values; None if they cannot be one."""
        if not same_structure(left, right):
            return None
        plan: JoinPlan = []
        pairs: list[tuple[Type, object, object]] = []
        for a, b in zip(leaves(left), leaves(right), strict=True):
            if same_leaf(a, b):
                plan.append(a)
                continue
            type_ = common_type(a, b)
            if type_ is None:
                return None
            # len(pairs) as well: the pairs are added only once all leaves of the value fit.
            plan.append(ResultSlot(len(self.types) + len(pairs)))
            pairs.append((type_, a, b))
        for type_, a, b in pairs:
            self.types.append(type_)
            self.left.append(a)
            self.right.append(b)
        return plan


def joined_value(template: object, plan: JoinPlan, results: Sequence[Value], name: str) -> object:
    """The joined value, once the results exist; they take the variable's name."""
    parts: list[object] = []
    for part in plan:
        if isinstance(part, ResultSlot):
            result = results[part.index]
            result.name = result.name or name
            parts.append(tensor(result))
        else:
            parts.append(part)
    return rebuild(template, iter(parts))
