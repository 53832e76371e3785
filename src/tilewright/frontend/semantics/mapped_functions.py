"""Functions applied to each element: of the language, assembly, those of libdevice by symbol."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from tilewright import language as tl
from tilewright.frontend import ptx
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.broadcasting import broadcast_value
from tilewright.frontend.semantics.dtype_casts import cast_to, element_type
from tilewright.frontend.semantics.formula_tracing import evaluate
from tilewright.frontend.semantics.literal_constants import describe, materialize
from tilewright.frontend.semantics.reductions import function_region
from tilewright.frontend.semantics.selection import shape_of_all
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import call, implements
from tilewright.ir import Value
from tilewright.ir.types import element_of, shape_of, with_shape
from tilewright.language import tensor, type_of, unwrap
from tilewright.ops import AsmOp, MapOp, VolatileAsmOp, wrong_assembly
from tilewright.support import errors


def _broadcast(ctx: Context, function: str, args: Sequence[object]) -> list[Value]:
    """The arguments in their common shape, each in its own dtype."""
    tensors = [materialize(ctx, unwrap(arg)) for arg in args]
    shape = shape_of_all(ctx, function, tensors)
    return [broadcast_value(ctx, x.handle, shape, function) for x in tensors]


def _pack(ctx: Context, function: str, pack: object, shape: tuple[int, ...]) -> int:
    number = constant_arguments.integer(ctx, function, "pack", pack)
    if number < 1 or (shape and shape[-1] % number):
        expected = f"a number that divides the last extent, {shape[-1]}" if shape else "1"
        ctx.fail(errors.InvalidValue, function, "pack", expected, number)
    return number


@implements(tl.map_elementwise)
def map_elementwise(ctx: Context, scalar_fn: object, *args: object, pack: object = 1) -> Any:
    function = "map_elementwise"
    if not args:
        ctx.fail(errors.MissingArgument, function, ("args",))
    inputs = _broadcast(ctx, function, args)
    shape = shape_of(inputs[0].type)
    group = _pack(ctx, function, pack, shape)
    if not shape:
        return call(ctx, scalar_fn, [tensor(value) for value in inputs], {})
    single = False

    def body(scalars: list[tensor]) -> list[tensor]:
        nonlocal single
        returned = unwrap(call(ctx, scalar_fn, scalars, {}))
        single = not isinstance(returned, tuple)
        items = cast("Sequence[Any]", (returned,) if single else returned)
        return _groups(ctx, [materialize(ctx, item) for item in items], group)

    types = [element_of(value.type) for value in inputs for _ in range(group)]
    why = f"the function of {function}", "it is computed for each element, in any order"
    region = function_region(ctx, types, body, why)
    results = ctx.emitter.emit(MapOp(tuple(inputs), region, group)).results
    return tensor(results[0]) if single else tl.tuple([tensor(value) for value in results])


def _groups(ctx: Context, results: list[tensor], pack: int) -> list[tensor]:
    """The results as scalars: for each, one type and as many as a group has elements."""
    count = len(results)
    if not count or count % pack:
        what = "map_elementwise: the results of scalar_fn"
        ctx.fail(errors.ArgumentCount, what, f"a multiple of {pack}", count)
    for number, result in enumerate(results):
        if result.shape:
            what = "the result of scalar_fn"
            ctx.fail(errors.InvalidValue, "map_elementwise", what, "a scalar", result.type)
        first = results[number - number % pack]
        if result.handle.type is not first.handle.type:
            ctx.fail(errors.DTypeMismatch, "map_elementwise", first.type, result.type)
    return results


@implements(tl.extern_elementwise)
def extern_elementwise(
    ctx: Context,
    lib_name: object,
    lib_path: object,
    args: object,
    arg_type_symbol_dict: object,
    is_pure: object,
    _semantic: object = None,
) -> tensor:
    function = "extern_elementwise"
    items = constant_arguments.sequence(ctx, function, "args", args)
    inputs = [tensor(value) for value in _broadcast(ctx, function, items)]
    symbols = cast("dict[Any, Any]", unwrap(arg_type_symbol_dict))
    by_dtypes = {tuple(map(unwrap, key)): value for key, value in symbols.items()}
    dtypes = tuple(value.dtype for value in inputs)
    if dtypes not in by_dtypes:
        expected = " or ".join(", ".join(map(str, key)) for key in by_dtypes)
        found = ", ".join(map(str, dtypes))
        ctx.fail(errors.InvalidValue, function, "args", f"of types {expected}", found)
    symbol, result = map(unwrap, by_dtypes[dtypes])
    found = _libdevice_function(str(symbol))
    if found is None:
        ctx.fail(
            errors.InvalidOperation,
            f"call '{symbol}'",
            "external functions are those of NVIDIA's libdevice: '__nv_sinf'",
            "write it in the language, or as tl.inline_asm_elementwise",
        )
    return cast_to(ctx, evaluate(ctx, lambda: found(*inputs)), result)


def _libdevice_function(symbol: str) -> Callable[..., Any] | None:
    """The function that NVIDIA's libdevice has as `symbol`: `__nv_sinf` and `__nv_sin` are sin."""
    name = re.match(r"__nv_(?P<stem>\w+?)(?P<rounding>_r[nzdu])?$", symbol)
    if name is None:
        return None
    stem, rounding = name["stem"], name["rounding"] or ""
    # f, d: the type of float, as prefix or suffix; ll: long integers
    stems = (stem, re.sub("[fd]$", "", stem), re.sub("^([fd]|ll)", "", stem))
    both = re.sub("^f|f$", "", stem)
    for found in (*stems, both):
        function = getattr(tl.extra.libdevice, found + rounding, None)
        if callable(function):
            return function
    return None


