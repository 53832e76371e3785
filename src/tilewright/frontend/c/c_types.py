"""Types of the IR for the type specifiers of C."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.frontend.c.syntax import TypeName
from tilewright.ir.types import (
    DType,
    PointerType,
    Scalar,
    bf16,
    f8e4b8,
    f8e4b15,
    f8e4m3,
    f8e5b16,
    f8e5m2,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from tilewright.support import errors

_INTEGERS: dict[str, tuple[DType, DType]] = {
    "char": (i8, u8), "short": (i16, u16), "int": (i32, u32), "long": (i64, u64),
}  # fmt: skip
"""Signed and unsigned; the widths are the same on every machine."""

_OTHERS: dict[str, DType] = {
    "bool": i1, "half": f16, "bfloat16": bf16, "float": f32, "double": f64,
    "float8e4nv": f8e4m3, "fp8e4nv": f8e4m3, "fp8e4m3": f8e4m3,
    "float8e5": f8e5m2, "fp8e5": f8e5m2, "fp8e5m2": f8e5m2,
    "fp8e4b8": f8e4b8, "fp8e5b16": f8e5b16, "fp8e4b15": f8e4b15,
}  # fmt: skip

_ORDER = ("char", "short", "long", "int")
"""`long int` is `long`, `short int` is `short`: the first of these that is present decides."""

READ_ONLY = frozenset({"const", "__readonly"})

NAMES: dict[DType, str] = {
    **{signed: name for name, (signed, _) in _INTEGERS.items()},
    **{unsigned: f"unsigned {name}" for name, (_, unsigned) in _INTEGERS.items()},
    i1: "bool", f16: "half", bf16: "bfloat16", f32: "float", f64: "double",
    f8e4m3: "fp8e4m3", f8e5m2: "fp8e5m2",
    f8e4b8: "fp8e4b8", f8e5b16: "fp8e5b16", f8e4b15: "fp8e4b15",
}  # fmt: skip


def number_type(specifiers: Iterable[str]) -> DType | None:
    """The type that specifiers such as ("unsigned", "int") name; None for `void`.

    Errors: CSyntaxError for specifiers that conflict.
    """
    words = list(specifiers)
    if words == ["void"]:
        return None
    if len(words) == 1 and words[0] in _OTHERS:
        return _OTHERS[words[0]]
    signs = [word for word in words if word in ("signed", "unsigned")]
    rest = [word for word in words if word not in signs]
    # `int` is implied: `unsigned` and `long` name complete types.
    base = next((word for word in _ORDER if word in rest), "int")
    extra = [word for word in rest if word not in (base, "int")]
    # `long long` is C's; it is the same 64-bit type as `long` here.
    twice = any(rest.count(word) > (2 if word == "long" else 1) for word in rest)
    if not words or extra or twice or len(signs) > 1 or (base == "char" and "int" in rest):
        raise errors.CSyntaxError("a type", f"'{' '.join(words)}'" if words else "none")
    signed, unsigned = _INTEGERS[base]
    return unsigned if "unsigned" in signs else signed


def scalar_type(name: TypeName, read_only: bool = False) -> Scalar | None:
    """A type without extents; None for `void`.

    read_only: as declared by a parameter's attributes. Errors: CSyntaxError.
    """
    element = number_type(name.specifiers)
    if not name.pointers:
        return element
    star, *more = name.pointers
    if more:
        raise errors.CSyntaxError("a pointer to numbers", "a pointer to pointers")
    if element is None:
        raise errors.CSyntaxError("a pointer to numbers", "'void *'", "write char *, and cast")
    # `const` before the star is of the data; `__readonly` may stand after it.
    const = read_only or not READ_ONLY.isdisjoint(name.qualifiers)
    return PointerType(element, const=const or "__readonly" in star)


def c_spelling(type_: Scalar) -> str:
    """The spelling of a type in C."""
    if isinstance(type_, PointerType):
        return f"{'const ' if type_.const else ''}{NAMES[type_.element]} *"
    return NAMES[type_]
