from tilewright.compiler.argument_notation import (
    StatedArgument,
    argument_text,
    is_argument_text,
    parse_argument,
)
from tilewright.compiler.artifacts import Artifacts
from tilewright.compiler.compile import (
    CompileTimes,
    compile,
    compile_kernel,
    compile_source,
    frontend_options,
    options_of,
    rehearse,
)
from tilewright.compiler.compile_jobs import result_stream, run_job
from tilewright.compiler.compiled_kernel import CompiledKernel
from tilewright.compiler.far_compiler import FarCompiler
from tilewright.compiler.kernel_archive import export_kernels, import_kernels
from tilewright.compiler.kernel_metadata import KernelMetadata
from tilewright.compiler.kernel_store import (
    Entry,
    Store,
    package_content,
    package_version,
    shared_store,
)
from tilewright.compiler.parallel_compile import (
    Started,
    compile_many,
    start_compilations,
    started_calls,
)
from tilewright.compiler.sources import (
    NON_NEGATIVE,
    ASTSource,
    Compilable,
    IRSource,
    KernelSource,
    Language,
    PythonKernel,
    Specialization,
    signature_text,
    specialization_of,
)
from tilewright.compiler.type_names import (
    DescriptorType,
    find_descriptor_type,
    find_type,
    is_type_name,
    name_of_type,
    type_named,
)
from tilewright.compiler.written_arguments import accessed_arguments, stored_arguments

__all__ = [
    "NON_NEGATIVE",
    "ASTSource",
    "Artifacts",
    "Compilable",
    "DescriptorType",
    "CompileTimes",
    "CompiledKernel",
    "Entry",
    "FarCompiler",
    "IRSource",
    "KernelMetadata",
    "KernelSource",
    "Language",
    "PythonKernel",
    "Specialization",
    "Started",
    "StatedArgument",
    "Store",
    "accessed_arguments",
    "argument_text",
    "compile",
    "compile_kernel",
    "compile_many",
    "compile_source",
    "export_kernels",
    "find_descriptor_type",
    "find_type",
    "frontend_options",
    "is_argument_text",
    "import_kernels",
    "is_type_name",
    "name_of_type",
    "options_of",
    "package_content",
    "package_version",
    "parse_argument",
    "rehearse",
    "result_stream",
    "run_job",
    "shared_store",
    "signature_text",
    "specialization_of",
    "start_compilations",
    "started_calls",
    "stored_arguments",
    "type_named",
]
