"""Conversions between dtypes."""

from __future__ import annotations

from tilewright import language
from tilewright.frontend.dtype_promotion import fits
from tilewright.frontend.semantics.literal_constants import constant, describe, materialize
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir import Value
from tilewright.ir import types as ir
from tilewright.language import cast, dtype, tensor, to, type_of, unwrap
from tilewright.support import errors

# Addresses have 64 bits on every backend, so only these hold one without loss.
_ADDRESSES = (ir.i64, ir.u64)

_PYTHON_TYPES = {"float": "float32", "int": "int32", "bool": "int1"}
"""The dtype of the language that a number of each Python type has in a kernel."""


def as_offset(ctx: Context, value: tensor) -> tensor:
    """An int32 value that offsets are computed from: as int64 under `int64_offsets`."""
    element = ir.element_of(value.handle.type)
    if not isinstance(element, ir.DType):
        return value
    return tensor(cast_value(ctx, value.handle, offset_dtype(ctx, element)))


def offset_dtype(ctx: Context, dtype: ir.DType) -> ir.DType:
    """The dtype in which offsets are computed from a number."""
    return ir.i64 if ctx.options.int64_offsets and dtype is ir.i32 else dtype


def cast_value(ctx: Context, value: Value, element: ir.DType) -> Value:
    """A number converted to another number type, rounding to nearest even."""
    type_ = value.type
    if ir.element_of(type_) is element:
        return value
    return ctx.cast(value, ir.with_element(type_, element))


def element_type(ctx: Context, what: str, requested: object) -> ir.Scalar:
    """The IR type of a dtype argument; a block type counts as its element."""
    requested = unwrap(requested)
    if not isinstance(requested, dtype):
        meant = _named_like(requested) or _PYTHON_TYPES.get(_described(requested))
        expected, found = f"a dtype such as tl.{meant or 'float32'}", _described(requested)
        hint = None if meant is None else f"write tl.{meant}"
        raise errors.InvalidValue(what, "dtype", expected, found, advice=hint, loc=ctx.loc)
    element = ir.element_of(requested.ir)
    _check_fp8(ctx, what, element)
    return element


def _check_fp8(ctx: Context, what: str, element: ir.Scalar) -> None:
    """Refuse formats that Triton does not have for a GPU, where its limits hold."""
    capability = ctx.options.capability
    if not ctx.options.triton_limits or not capability or not isinstance(element, ir.DType):
        return
    known = (ir.f8e5m2, ir.f8e4b15, ir.f8e4m3)[: 3 if capability >= 89 else 2]
    if element.is_fp8 and element not in known:
        name = str(language.type_of(element))
        triton = f"type {name} not supported in this architecture"
        expected = "an fp8 format that Triton has on this GPU"
        ctx.fail(errors.InvalidValue, what, "dtype", expected, name, triton=triton)


def _described(requested: object) -> str:
    """As `describe`; a class, and a dtype of another library, by its name."""
    if isinstance(requested, type):
        return requested.__name__
    is_dtype = _named_like(requested) is not None and not isinstance(requested, str)
    return str(requested) if is_dtype else describe(requested)


def _named_like(requested: object) -> str | None:
    """The name in the language of a dtype of another library, such as torch.float16."""
    name = str(getattr(requested, "__name__", requested)).rpartition(".")[2]
    return name if isinstance(getattr(language, name, None), dtype) else None


def number_type(ctx: Context, what: str, requested: object) -> ir.DType:
    """As `element_type`, where no pointer type is allowed."""
    element = element_type(ctx, what, requested)
    if not isinstance(element, ir.DType):
        ctx.fail(errors.InvalidValue, what, "dtype", "a number type", describe(requested))
    return element


def cast_to(ctx: Context, x: object, dtype: object) -> tensor:
    """`x` (tensor or literal) converted to a dtype, as `tl.cast`."""
    return cast_operand(ctx, x, dtype)


