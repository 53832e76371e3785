"""Suggestions for names that the language does not have."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.support import errors

_CONVERSIONS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
    "int": "int32", "long": "int64", "short": "int16", "bool": "int1", "byte": "uint8",
}  # fmt: skip

_OF_TENSORS = {
    "astype": "write x.to(tl.float32)",
    **{name: f"write x.to(tl.{dtype})" for name, dtype in _CONVERSIONS.items()},
    "all": "write tl.min(x.to(tl.int32), axis) != 0",
    "any": "write tl.max(x.to(tl.int32), axis) != 0",
    "argsort": "pack the index into the low bits of what tl.sort sorts",
    "clip": "write tl.clamp(x, low, high)",
    "clamp": "write tl.clamp(x, low, high)",
    "copy": "tiles are values: no copy is needed",
    "clone": "tiles are values: no copy is needed",
    "dim": "len(x.shape) is the rank",
    "dot": "write tl.dot(x, y)",
    "fill_": "write tl.full(shape, value, dtype)",
    "flatten": "write x.ravel()",
    "masked_fill": "write tl.where(mask, value, x)",
    "matmul": "write tl.dot(x, y)",
    "mean": "divide tl.sum(x, axis) by the number of elements",
    "mm": "write tl.dot(x, y)",
    "ndim": "len(x.shape) is the rank",
    "pow": "write tl.exp2(y * tl.log2(x))",
    "prod": "write tl.reduce(x, axis, f) with a function f under @jit that multiplies",
    "relu": "write tl.maximum(x, 0)",
    "repeat": "write tl.broadcast_to(x, shape)",
    "size": "x.shape are the extents, x.numel is the number of elements",
    "std": "compute it from tl.sum(x, axis) and tl.sum(x * x, axis)",
    "t": "write x.T",
    "transpose": "write tl.trans(x), or tl.permute(x, dims)",
    "type_as": "write x.to(y.dtype)",
    "unsqueeze": "write x[:, None], or tl.expand_dims(x, axis)",
    "var": "compute it from tl.sum(x, axis) and tl.sum(x * x, axis)",
}
"""Methods and attributes of arrays in NumPy and torch, and their equivalents for tiles."""

_OF_MODULE = {
    "array": "write tl.full(shape, value, dtype), or load it from memory",
    "clip": "write tl.clamp(x, low, high)",
    "concatenate": "write tl.cat(a, b)",
    "empty": "write tl.zeros(shape, dtype)",
    "convert_custom_float8_sm70": "write x.to(tl.float8e4b15)",
    "convert_custom_float8_sm80": "write x.to(tl.float8e4b15)",
    "float8": "write tl.float8e4nv or tl.float8e5",
    "log10": "write tl.log2(x) * 0.30103",
    "log1p": "write tl.extra.libdevice.log1p(x)",
    "matmul": "write tl.dot(x, y)",
    "mean": "divide tl.sum(x, axis) by the number of elements",
    "memrealtime": "write tl.extra.cuda.globaltimer()",
    "ones": "write tl.full(shape, 1, dtype)",
    "pow": "write tl.extra.libdevice.pow(x, y)",
    "prod": "write tl.reduce(x, axis, f) with a function f under @jit that multiplies",
    "stack": "write tl.join(a, b)",
    "transpose": "write tl.trans(x), or tl.permute(x, dims)",
    "_experimental_descriptor_load": "write tl.load_tensor_descriptor(desc, offsets)",
    "_experimental_descriptor_store": "write tl.store_tensor_descriptor(desc, offsets, value)",
    "_experimental_make_tensor_descriptor": "write tl.make_tensor_descriptor(...)",
}
"""As above, for functions of modules."""

_OF_POINTERS = "it is an address: pass sizes and strides as arguments of the kernel"


def unknown_name(module: str, name: str, names: Iterable[str]) -> errors.UnknownAttribute:
    """The error for a name that a module of the language lacks."""
    return _unknown(f"'{module}'", name, names, _OF_MODULE)


def unknown_member(owner: str, name: str, names: Iterable[str]) -> errors.UnknownAttribute:
    """The error for an attribute that tensors lack. owner: "a tensor", "a pointer"."""
    if owner == "a pointer":
        error = errors.UnknownAttribute(owner, name, names)
        # A pointer lacks the methods of tensors: advice for arrays would mislead.
        error.advice = error.hint or _OF_POINTERS
        return error
    return _unknown(owner, name, names, _OF_TENSORS)


def _unknown(
    owner: str, name: str, names: Iterable[str], instead: dict[str, str]
) -> errors.UnknownAttribute:
    error = errors.UnknownAttribute(owner, name, names)
    if name in instead:
        error.advice = instead[name]
    return error
