"""Types by Triton's names: "fp32", "i32", "*fp16", "*kbf16" (a pointer that is not stored to)."""

from __future__ import annotations

from tilewright.ir.types import DType, PointerType, Scalar, Type, dtype_named
from tilewright.support import errors

_DTYPES = {
    "i1": "i1", "u1": "i1", "B": "i1", "int1": "i1", "bool": "i1",
    **{f"i{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "f16": "f16", "f32": "f32", "f64": "f64",
    "fp8e4nv": "f8e4m3", "fp8e5": "f8e5m2", "float8e4nv": "f8e4m3", "float8e5": "f8e5m2",
}  # fmt: skip
_NAMES = {
    "i1": "u1", "f16": "fp16", "f32": "fp32", "f64": "fp64", "f8e4m3": "fp8e4nv", "f8e5m2": "fp8e5",
}  # fmt: skip


def find_type(name: str) -> Scalar | None:
    """The scalar or pointer type called `name`, or None."""
    text = name.strip()
    pointer = text.startswith("*")
    const = text.startswith("*k")
    dtype = _DTYPES.get(text[1 + const :] if pointer else text)
    if dtype is None:
        return None
    element = dtype_named(dtype)
    return PointerType(element, const) if pointer else element


def type_named(name: str, what: str = "type") -> Scalar:
    """As `find_type`; InvalidOption, naming `what`, if there is none."""
    type_ = find_type(name)
    if type_ is None:
        raise errors.InvalidOption(what, "a type such as 'i32', 'fp32' or '*fp16'", name)
    return type_


def name_of_type(type_: Type) -> str:
    """Triton's name of a scalar or pointer type."""
    if isinstance(type_, PointerType):
        return ("*k" if type_.const else "*") + name_of_type(type_.element)
    assert isinstance(type_, DType)
    return _NAMES.get(type_.name, type_.name)
