"""Python syntax trees to tile IR. Entry: `lower_kernel`."""

from tilewright.frontend.python.lower.control_flow_joins import as_joined, joinable
from tilewright.frontend.python.lower.inlined_call import inline_call
from tilewright.frontend.python.lower.inlining import is_constexpr_annotation
from tilewright.frontend.python.lower.iterables import known_range
from tilewright.frontend.python.lower.kernel_lowering import lower_kernel
from tilewright.frontend.python.lower.language_values import (
    as_tuple,
    cannot_unpack,
    describe,
    is_static,
    is_tuple,
    like,
    static,
)
from tilewright.frontend.python.lower.operator_precedence import misread_chain, warn_of_precedence
from tilewright.frontend.python.lower.python_builtins import at_compile_time
from tilewright.frontend.python.lower.syntax_queries import assigned_in, local_names
from tilewright.frontend.python.lower.truth_values import (
    SYMBOLS,
    combined,
    compared,
    connected,
    decides,
    negated,
)

__all__ = [
    "SYMBOLS",
    "as_joined",
    "as_tuple",
    "assigned_in",
    "at_compile_time",
    "cannot_unpack",
    "combined",
    "compared",
    "connected",
    "decides",
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
    "static",
    "warn_of_precedence",
]
