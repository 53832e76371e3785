"""Functions that rewritten code calls in place of Python's constructs; see `rewrite_source`.

Values are those of a running kernel: tensors, and compile-time values as plain Python objects.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any, cast

from tilewright import language
from tilewright.frontend.python import (
    as_joined,
    as_tuple,
    cannot_unpack,
    changed_in_loop,
    compare_values,
    describe,
    is_static,
    is_tuple,
    joinable,
    logical_connective,
    logical_not,
    short_circuits,
    tuple_like,
    type_of_value,
    warn_of_precedence,
)
from tilewright.frontend.semantics import (
    Context,
    as_condition,
    getattr_,
    plain_number,
    typed_number,
    unary,
)
from tilewright.interp import ConcreteValue
from tilewright.language import (
    Constexpr,
    member_names,
    tensor,
    unused_result,
    unwrap,
    unwrap_deep,
)
from tilewright.support import SourceLoc, errors

Other = tuple[str, Any]
"""("name", of a variable) or ("number", itself)."""

_MEMBERS = frozenset(member_names())
_MISSING = object()


class PythonConstructs:
    """Python's constructs in a kernel.

    context: of the launch that owns the values; indices: the tensors that a run-time loop counts;
    files: the file of each rewritten code
    """

    def __init__(
        self,
        context: Context,
        indices: Callable[[language.range], Iterator[tensor]],
        files: Mapping[CodeType, str],
    ) -> None:
        self._context = context
        self._indices = indices
        self._files = files
        # a stack of (frame, left operand): expressions nest, and functions call functions
        self._left: list[tuple[int, object]] = []
        self._tests: dict[tuple[int, int], bool] = {}
        self._carried: dict[tuple[int, int], dict[str, object]] = {}

    # --- logic ------------------------------------------------------------------------------------

    def logical_not(self, x: object) -> object:
        """`not x`."""
        return unwrap(logical_not(self._context, x))

    def invert(self, x: object) -> object:
        """`~x`; for a bool `not x`, as for an int1."""
        return unwrap(unary(self._context, "invert", x))

    def compare(self, symbol: str, x: object, y: object) -> object:
        """`x < y` and the like; lists become tuples, since kernels have no lists."""
        return unwrap(compare_values(self._context, symbol, as_tuple(x), as_tuple(y)))

    def needs_right_operand(self, word: str, left: object) -> bool:
        """Whether the right operand of `and` or `or` is evaluated; stores the left operand."""
        self._left.append((id(_caller()), left))
        return not short_circuits(word, left)

    def connective(self, word: str, right: object) -> object:
        """`left and right`, with the left operand that the calling function stored last."""
        frame = id(_caller())
        kept, left = self._left.pop()
        while kept != frame:  # of an expression that has raised
            kept, left = self._left.pop()
        if short_circuits(word, left):
            return left
        return unwrap(logical_connective(self._context, word, left, right))

    def warn_of_chain(
        self, result: object, message: str, line: int, column: int, end: int
    ) -> object:
        """The result of a chain of comparisons that probably has another meaning than intended."""
        if not is_static(result):
            code = _caller().f_code
            file = self._files.get(code, code.co_filename)
            loc = SourceLoc(file, line, column, end, code.co_name)
            warn_of_precedence(message, loc)
        return result

    def assertion_holds(self, condition: object) -> bool:
        """The condition of an `assert`: of a tile, in each element."""
        if not isinstance(condition, tensor):
            return bool(condition)
        value = as_condition(self._context, condition)
        # a run-time value of a combine region has no elements, and is not checked
        return not isinstance(value, ConcreteValue) or bool(value.data.all())

    def unused_call(self, function: Any, shown: str) -> Any:
        """The function of a call that is used as a statement. Errors: UnusedResult."""
        reason = unused_result(function)
        if reason is not None:
            raise errors.UnusedResult(shown, reason)
        return function

    # --- values -----------------------------------------------------------------------------------

    def attribute(self, x: Any, name: str, *default: object) -> Any:
        """`x.name`; numbers have the members of tensors."""
        number: object = unwrap(x)
        # for the compiler these are constexprs, which have a `value`
        if name == "value" and isinstance(number, bool | int | float | str | language.dtype):
            return number
        if name == "type" and (is_tuple(x) or isinstance(number, bool | int | float | str)):
            return type_of_value(x)
        # members of tensors, such as `to`; a number's own attributes are Python's
        if name in _MEMBERS and isinstance(number, bool | int | float):
            return getattr_(self._context, number, name)
        return getattr(x, name, *default)

    def has_attribute(self, x: object, name: str) -> bool:
        """Whether `x.name` exists."""
        return self.attribute(x, name, _MISSING) is not _MISSING

    def variable_value(self, x: Any) -> Any:
        """The value of a variable after `name = x`, and of a call after `return x`."""
        if isinstance(x, Constexpr | int | float):
            return typed_number(unwrap(x))
        if not isinstance(x, tuple | list):
            return x
        items = cast("Sequence[Any]", x)
        values = [self.variable_value(item) for item in items]
        if all(new is old for new, old in zip(values, items, strict=True)):
            return items
        return values if isinstance(items, list) else tuple_like(items, values)

    def outside(self, name: str) -> object:
        """The global constexpr of a name that the function assigns later."""
        return unwrap(_caller().f_globals[name])

    def constexpr_value(self, x: Any) -> Any:
        """The value of a variable after `name: tl.constexpr = x`."""
        return plain_number(unwrap(x))

    def check_unpacking(self, items: object, count: int) -> object:
        """The values that are assigned to `count` variables at once."""
        values = as_tuple(items)
        if is_tuple(values) and len(values) != count:
            raise cannot_unpack(values, len(values), count)
        return items

    def formatted(self, x: object) -> object:
        """The value that an f-string formats: that inside a constexpr."""
        return unwrap_deep(x) if is_static(x) else x

    # --- what loops and branches assign -----------------------------------------------------------

    def loop(self, items: Iterable[object], names: Sequence[str]) -> Iterable[object]:
        """The items of a `for` statement; in a run-time loop, literals become tensors."""
        # Compile-time items are iterated unchanged: the compiler unrolls such loops.
        if not isinstance(items, language.range):
            return items
        frame = _caller()
        types = self._make_tensors(frame, names)
        indices = self._indices(items)
        return self._checked(indices, frame, types) if types else indices

    def _checked(
        self, indices: Iterable[object], frame: FrameType, types: Mapping[str, object]
    ) -> Iterator[object]:
        for index in indices:
            yield index
            self._refuse_changes(frame, types)

    def enter_while(self, number: int, names: Sequence[str]) -> None:
        """Convert the variables that a `while` statement assigns to tensors, before it starts."""
        frame = _caller()
        self._carried[id(frame), number] = self._make_tensors(frame, names)

    def while_condition(self, number: int, condition: object) -> object:
        """The condition of a `while` statement, which is evaluated before each iteration."""
        frame = _caller()
        types = self._carried[id(frame), number]
        if types:
            self._refuse_changes(frame, types)
        return condition

    def _refuse_changes(self, frame: FrameType, types: Mapping[str, object]) -> None:
        """Check that the variables have the types of before the loop. Errors: BeyondTriton."""
        for name, before in types.items():
            after = getattr(frame.f_locals.get(name), "type", before)
            if after != before:
                self._context.refuse_extension(changed_in_loop(name, before, after))

    def branch_condition(self, number: int, condition: object) -> object:
        """The condition of a branch, before its `join_branch` or `conditional_value`."""
        # By frame and number: the same `if` may be active in several calls at once.
        self._tests[id(_caller()), number] = not is_static(condition)
        return condition

    def join_branch(self, number: int, names: Sequence[tuple[str, Sequence[Other]]]) -> None:
        """Convert the variables at the end of a side of an `if` with a run-time condition to
        tensors.
        """
        frame = _caller()
        if self._tests[id(frame), number]:
            for name, others in names:
                self._make_tensor(frame, name, [value for _, value in others])

    def conditional_value(self, number: int, x: object, others: Sequence[Other]) -> object:
        """The value of `x if c else y`. others: the sides, if they are simple"""
        frame = _caller()
        if not self._tests[id(frame), number]:
            return x
        names: dict[str, Any] = frame.f_locals
        values = [names.get(what) if kind == "name" else what for kind, what in others]
        # If both sides are simple, their types can be compared before one is evaluated.
        for other in values if len(values) == 2 else ():
            if isinstance(other, tensor | int | float) and not joinable(x, other):
                what = "the conditional expression"
                raise errors.InconsistentBranches(what, *map(describe, values))
        return self._as_tensors(x, values)

    def _make_tensors(self, frame: FrameType, names: Sequence[str]) -> dict[str, object]:
        """Convert numbers to tensors; returns their types where a change of them is rejected."""
        types: dict[str, object] = {}
        for name in names:
            if self._make_tensor(frame, name, ()) and self._context.options.strict_triton:
                types[name] = getattr(frame.f_locals[name], "type", None)
        return types

    def _make_tensor(self, frame: FrameType, name: str, others: Sequence[object]) -> bool:
        """Convert a variable to a tensor; returns whether it was a number."""
        value = frame.f_locals.get(name)
        joined = self._as_tensors(value, others)
        if joined is not value:
            _set_local(frame, name, joined)
        return joined is not value

    def _as_tensors(self, value: object, others: Sequence[object] = ()) -> object:
        """The numbers in a value as tensors, as the compiler joins them with other values."""
        if is_tuple(value):
            # Each item alone: the other side of a branch is available for single names only.
            items = [self._as_tensors(item) for item in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else tuple_like(value, items)
        number: object = unwrap(value)
        if not isinstance(number, bool | int | float):
            return value
        return tensor(as_joined(self._context, number, others))


def _caller() -> FrameType:
    """The frame of the kernel function that calls a construct."""
    # 2: this function, the construct, then the kernel's frame.
    return sys._getframe(2)  # pyright: ignore[reportPrivateUsage]


def _set_local(frame: FrameType, name: str, value: object) -> None:
    """Assign a local variable of a running function, as debuggers do."""
    frame.f_locals[name] = value
    if sys.version_info < (3, 13):  # from Python 3.13 on, f_locals writes through
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
