"""From a source to a compiled kernel: the stages of a backend, run in order."""

from tilewright.compiler.compile import compile, compile_kernel, frontend_options, options_of
from tilewright.compiler.kernel import Artifacts, CompiledKernel
from tilewright.compiler.sources import ASTSource, value_text
from tilewright.compiler.type_names import find_type, name_of_type, type_named

__all__ = [
    "ASTSource",
    "Artifacts",
    "CompiledKernel",
    "compile",
    "compile_kernel",
    "find_type",
    "frontend_options",
    "name_of_type",
    "options_of",
    "type_named",
    "value_text",
]
