"""The launch key: which parts of an argument decide the variant of a kernel that is launched.

Each parameter has one `KeyRule`, made from its declaration. Both kinds of launches read it:

    KeyRule.key     Python: argument -> (its element of `BoundCall.key`, the value to pass)
    KeyRule.flags   machine code: how `native_dispatch` describes the argument by words

    part of an argument         in the key                       in the words
    type, dtype, device         Spec.type, Spec.device           type, value
    divisibility by DIVISORS    Spec.divisor                     value; not if UNALIGNED
    sign                        Spec.sign                        value
    equality to 1               the key is 1                     value; not if UNSPECIALIZED
    a compile-time value        constant_key                     value or identity, if CONSTEXPR
    a declared type             Declared.handler                 FLOAT, SIGNED, RANGE, MULTIPLE

The words may separate arguments that have one key, and never unite two: a cache entry holds the
variant that Python has found for the first launch with its words. Property tests compare
both.

An element of the launch key is one of

    Spec         a run-time value: its type and facts; equal ones are one object
    int, None    a compile-time value (also every integer argument that is 1)
    Constant     another compile-time value with its type: 1, 1.0 and True differ; and an integer
                 passed as `tl.constexpr(n)`
    TupleKey     a tuple argument: its class, then one element for each item

The rules are Triton's: None -> compile-time; bool -> u1; an int is i32, i64 or u64, the first that
holds it, with the fact that it is a multiple of 16; float -> fp32; an array is a pointer, with the
fact that it is aligned to 16 bytes. Two more facts of an int are ours:

* that it is not negative. Sizes are not, so this rarely creates more variants, and indices that
  wrap around need it (ADR 0022);
* that it is a multiple of 8 but not of 16. Rows of 1000 numbers of 16 bits need it to be copied 16
  bytes at a time (ADR 0023). Each such class may compile a kernel once more, so there are no
  others: multiples of 4 and 2 allow 16 bytes only for wider elements, and addresses aligned to 8 or
  4 bytes are those of slices, which start anywhere.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Any, cast

from tilewright.compiler import name_of_type
from tilewright.ir.types import DType, PointerType, Scalar, f32, i1, i32, i64, u64
from tilewright.language import Constexpr, DeviceFunction, constexpr_function, dtype
from tilewright.runtime.arguments.kernel_parameters import Declared, KernelParam
from tilewright.support import errors
from tilewright.support.data_class import dataclass

ALIGNMENT, HALF_ALIGNMENT = DIVISORS = 16, 8
"""Divisors of integers that a variant may rely on; for addresses, in bytes, only the first, as in
Triton."""

LOW_BITS = ALIGNMENT - 1
"""Mask of the bits that are 0 in an aligned address, and that decide the divisor of an integer in
two's complement."""

_DIVISOR_OF = tuple(
    next((divisor for divisor in DIVISORS if not low % divisor), 1) for low in range(ALIGNMENT)
)
"""The divisor of an integer by its LOW_BITS."""

HOST = "cpu"
MOCK = "mock"
"""The devices of arrays in host memory and of stand-ins without memory."""


class Spec:
    """A run-time argument for the compiler. Created by `spec`; compared by identity.

    type: scalar or pointer; divisor: a known divisor of the value: 16, 8 or 1 (of an address: 16 or
    1; of the rows of a tensor descriptor: the elements of 16 bytes, or 1); device: that of the
    memory behind a pointer ("" for numbers); read_only: must not be stored through; sign: of a
    signed integer, 1 (0 or more) or -1, 0 if it is ignored; plain: the Spec without facts about the
    value.
    """

    __slots__ = ("device", "divisor", "plain", "read_only", "sign", "type")

    def __init__(
        self, type_: Scalar, divisor: int, device: str, read_only: bool, sign: int
    ) -> None:
        self.type = type_
        self.divisor = divisor
        self.device = device
        self.read_only = read_only
        self.sign = sign
        # through the cache of `spec`, so that `plain` is unique as well
        said = divisor > 1 or sign
        self.plain: Spec = spec(type_, 1, device, read_only) if said else self

    def facts(self) -> dict[str, int]:
        """The facts in the form of the front end."""
        facts: dict[str, int] = {}
        if self.divisor > 1:
            facts["aligned" if isinstance(self.type, PointerType) else "multiple_of"] = self.divisor
        if self.sign > 0:
            facts["non_negative"] = 1
        return facts

    def __repr__(self) -> str:
        divisor = f"/{self.divisor}" if self.divisor > 1 else ""
        return "-" * (self.sign < 0) + name_of_type(self.type) + divisor