@implements(to)
@implements(cast)
def cast_operand(
    ctx: Context,
    input: object,
    dtype: object,
    fp_downcast_rounding: str | None = None,
    bitcast: object = False,
) -> tensor:
    target = element_type(ctx, "cast", dtype)
    if not isinstance(input, tensor):
        return _cast_literal(ctx, unwrap(input), target)
    value = input.handle
    source = ir.element_of(value.type)
    # First: the same type is a no-op for either kind of conversion and any rounding.
    if source is target:
        return input
    _check_rounding(ctx, fp_downcast_rounding, source, target)
    if bitcast:
        return _bitcast(ctx, value, target)
    result_type = ir.with_element(value.type, target)
    if isinstance(source, ir.DType) and isinstance(target, ir.DType):
        return tensor(ctx.cast(value, result_type, fp_downcast_rounding or "rtne"))
    return _cast_pointer(ctx, value, target)


def _cast_literal(ctx: Context, value: object, target: ir.Scalar) -> tensor:
    """A literal of a float or bool kind converts at compile time; the rest as tensors do."""
    if isinstance(target, ir.DType) and isinstance(value, int | float):
        # Integers that do not fit the target wrap as run-time values do, below.
        exact = target.is_float or isinstance(value, bool)
        if exact or (isinstance(value, int) and target.is_integer and fits(value, target)):
            return tensor(constant(ctx, value, target))
    # An integer out of range becomes a tensor of its own dtype, whose bits the cast wraps.
    scalar = materialize(ctx, value)
    return cast_operand(ctx, scalar, type_of(target))


def _check_rounding(ctx: Context, rounding: object, source: ir.Scalar, target: ir.Scalar) -> None:
    if rounding is None:
        return
    if rounding not in ("rtne", "rtz"):
        expected = '"rtne" or "rtz"'
        ctx.fail(errors.InvalidValue, "cast", "fp_downcast_rounding", expected, repr(rounding))
    floats = [isinstance(t, ir.DType) and t.is_float for t in (source, target)]
    # Widening is exact, so a rounding mode there is a misunderstanding.
    if not all(floats) or source.bits <= target.bits:
        ctx.fail(
            errors.InvalidOperation,
            f"round {type_of(source)} to {type_of(target)} by fp_downcast_rounding",
            "it is no conversion of floats to narrower floats",
        )


def _bitcast(ctx: Context, value: Value, target: ir.Scalar) -> tensor:
    source = ir.element_of(value.type)
    # A pointer counts 64 bits: an address may be reinterpreted as int64.
    if source.bits != target.bits:
        ctx.fail(
            errors.InvalidOperation,
            f"bitcast {type_of(source)} to {type_of(target)}",
            f"they have {source.bits} and {target.bits} bits",
        )
    return tensor(ctx.bitcast(value, target))


def _cast_pointer(ctx: Context, value: Value, target: ir.Scalar) -> tensor:
    """Pointer to pointer keeps the address; pointer to i64, u64 and back; to i1 is `!= 0`."""
    source = ir.element_of(value.type)
    result_type = ir.with_element(value.type, target)
    if isinstance(source, ir.PointerType) and isinstance(target, ir.PointerType):
        # Pointers of all element types have the same bits.
        return tensor(ctx.bitcast(value, result_type))
    if isinstance(source, ir.PointerType):
        if target in _ADDRESSES:
            return tensor(ctx.cast(value, result_type))
        if target is ir.i1:
            # In two steps: CastOp takes pointers to 64-bit integers only.
            address = ctx.cast(value, ir.i64)
            return tensor(ctx.cast(address, result_type))
    # Narrow integers are extended first, by their own signedness, as C converts them to addresses.
    elif not source.is_float and not source.is_bool:
        return tensor(ctx.cast(cast_value(ctx, value, ir.i64), result_type))
    ctx.fail(
        errors.InvalidOperation,
        f"convert {type_of(source)} to {type_of(target)}",
        "addresses convert from and to 64-bit integers only",
    )
