"""The kernels of a source, and the declarations of their parameters."""

from __future__ import annotations

from dataclasses import field

from tilewright.frontend.c import syntax
from tilewright.frontend.c.c_parser import ParsedSource
from tilewright.frontend.c.c_types import READ_ONLY, c_spelling, scalar_type
from tilewright.frontend.c.preprocess import location
from tilewright.ir.types import DType, PointerType, Scalar, i32
from tilewright.support import errors
from tilewright.support.data_class import dataclass

_AMOUNTS = f"an integer from 1 to {i32.max_int:,}"
"""Valid amounts of `__aligned` and `__multipleof`, as for the facts of tile IR."""


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """One parameter of a kernel.

    facts: `aligned` (bytes) and `multiple_of`, as declared; write_only: declared `__writeonly`;
    fixed: declared `const` itself, not what it points to.
    """

    name: str
    type: Scalar
    facts: dict[str, int] = field(default_factory=dict[str, int])
    write_only: bool = False
    fixed: bool = False


def _kernels_of(parsed: ParsedSource) -> list[syntax.Function]:
    """The functions declared `__global__`; without any, those that return `void`."""
    functions = parsed.program.functions
    # `__global__` is optional: a source of a single void function needs no mark.
    marked = [function for function in functions if function.is_kernel]
    return marked or [
        f for f in functions if f.type.specifiers == ("void",) and not f.type.pointers
    ]


def kernel_named(parsed: ParsedSource, name: str | None) -> syntax.Function:
    """The kernel with a name, or the only one. Errors: KernelNotFound, AmbiguousKernel."""
    kernels = _kernels_of(parsed)
    names = tuple(function.name for function in kernels)
    source = parsed.source.name
    if name is not None:
        chosen = [function for function in kernels if function.name == name]
        if not chosen:
            raise errors.KernelNotFound(f"'{name}'", source, names)
        return chosen[0]
    if not kernels:
        raise errors.KernelNotFound("at all", source)
    if len(kernels) > 1:
        raise errors.AmbiguousKernel(source, names)
    return kernels[0]


def parameters_of(parsed: ParsedSource, kernel: syntax.Function) -> tuple[KernelParameter, ...]:
    """The parameters of a kernel in order. Errors: CSyntaxError, InvalidValue, InvalidOperation."""
    try:
        if kernel.type.specifiers != ("void",) or kernel.type.pointers:
            error = errors.CSyntaxError("'void' before the name of a kernel", "another type")
            raise error.with_loc(location(kernel.span, kernel.name))
        return tuple(_parameter(kernel, node) for node in kernel.parameters)
    except errors.CompilationError as problem:
        raise problem.with_loc(None, parsed.source.lines) from None


def _parameter(kernel: syntax.Function, node: syntax.Parameter) -> KernelParameter:
    qualifiers = {attribute.name for attribute in node.attributes}
    qualifiers |= {word for pointer in node.type.pointers for word in pointer}
    qualifiers |= set(node.type.qualifiers)
    try:
        # A leading `const` of the type is read by scalar_type itself; here count the attributes.
        type_ = scalar_type(node.type, not READ_ONLY.isdisjoint(qualifiers - {"const"}))
        if node.extents:
            instead = "pass a pointer, and load the tile"
            raise errors.CSyntaxError("a number or a pointer", f"the tile '{node.name}'", instead)
        if type_ is None:
            raise errors.CSyntaxError("a type with values", "'void'")
        facts = _facts(node, type_)
    except errors.CompilationError as problem:
        raise problem.with_loc(location(node.span, kernel.name)) from None
    return KernelParameter(node.name, type_, facts, "__writeonly" in qualifiers, node.type.is_fixed)


def _facts(node: syntax.Parameter, type_: Scalar) -> dict[str, int]:
    facts: dict[str, int] = {}
    pointer = isinstance(type_, PointerType)
    for attribute in node.attributes:
        if attribute.amount is None:
            continue
        amount = attribute.amount
        if not isinstance(amount, syntax.Number) or not isinstance(amount.value, int):
            found_words = "another expression"
            raise errors.InvalidValue(attribute.name, "amount", _AMOUNTS, found_words)
        if not 1 <= amount.value <= i32.max_int:
            raise errors.InvalidValue(attribute.name, "amount", _AMOUNTS, amount.value)
        if pointer is not (attribute.name == "__aligned"):
            kind = "a pointer" if pointer else "a number"
            operation = f"declare {kind} {attribute.name}"
            reason = "pointers are __aligned(bytes), integers are __multipleof(n)"
            raise errors.InvalidOperation(operation, reason)
        if isinstance(type_, DType) and not type_.is_integer:
            operation = f"declare a {c_spelling(type_)} {attribute.name}"
            raise errors.InvalidOperation(operation, "only integers are multiples of a number")
        facts["aligned" if pointer else "multiple_of"] = amount.value
    return facts