def spec(
    type_: Scalar,
    divisor: int = 1,
    device: str = "",
    read_only: bool = False,
    sign: int = 0,
) -> Spec:
    """The unique Spec with these properties."""
    return _known_spec(type_, divisor, device, read_only, sign)


# by position only: the cache distinguishes `f(x)` and `f(x=x)`
_known_spec = cache(Spec)


class Constant(tuple[object, ...]):
    """A compile-time value in a key, with its type, so that 1.0 differs from 1; or keys of its
    items.

    (type, value), (float, text) since nan != nan, (tuple or list, key of each item ...)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        kind, *items = self
        if kind is tuple or kind is list:
            return f"({', '.join(map(repr, items))})"
        return str(items[0]) if kind is float else repr(items[0])


class TupleKey(tuple[object, ...]):
    """A tuple argument in a key: (class, key of each item ...)."""

    __slots__ = ()

    @property
    def kind(self) -> object:
        """The class of the tuple."""
        return self[0]

    @property
    def items(self) -> tuple[Key, ...]:
        """Keys of the items."""
        return cast("tuple[Key, ...]", self[1:])

    def values_of(self, item: Any) -> Any:
        """The items of an argument, or of the value that is passed for it."""
        return item

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.items))})"


Key = Spec | int | None | Constant | TupleKey


def on_any_device(key: Key) -> Key:
    """A part of a launch key without the device of arrays, and whether they are read-only."""
    if isinstance(key, Spec):
        return spec(key.type, key.divisor, sign=key.sign)
    if isinstance(key, TupleKey):
        return type(key)((key.kind, *map(on_any_device, key.items)))
    return key


def run_time_pairs(keys: Sequence[Key], items: Sequence[Any]) -> Iterator[tuple[Spec, Any]]:
    """The run-time arguments, tuples flattened, each with its item of `items`."""
    for key, item in zip(keys, items, strict=True):
        if isinstance(key, TupleKey):
            yield from run_time_pairs(key.items, key.values_of(item))
        elif isinstance(key, Spec):
            yield key, item


_BOOL_SPEC = spec(i1)
_FLOAT_SPEC = spec(f32)
SIZES = tuple(spec(i32, divisor, sign=1) for divisor in _DIVISOR_OF)
"""The Spec of an int from 0 to 2^31 - 1, by its LOW_BITS."""


def integer_key(value: int) -> Spec:
    """The key of an integer that is not specialized to 1."""
    # nearly all are sizes
    if 0 <= value <= 0x7FFFFFFF:
        return SIZES[value & LOW_BITS]
    for type_ in (i32, i64, u64):
        if type_.min_int <= value <= type_.max_int:
            return integer_spec(type_, value)
    raise errors.IntegerTooLarge("", "integer of more than 64 bits", "split it in two")


def integer_spec(type_: DType, value: int) -> Spec:
    """The Spec of an integer of a type, with the facts about it."""
    sign = (1 if value >= 0 else -1) if type_.is_signed else 0
    return _known_spec(type_, _DIVISOR_OF[value & LOW_BITS], "", False, sign)


def address_divisor(address: int) -> int:
    """The divisor of the Spec of a pointer."""
    return 1 if address & LOW_BITS else ALIGNMENT


def constant_key(value: object) -> Key:
    """The key of a compile-time value; that of an unhashable value is its text.

    Errors: UnsupportedArgument for an array, whose text may leave elements out.
    """
    if isinstance(value, Constexpr):
        value = cast("object", value.value)
    kind = type(value)
    if kind is int or value is None:
        return cast("int | None", value)
    if kind is float:
        return Constant((kind, repr(value)))
    if kind is tuple or kind is list:
        items = cast("Sequence[object]", value)
        return Constant((kind, *map(constant_key, items)))
    if hasattr(kind, "__dlpack__"):
        instead = "a constexpr is a number, text, a type or a tuple: pass .item() or .tolist()"
        raise errors.UnsupportedArgument("", kind.__name__, instead)
    try:
        hash(value)
    except TypeError:
        return Constant((kind, repr(value)))
    return Constant((kind, value))


Handled = tuple[Key, Any]
Handler = Callable[[Any], Handled]


class Handlers(dict[type[Any], Handler]):
    """Handlers of arguments by type: type -> function of the argument -> (key, value).

    A new type is resolved by `resolvers`, in order, and then remembered.
    """

    def __init__(self) -> None:
        super().__init__()
        self.resolvers: list[Callable[[type[Any]], Handler | None]] = []

    def __missing__(self, kind: type[Any]) -> Handler:
        found = (resolve(kind) for resolve in self.resolvers)
        handler = self[kind] = next(filter(None, found), refuse)
        return handler

    def key_and_value(self, value: object) -> Handled:
        """The key of an argument without an annotation, and the value to pass."""
        return self[type(value)](value)


HANDLERS = Handlers()


def refuse(value: object) -> Handled:
    """Raise UnsupportedArgument."""
    kind = type(value)
    raise errors.UnsupportedArgument("", kind.__name__, *_instead(kind))


def _instead(kind: type[Any]) -> tuple[str, ...]:
    """The hint for a type that is not supported."""
    if issubclass(kind, list):
        return ("pass a tuple, or an array (numpy.asarray, torch.tensor)",)
    if issubclass(kind, dict | set):
        return ("pass its items one by one, or as a tuple",)
    if issubclass(kind, complex):
        return ("pass the real and the imaginary part",)
    if issubclass(kind, type) or "dtype" in kind.__name__.lower():
        return ("annotate the parameter with tl.constexpr to pass a type",)
    return ()


def _of_int(value: int) -> Handled:
    return (1, 1) if value == 1 else (integer_key(value), value)


def _of_tuple(items: Sequence[object]) -> Handled:
    pairs = [HANDLERS.key_and_value(item) for item in items]
    return TupleKey((type(items), *(k for k, _ in pairs))), [v for _, v in pairs]


def _of_constant(value: object) -> Handled:
    return constant_key(value), value


def _of_constexpr(wrapped: Constexpr) -> Handled:
    """The handler of `tl.constexpr(n)`, whose key differs from that of an integer that is 1."""
    key = constant_key(wrapped)
    return (Constant((int, key)) if isinstance(key, int) else key), wrapped.value


def _resolve_plain(kind: type[Any]) -> Handler | None:
    """Handlers of subclasses of built-in types and of the language's; classes are refused."""
    if issubclass(kind, type):
        return refuse
    if issubclass(kind, enum.Enum | str | dtype | DeviceFunction | constexpr_function):
        return _of_constant
    if issubclass(kind, bool | int):
        return lambda value: _of_int(int(value))
    if issubclass(kind, float):
        return lambda value: (_FLOAT_SPEC, float(value))
    return _of_tuple if issubclass(kind, tuple) else None


