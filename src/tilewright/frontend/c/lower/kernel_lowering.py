"""The entry: lower a kernel of a parsed source, with the description of its arguments."""

from __future__ import annotations

from math import lcm

from tilewright.frontend.c import syntax
from tilewright.frontend.c.c_parameters import KernelParameter, parameters_of
from tilewright.frontend.c.c_parser import ParsedSource
from tilewright.frontend.c.lower import (
    assignments,
    calls,
    dereferences,
    expressions,
    loops,
    statement_sequence,
    subscripts,
)
from tilewright.frontend.c.lower.c_hints import HINTS
from tilewright.frontend.c.lower.function_frame import FunctionFrame, Session, Variable
from tilewright.frontend.c.preprocess import expansion_notes, location
from tilewright.frontend.frontend_options import FrontendOptions
from tilewright.frontend.kernel_signature import ArgSpec, KernelSignature
from tilewright.frontend.semantics import Context, constant
from tilewright.ir import Block, Builder, Function, Module
from tilewright.ir.types import DType
from tilewright.language import tensor
from tilewright.ops import ReturnOp
from tilewright.support import TilewrightError, errors

HANDLER_MODULES = (
    assignments,
    calls,
    expressions,
    loops,
    dereferences,
    statement_sequence,
    subscripts,
)
"""The modules that fill the tables of handlers."""


def lower_kernel(
    parsed: ParsedSource,
    kernel: syntax.Function,
    signature: KernelSignature,
    options: FrontendOptions,
) -> Module:
    """Compile one kernel of a source to tile IR.

    signature: one entry for each parameter, in order: a value, or the constexpr 1 of an integer
    that is specialized. The types are those of the declarations. Raises a CompilationError with
    the user's line, and the macros from which it comes.
    """
    body = Block()
    inliner = calls.Inliner()
    ctx = Context(Builder(body), options, inliner)
    session = inliner.session = Session(ctx, parsed.program, parsed.defines)
    frame = FunctionFrame(session, kernel)
    loc = location(kernel.span, kernel.name)
    ctx.emitter.loc = loc
    try:
        calls.declare_constants(frame)
        # A nested scope: parameters may hide constants of the file.
        frame.scopes.append({})
        _bind(frame, parsed, kernel, signature, body)
        calls.lower_body(frame)
        ctx.emitter.emit(ReturnOp())
    except TilewrightError as problem:
        raise _located(problem, session, parsed) from problem.__cause__
    except RecursionError:
        # Each level of inlining takes a dozen frames, in addition to the user's stack.
        problem = errors.NestedTooDeeply("what is inlined here")
        raise _located(problem, session, parsed) from None
    return Module((Function(kernel.name, body, loc=loc),))


def _bind(
    frame: FunctionFrame,
    parsed: ParsedSource,
    kernel: syntax.Function,
    signature: KernelSignature,
    body: Block,
) -> None:
    """Bind parameters to variables; run-time ones become arguments of `body`."""
    parameters = parameters_of(parsed, kernel)
    if len(parameters) != len(signature.args):
        raise errors.ArgumentCount(kernel.name, len(parameters), len(signature.args))
    for parameter, spec in zip(parameters, signature.args, strict=True):
        variable = Variable(
            parameter.name,
            parameter.type,
            fixed=parameter.fixed,
            write_only=parameter.write_only,
        )
        frame.set(frame.declare(variable), _argument(frame, parameter, spec, body))


def _argument(
    frame: FunctionFrame, parameter: KernelParameter, spec: ArgSpec, body: Block
) -> tensor:
    type_ = parameter.type
    if spec.kind == "constexpr":
        # A specialized 1 keeps the declared type; C has no constexpr parameters.
        assert isinstance(type_, DType) and isinstance(spec.value, int | float)
        return tensor(constant(frame.ctx, spec.value, type_))
    assert spec.type is type_, f"{parameter.name}: {spec.type} for {type_}"
    value = body.add_arg(type_, parameter.name)
    # Declared and observed divisors both hold, and so does their least common multiple.
    facts = {name: lcm(amount, spec.facts.get(name, 1)) for name, amount in parameter.facts.items()}
    value.facts = {**spec.facts, **facts} or None
    return tensor(value)


def _located(problem: TilewrightError, session: Session, parsed: ParsedSource) -> TilewrightError:
    """Add the location to an error, and hints in terms of C."""
    notes = problem.notes
    if session.span is not None:
        notes = (*notes, *expansion_notes(session.span, session.defines))
    # dict.fromkeys: an error located twice has the same notes twice.
    problem.notes = tuple(dict.fromkeys(notes))
    if problem.advice is None:
        problem.advice = HINTS.get(type(problem))
    return problem.with_loc(session.ctx.loc, parsed.source.lines)
