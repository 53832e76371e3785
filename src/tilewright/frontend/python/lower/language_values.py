"""Language values in the lowering.

A value is a run-time value (`tensor`, `aggregate_value`), a compile-time one (`constexpr` around a
Python number, string or None; or a plain object: function, module, dtype, dictionary of launch
constants), or a tuple of values. Literals are constexprs until a loop or branch makes them tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard, TypeVar, cast

from tilewright.frontend.dtype_promotion import typed_as
from tilewright.frontend.typed_numbers import plain_number, typed_number
from tilewright.language import (
    Constexpr,
    base_value,
    constexpr_type,
    no_extents,
    tensor,
    tuple_type,
    type_of,
    unwrap,
    unwrap_deep,
)
from tilewright.language import tuple as language_tuple
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import synchronous

T = TypeVar("T")
_LITERALS = (bool, int, float, str, bytes, complex, type(None))

NONE = Constexpr(None)


class DeferredError:
    """Bound to a name whose use would be a mistake; the error is raised when it is read."""

    __slots__ = ("error",)

    def __init__(self, error: errors.CompilationError) -> None:
        self.error = error


def is_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    """Whether a value is a tuple of the language, of Python, or a named one."""
    return isinstance(value, tuple)


def as_tuple(value: object) -> object:
    """A Python list as a tuple, which it is in a kernel; anything else unchanged."""
    if isinstance(value, list):
        return language_tuple(map(as_tuple, cast("list[object]", value)))
    return value


def is_static(value: object) -> bool:
    """Whether all of the value is a compile-time constant."""
    if is_tuple(value):
        return all(map(is_static, value))
    return not isinstance(value, base_value)


def static_value(value: object) -> object:
    """The plain Python value of a compile-time value."""
    return cast("object", unwrap_deep(value))


def variable_value(value: object) -> object:
    """A value in a variable or returned from a function: numbers get their dtypes."""
    if is_tuple(value):
        items = [variable_value(item) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else tuple_like(value, items)
    number = cast("object", unwrap(value))
    typed = typed_number(number)
    return value if typed is number else Constexpr(typed)


def plain_value(value: object) -> object:
    """The plain Python value of a compile-time value, its numbers without dtypes."""
    if is_tuple(value):
        return tuple_like(value, [plain_value(item) for item in value])
    return plain_number(static_value(value))


def type_of_value(value: object) -> object:
    """`value.type`: for a tuple the types of its items, for a number in a variable its dtype."""
    if isinstance(value, tensor):
        return value.type
    if is_tuple(value):
        fields = getattr(value, "_fields", None)
        return tuple_type([type_of_value(item) for item in value], fields)
    number = cast("object", unwrap(value))
    typed = typed_as(number)
    return constexpr_type(number) if typed is None else type_of(typed)


def cannot_unpack(value: object, values: int, targets: int) -> errors.TilewrightError:
    """The error of `a, b = value` for a tuple of another size."""
    if isinstance(value, no_extents):
        return value.error("unpack")
    return errors.InvalidOperation("unpack", f"{values} values for {targets} variables")


def wrap(value: object) -> object:
    """A Python object as a language value."""
    if isinstance(value, _LITERALS):
        return Constexpr(value)
    # language_tuple before the tuple test below: its items are language values already.
    if isinstance(value, Constexpr | base_value | language_tuple):
        return value
    if is_tuple(value) or isinstance(value, list):
        items = cast("Sequence[object]", value)
        return tuple_like(items, [wrap(item) for item in items])
    return value


def tuple_like(template: object, items: Sequence[object]) -> object:
    """A tuple of `items`; of the template's class if the template is a named tuple or its class."""
    kind = template if isinstance(template, type) else type(template)
    if hasattr(kind, "_fields"):
        return cast("Callable[..., object]", kind)(*items)
    return language_tuple(items)


def describe(value: object) -> str:
    """The type of a value in messages."""
    if isinstance(value, tensor):
        return str(value.type)
    if is_tuple(value):
        return f"({', '.join(map(describe, value))})"
    if isinstance(value, base_value):
        return _named(repr(value), value)
    plain = cast("object", unwrap(value))
    if isinstance(plain, _LITERALS):
        return f"the constant {plain!r}"
    name = str(getattr(plain, "__name__", plain))
    return _named(f"the {type(plain).__name__} {name}", plain)


def _named(text: str, value: object) -> str:
    """A text, or the type of the value if the text contains only its address."""
    # Python's default repr is an address, which differs from run to run.
    return f"a {type(value).__name__}" if " object at 0x" in text else text


def on_host(operation: str, compute: Callable[[], T]) -> T:
    """Run plain Python at compile time; its exceptions become user errors."""
    try:
        return compute()
    except errors.TilewrightError:
        raise
    # Any exception: this is the user's code.
    except synchronous(Exception) as error:
        reason = f"{type(error).__name__}: {error}"
        raise errors.InvalidOperation(operation, reason) from error
