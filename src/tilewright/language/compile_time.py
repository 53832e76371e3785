"""`constexpr`: a value that is known at compile time and folds every operator.

A constexpr and a plain Python number mean the same in a kernel; the wrapper exists for annotations,
for globals, and so that `.value` works.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, cast

from tilewright.language.pickle_by_name import PickledByName
from tilewright.support import text_of

P = ParamSpec("P")
R = TypeVar("R")
Fold = Callable[[Any, Any], Any]


class base_value:
    """Base of run-time values: tensors and aggregates of them."""

    __slots__ = ()


def unwrap(value: Any) -> Any:
    """The value inside a constexpr; anything else as it is."""
    return value.value if isinstance(value, Constexpr) else value


def unwrap_deep(value: Any) -> Any:
    """As `unwrap`, also inside tuples and lists."""
    value = unwrap(value)
    if not isinstance(value, tuple | list):
        return value
    sequence = cast("Any", value)
    items = map(unwrap_deep, sequence)
    # Named tuples take their items one by one, other sequences an iterable.
    return type(sequence)(*items) if hasattr(sequence, "_fields") else type(sequence)(items)


def _forward(name: str) -> Callable[[Constexpr, object], Any]:
    fold: Fold = getattr(operator, name)

    def apply(self: Constexpr, other: object) -> Any:
        # The tensor on the other side implements the operator.
        if isinstance(other, base_value):
            return NotImplemented
        return Constexpr(fold(self.value, unwrap(other)))

    return apply


def _reflected(name: str) -> Callable[[Constexpr, object], Any]:
    fold: Fold = getattr(operator, name)

    def apply(self: Constexpr, other: object) -> Any:
        if isinstance(other, base_value):
            return NotImplemented
        return Constexpr(fold(unwrap(other), self.value))

    return apply


class Constexpr:
    """A compile-time Python value.

    Arithmetic, comparisons, indexing and calls act on the values and give a constexpr again; with a
    tensor on the other side the operator is the tensor's. `bool`, `int`, `float`, `len`, `hash`,
    iteration and attributes are those of the value. Annotate a kernel parameter with it to make
    the argument part of the specialization.
    """

    __slots__ = ("value",)

    value: Any

    def __init__(self, value: Any) -> None:
        # Never nested: constexpr(constexpr(1)) is constexpr(1).
        set_value(self, unwrap(value))

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        for watcher in _watchers.pop(id(self), ()):
            watcher()

    @property
    def type(self) -> constexpr_type:
        """The type of a compile-time value, as a `constexpr_type`."""
        return constexpr_type(self.value)

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __hash__(self) -> int:
        return hash(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __contains__(self, item: object) -> bool:
        return unwrap(item) in self.value

    def __getitem__(self, index: object) -> Any:
        return self.value[unwrap(index)]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.value(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        # Neither the names of protocols, which a constexpr does not implement, nor `value` before
        # it is set.
        if name.startswith("__") or name == "value":
            raise AttributeError(name=name, obj=self)
        return getattr(self.value, name)

    def __neg__(self) -> Constexpr:
        return Constexpr(-self.value)

    def __pos__(self) -> Constexpr:
        return Constexpr(+self.value)

    def __invert__(self) -> Constexpr:
        value = self.value
        # As for int1: ~True is False, while Python's ~True is -2.
        return Constexpr(not value if isinstance(value, bool) else ~value)

    def __abs__(self) -> Constexpr:
        return Constexpr(abs(self.value))

    def __round__(self, digits: int | None = None) -> Constexpr:
        return Constexpr(round(self.value, digits))

    __add__ = _forward("add")
    __radd__ = _reflected("add")
    __sub__ = _forward("sub")
    __rsub__ = _reflected("sub")
    __mul__ = _forward("mul")
    __rmul__ = _reflected("mul")
    __truediv__ = _forward("truediv")
    __rtruediv__ = _reflected("truediv")
    __floordiv__ = _forward("floordiv")
    __rfloordiv__ = _reflected("floordiv")
    __mod__ = _forward("mod")
    __rmod__ = _reflected("mod")
    __pow__ = _forward("pow")
    __rpow__ = _reflected("pow")
    __and__ = _forward("and_")
    __rand__ = _reflected("and_")
    __or__ = _forward("or_")
    __ror__ = _reflected("or_")
    __xor__ = _forward("xor")
    __rxor__ = _reflected("xor")
    __lshift__ = _forward("lshift")
    __rlshift__ = _reflected("lshift")
    __rshift__ = _forward("rshift")
    __rrshift__ = _reflected("rshift")
    __lt__ = _forward("lt")
    __le__ = _forward("le")
    __gt__ = _forward("gt")
    __ge__ = _forward("ge")

    def __eq__(self, other: object) -> Any:
        # Without this, == with a tensor would be decided here and never reach the tensor.
        return (
            NotImplemented
            if isinstance(other, base_value)
            else Constexpr(self.value == unwrap(other))
        )

    def __ne__(self, other: object) -> Any:
        return (
            NotImplemented
            if isinstance(other, base_value)
            else Constexpr(self.value != unwrap(other))
        )

    def logical_and(self, other: object) -> Constexpr:
        """`self and other`."""
        return Constexpr(self.value and unwrap(other))

    def logical_or(self, other: object) -> Constexpr:
        """`self or other`."""
        return Constexpr(self.value or unwrap(other))


set_value = cast("Any", Constexpr).value.__set__
"""Sets the value of a new constexpr, which is not watched yet."""

Constexpr.__name__ = Constexpr.__qualname__ = "constexpr"


def _annotation(cls: type) -> Any:
    return cls.__base__


@_annotation
class constexpr(Constexpr):
    """The class `Constexpr` by its public name.

    For type checkers it is Any: launches pass plain values for parameters with this annotation.
    """


_watchers: dict[int, list[Callable[[], object]]] = {}


def watch(value: Constexpr, changed: Callable[[], object]) -> None:
    """Call `changed` once, when `value.value` is assigned."""
    _watchers.setdefault(id(value), []).append(changed)


class constexpr_type:
    """The type `x.type` of a constexpr; equal where the values are equal."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self) -> int:
        return hash((constexpr_type, self.value))

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value}]"


class constexpr_function(PickledByName, Generic[P, R]):
    """A Python function that a kernel calls at compile time, on compile-time values.

    On the host it is the function itself; in a kernel its arguments are unwrapped and the result
    becomes a constexpr.
    """

    def __init__(self, fn: Callable[P, R]) -> None:
        self.fn: Callable[..., R] = fn
        # Reads the source text now: the file may change before a kernel calls the function.
        text_of(fn)
        update_wrapper(self, fn)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        # first, and in a function of its own: `next_power_of_2(n)` in each launch
        if len(args) == 1 and not kwargs and type(args[0]) is int:
            return self.fn(args[0])
        return self._call_unwrapped(*args, **kwargs)

    def _call_unwrapped(self, *args: Any, **kwargs: Any) -> R:
        return self.fn(*map(unwrap_deep, args), **{k: unwrap_deep(v) for k, v in kwargs.items()})

    def reduce_by_value(self) -> tuple[Any, ...]:
        """By the function itself, which some picklers can do without its name."""
        return constexpr_function, (self.fn,)