HANDLERS.update(
    {
        bool: lambda value: (_BOOL_SPEC, value),
        int: _of_int,
        float: lambda value: (_FLOAT_SPEC, value),
        type(None): lambda value: (None, None),
        Constexpr: _of_constexpr,
        tuple: _of_tuple,
        str: _of_constant,
        dtype: _of_constant,
    }
)
HANDLERS.resolvers.append(_resolve_plain)


def annotated_key(type_: Scalar) -> Handler:
    """The handler of a parameter with an annotated type, which is not specialized on values."""
    if isinstance(type_, PointerType):
        return lambda value: _pointer(type_, value)
    fixed = spec(type_)
    convert = float if type_.is_float else _wrapping(type_)
    return lambda value: (fixed, convert(value))


def _wrapping(type_: DType) -> Callable[[Any], object]:
    if type_.is_bool:
        return bool
    low, high = type_.min_int, type_.max_int

    def convert(value: Any) -> int:
        number = int(value)
        if low <= number <= high:
            return number
        raise errors.UnsupportedArgument("", f"value {number}, too large for {type_}")

    return convert


def _pointer(type_: PointerType, value: object) -> Handled:
    """The handler of a parameter annotated as a pointer: an array, or an address as a plain int."""
    if isinstance(value, int):
        return spec(type_, address_divisor(value)), value
    key, address = HANDLERS.key_and_value(value)
    if not isinstance(key, Spec):
        return key, address
    return spec(type_, key.divisor, key.device, key.read_only), address


