"""Entry points: lowering of a kernel to a module of tile IR, and of a function's call to ops."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, cast

from tilewright.frontend.kernel_signature import ArgSpec, KernelSignature
from tilewright.frontend.python.lower import (
    branches,
    calls,
    expressions,
    loops,
    nested_functions,
    operators,
    statements,
)
from tilewright.frontend.python.lower.function_frame import FunctionFrame, Session
from tilewright.frontend.python.lower.inlining import (
    Parameters,
    inline,
    is_constexpr_annotation,
    lower_body,
    with_defaults,
)
from tilewright.frontend.python.lower.language_values import (
    describe,
    is_static,
    is_tuple,
    static_value,
    tuple_like,
    wrap,
)
from tilewright.frontend.python.operand_hints import advise_operands
from tilewright.frontend.semantics import (
    Context,
    FrontendOptions,
    as_offset,
    described_array,
    offset_dtype,
)
from tilewright.frontend.typed_numbers import converted
from tilewright.ir import Block, Builder, Function, Module
from tilewright.ir.types import DType
from tilewright.language import DeviceFunction, constexpr, tensor
from tilewright.ops import ReturnOp
from tilewright.support import TilewrightError, errors

HANDLER_MODULES = (branches, calls, expressions, loops, nested_functions, operators, statements)
"""The modules that fill the tables of handlers; in any order."""


class Inliner:
    """Calls of language functions for the semantics: the combine function of a reduction."""

    session: Session

    def call(
        self, ctx: Context, fn: DeviceFunction, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """The value that the call returns, its ops emitted through `ctx`."""
        return inline_call(self.session, fn, args, kwargs)


def inline_call(
    session: Session, fn: DeviceFunction, args: Sequence[object], kwargs: Mapping[str, object]
) -> object:
    """As `inline`, for arguments that may be plain Python values.

    `interpret=True` uses it for combine functions of reductions, which are IR although the kernel
    itself runs as Python. Raises SourceNotAvailable.
    """
    named = {key: wrap(value) for key, value in kwargs.items()}
    return inline(session, fn, [wrap(arg) for arg in args], named, session.ctx.loc)


def lower_kernel(
    fn: DeviceFunction, signature: KernelSignature, options: FrontendOptions
) -> Module:
    """Compile a Python function to tile IR.

    The function of the module takes the run-time arguments of the signature, tuples flattened,
    under their names. Raises a CompilationError with the user's line for a mistake in the kernel.
    """
    body = Block()
    inliner = Inliner()
    ctx = Context(Builder(body), options, inliner)
    inliner.session = Session(ctx)
    frame = FunctionFrame(inliner.session, fn)
    loc = frame.header()
    ctx.emitter.loc = loc
    given: Parameters = {}
    try:
        given = _parameters(frame, fn, signature, body)
        frame.scope.update(given)
        result, node = lower_body(frame, fn)
    except TilewrightError as error:
        # Errors in the arguments have no node; they are reported at the `def` line.
        advise_operands(error, given)
        raise error.with_loc(loc) from error.__cause__
    # A kernel may only `return` or `return None`.
    if node is not None and not (is_static(result) and static_value(result) is None):
        operation, instead = f"return {describe(result)}", "store it through a pointer parameter"
        frame.fail(node, errors.InvalidOperation(operation, "kernels have no result", instead))
    ctx.emitter.emit(ReturnOp())
    return Module((Function(fn.__name__, body, loc=loc),))


def _parameters(
    frame: FunctionFrame, fn: DeviceFunction, signature: KernelSignature, body: Block
) -> Parameters:
    """The values of all parameters; run-time ones become arguments of `body`."""
    arguments = frame.source.tree.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    keyword_only = [a.arg for a in arguments.kwonlyargs]
    parameters = {*positional, *keyword_only}
    if arguments.vararg is not None:
        parameters.add(arguments.vararg.arg)
    bound: Parameters = {}
    further: Parameters = {}
    for spec in signature.args:
        if spec.name not in parameters and arguments.kwarg is None:
            raise errors.UnknownArgument(fn.__name__, spec.name, sorted(parameters))
        value = _argument(frame.ctx, spec, body, spec.name)
        (bound if spec.name in parameters else further)[spec.name] = value
    if arguments.kwarg is not None:
        bound[arguments.kwarg.arg] = further
    with_defaults(fn, positional, keyword_only, bound)
    _check_constexprs(fn, arguments, bound)
    return bound


def _check_constexprs(
    function: DeviceFunction, arguments: ast.arguments, bound: Parameters
) -> None:
    """Check that parameters annotated `constexpr` have compile-time values."""
    for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if parameter.annotation is None or not is_constexpr_annotation(parameter.annotation):
            continue
        value = bound[parameter.arg]
        if not is_static(value):
            what = f"argument '{parameter.arg}' of {function.__name__}()"
            raise errors.NotConstexpr(what, describe(value))


def _argument(ctx: Context, spec: ArgSpec, body: Block, name: str) -> object:
    """The language value of one argument."""
    if spec.kind == "tuple":
        items = [_argument(ctx, item, body, f"{name}_{i}") for i, item in enumerate(spec.items)]
        return tuple_like(spec.value, items)
    if spec.kind == "descriptor":
        items = [_value(ctx, item, body, item.name) for item in spec.items]
        block, padding = cast("tuple[tuple[int, ...], str]", spec.value)
        return described_array(ctx, cast("list[tensor]", items), block, padding)
    value = _value(ctx, spec, body, name)
    return as_offset(ctx, value) if isinstance(value, tensor) else value


def _value(ctx: Context, spec: ArgSpec, body: Block, name: str) -> object:
    if spec.kind == "constexpr":
        value = spec.value
        # An integer argument that is 1 is a constant with the dtype of other values.
        if isinstance(spec.type, DType):
            return constexpr(converted(cast("int", value), offset_dtype(ctx, spec.type)))
        sequence = is_tuple(value) or isinstance(value, list)
        return wrap(cast("object", value)) if sequence else constexpr(value)
    assert spec.type is not None, f"argument {name} has no type"
    value = body.add_arg(spec.type, name)
    value.facts = dict(spec.facts) or None
    return tensor(value)
