"""The Python front end: finds the source of a kernel and lowers its syntax tree to tile IR.

The interpreter takes from here what constructs of Python mean in a kernel: `compared`, `connected`,
`negated` and the facts of syntax trees.
"""

from tilewright.frontend.kernel_signature import ArgSpec, KernelSignature
from tilewright.frontend.python.function_source import FunctionSource, source_of
from tilewright.frontend.python.lower import (
    SYMBOLS,
    as_joined,
    as_tuple,
    assigned_in,
    at_compile_time,
    cannot_unpack,
    combined,
    compared,
    connected,
    decides,
    describe,
    inline_call,
    is_constexpr_annotation,
    is_static,
    is_tuple,
    joinable,
    known_range,
    like,
    local_names,
    lower_kernel,
    misread_chain,
    negated,
    static,
    warn_of_precedence,
)
from tilewright.frontend.python.source_dependencies import Dependencies, UsedGlobal, dependencies

__all__ = [
    "SYMBOLS",
    "ArgSpec",
    "Dependencies",
    "FunctionSource",
    "KernelSignature",
    "UsedGlobal",
    "as_joined",
    "as_tuple",
    "assigned_in",
    "at_compile_time",
    "cannot_unpack",
    "combined",
    "compared",
    "connected",
    "decides",
    "dependencies",
    "describe",
    "inline_call",
    "is_constexpr_annotation",
    "is_static",
    "is_tuple",
    "joinable",
    "known_range",
    "like",
    "local_names",
    "lower_kernel",
    "misread_chain",
    "negated",
    "source_of",
    "static",
    "warn_of_precedence",
]