def argument_key(value: object) -> Handled:
    """The key of an argument and the value to pass, by its type only.

    Errors: UnsupportedArgument.
    """
    return HANDLERS.key_and_value(value)


def plain(value: object) -> object:
    """A scalar of NumPy as a number of Python; other values unchanged."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return plain_number(value)
    return value


def plain_number(value: Any) -> object:
    """A scalar of NumPy as a number of Python. Raises UnsupportedArgument if Python has no such
    type."""
    item: object = value.item()
    if type(item) is type(value):
        kind = type(value).__name__
        raise errors.UnsupportedArgument("", kind, "convert it with float() or complex()")
    return item


# --- the rules of parameters ----------------------------------------------------------------------

CONSTEXPR, UNSPECIALIZED, UNALIGNED, BY_VALUE, FLOAT, SIGNED, LAYOUT = 1, 2, 4, 8, 16, 32, 64
"""Flags: the argument is a compile-time value; no fact about its value matters; divisibility does
not; numbers decide by their value, although they are passed; integers are passed as floats; the
declared range of integers has a sign; rank, shape and strides of an array decide too."""

BOUNDED, PARAMETER = 128, 16
"""Flag: whether an integer is between the bounds that `precompile` was passed decides too; and the
first bit of the position of the parameter."""

RANGE, MULTIPLE = 8, 32
"""First bits of two numbers in the flags: the bits of the declared range of integers, 0 for any
that fits 64 bits; and what integers and addresses must be multiples of, or 0. Python launches what
is outside the range or no multiple, and raises the error."""

_MAX_MULTIPLE = 1 << 32
"""A declared multiple must be below this to fit in the flags."""


@dataclass(frozen=True, slots=True)
class KeyRule:
    """The parts of the arguments of one parameter that decide the variant."""

    key: Handler
    flags: int


def rules_of(params: Sequence[KernelParam], by_value: Collection[str] = ()) -> list[KeyRule]:
    """The rules of parameters; by_value: names of those whose numbers decide by their value."""
    return [
        KeyRule(_handler(param), _flags(param) | (BY_VALUE if param.name in by_value else 0))
        for param in params
    ]


def machine_readable(params: Sequence[KernelParam]) -> bool:
    """Whether flags can describe all parameters, so that machine code can launch the kernel."""
    return sys.implementation.name == "cpython" and not any(
        param.is_keywords
        or param.is_rest
        or (param.declared is not None and param.declared.multiple >= _MAX_MULTIPLE)
        or (param.type is not None and not param.is_constexpr)
        for param in params
    )


def _handler(param: KernelParam) -> Handler:
    if param.is_constexpr:
        return _constant
    if param.declared is not None:
        return param.declared.handler
    if param.type is not None:
        return annotated_key(param.type)
    if param.do_not_specialize:
        return _unspecialized
    if param.do_not_specialize_on_alignment:
        return _unaligned
    return HANDLERS.key_and_value


def _constant(value: object) -> Handled:
    return constant_key(value), plain(value)


def _unspecialized(value: Any) -> Handled:
    # Not through HANDLERS, which make 1 a compile-time constant.
    if type(value) is int:
        return integer_key(value).plain, value
    return _unaligned(value)


def _unaligned(value: Any) -> Handled:
    key, passed = HANDLERS.key_and_value(value)
    return (key.plain if isinstance(key, Spec) else key), passed


def _flags(param: KernelParam) -> int:
    if param.is_constexpr:
        return CONSTEXPR
    declared = 0 if param.declared is None else _declared_flags(param.declared)
    if param.do_not_specialize:
        return declared | UNSPECIALIZED
    return declared | (UNALIGNED if param.do_not_specialize_on_alignment else 0)


def _declared_flags(declared: Declared) -> int:
    """The checks of machine code on an argument of a declared type."""
    type_ = declared.type
    multiple = declared.multiple << MULTIPLE if declared.multiple > 1 else 0
    if not isinstance(type_, DType) or type_.is_bool:
        return multiple
    if type_.is_float:
        return multiple | FLOAT
    if type_.is_signed:
        return multiple | (SIGNED | type_.bits << RANGE if type_.bits < 64 else 0)
    # 63 for u64: Python passes what a signed word cannot hold
    return multiple | min(type_.bits, 63) << RANGE