@implements(tl.inline_asm_elementwise)
def inline_asm_elementwise(
    ctx: Context,
    asm: object,
    constraints: object,
    args: object,
    dtype: object,
    is_pure: object,
    pack: object,
) -> Any:
    function = "inline_asm_elementwise"
    text = _text(ctx, function, "asm", asm)
    registers = _text(ctx, function, "constraints", constraints)
    items = constant_arguments.sequence(ctx, function, "args", args)
    inputs = _broadcast(ctx, function, items)
    shape = shape_of(inputs[0].type) if inputs else ()
    group = _pack(ctx, function, pack, shape)
    dtype = unwrap(dtype)
    many = isinstance(dtype, tuple | list)
    dtypes = cast("Sequence[object]", dtype if many else (dtype,))
    elements = [element_type(ctx, function, item) for item in dtypes]
    types = tuple(with_shape(element, shape) for element in elements)
    is_only_computed = constant_arguments.flag(ctx, function, "is_pure", is_pure)
    args = tuple(type_of(element_of(value.type)) for value in inputs)
    assembly = ptx.Assembly(text, registers, args, tuple(map(type_of, elements)), group)
    mistake = assembly.mistake()
    if mistake is not None:
        ctx.fail(errors.InvalidValue, function, "constraints", *mistake)
    if (wrong := wrong_assembly(text, registers)) is not None:
        ctx.fail(errors.InvalidValue, function, "asm", *wrong)
    if ctx.options.capability:
        op = AsmOp if is_only_computed else VolatileAsmOp
        results = ctx.emitter.emit(op(tuple(inputs), text, registers, types, group)).results
    else:
        results = _translated(ctx, inputs, assembly)
    if not many:
        return tensor(results[0])
    return tl.tuple([tensor(value) for value in results])


def _translated(ctx: Context, inputs: Sequence[Value], assembly: ptx.Assembly) -> Sequence[Value]:
    """Assembly for GPUs as a map in the language."""

    def body(scalars: list[tensor]) -> list[tensor]:
        try:
            return evaluate(ctx, lambda: ptx.translated(assembly, scalars))
        except errors.CompilationError as error:
            raise error.with_loc(ctx.loc) from None

    if not (inputs and shape_of(inputs[0].type)):
        return [x.handle for x in body([tensor(value) for value in inputs])]
    types = [element_of(value.type) for value in inputs for _ in range(assembly.pack)]
    why = "the assembly", "it is computed for each element, in any order"
    region = function_region(ctx, types, body, why)
    return ctx.emitter.emit(MapOp(tuple(inputs), region, assembly.pack)).results


def _text(ctx: Context, function: str, name: str, value: object) -> str:
    value = unwrap(value)
    if not isinstance(value, str):
        ctx.fail(errors.InvalidValue, function, name, "a string", describe(value))
    return value
