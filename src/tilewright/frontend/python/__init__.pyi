from tilewright.frontend.kernel_signature import ArgSpec, KernelSignature, descriptor_spec
from tilewright.frontend.python.captured_names import Environment
from tilewright.frontend.python.function_source import (
    FunctionSource,
    source_of,
)
from tilewright.frontend.python.lower.control_flow_joins import as_joined, joinable
from tilewright.frontend.python.lower.expressions import undefined_local, unknown_attribute
from tilewright.frontend.python.lower.function_frame import Session
from tilewright.frontend.python.lower.inlining import call_signature, is_constexpr_annotation
from tilewright.frontend.python.lower.iterables import constant_range
from tilewright.frontend.python.lower.kernel_lowering import inline_call, lower_kernel
from tilewright.frontend.python.lower.language_values import (
    as_tuple,
    cannot_unpack,
    describe,
    is_static,
    is_tuple,
    tuple_like,
    type_of_value,
)
from tilewright.frontend.python.lower.loop_carried import changed_in_loop
from tilewright.frontend.python.lower.operator_precedence import misread_chain, warn_of_precedence
from tilewright.frontend.python.lower.python_builtins import at_compile_time, refuse_reduction
from tilewright.frontend.python.lower.strict_triton import refuse_extensions
from tilewright.frontend.python.lower.syntax_queries import assigned_in, local_names
from tilewright.frontend.python.lower.truth_values import (
    COMPARISON_NAMES,
    apply_operator,
    compare_values,
    logical_connective,
    logical_not,
    short_circuits,
)
from tilewright.frontend.python.operand_hints import advise_operands
from tilewright.frontend.python.read_order import early_reads
from tilewright.frontend.python.replaced_text import function_of_text
from tilewright.frontend.python.source_dependencies import (
    CONTAINERS,
    Dependencies,
    UsedGlobal,
    dependencies,
)

__all__ = [
    "CONTAINERS",
    "COMPARISON_NAMES",
    "ArgSpec",
    "Dependencies",
    "Environment",
    "FunctionSource",
    "KernelSignature",
    "Session",
    "UsedGlobal",
    "apply_operator",
    "as_joined",
    "as_tuple",
    "assigned_in",
    "advise_operands",
    "at_compile_time",
    "refuse_reduction",
    "call_signature",
    "cannot_unpack",
    "changed_in_loop",
    "compare_values",
    "dependencies",
    "descriptor_spec",
    "describe",
    "inline_call",
    "is_constexpr_annotation",
    "is_static",
    "is_tuple",
    "joinable",
    "constant_range",
    "local_names",
    "logical_connective",
    "logical_not",
    "lower_kernel",
    "misread_chain",
    "early_reads",
    "refuse_extensions",
    "short_circuits",
    "function_of_text",
    "source_of",
    "tuple_like",
    "type_of_value",
    "undefined_local",
    "unknown_attribute",
    "warn_of_precedence",
]
