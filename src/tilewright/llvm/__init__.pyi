from .code_generation import (
    LlvmError,
    compile_ir,
    emit_assembly,
    is_long,
    leave_out_passes,
)
from .code_targets import (
    CPU_NAMES,
    TargetCpu,
    TargetSpec,
    cpu_named,
    cpu_target,
    host_cpu,
    host_target,
    llvm_version,
    width_attributes,
)
from .debug_lines import LINE_DIRECTIVES, LINE_TABLES, DebugLines
from .ir_emitter import (
    LLVM_FLOATS,
    Code,
    ModuleText,
    Val,
    float_text,
    integer_literal,
    llvm_type,
    mangle,
    splat_constant,
    vector_of,
    zero_of,
)
from .line_tables import LineTable, line_table
from .object_directives import (
    assembler_directives,
    used_conversions,
    windows_target,
)
from .object_loader import CONVERSION_SYMBOLS, LoadedObject, load_object
from .scalar_instructions import (
    constant,
    convert_element,
    divide_integers,
    is_saturating,
    lower_elementwise,
)
from .scalar_instructions import rule as lowering_rule
from .shared_library import link_shared_library
from .target_machines import data_layout, target_machine

__all__ = [
    "CONVERSION_SYMBOLS",
    "CPU_NAMES",
    "LINE_DIRECTIVES",
    "LINE_TABLES",
    "LLVM_FLOATS",
    "LineTable",
    "Code",
    "DebugLines",
    "LlvmError",
    "LoadedObject",
    "ModuleText",
    "TargetCpu",
    "TargetSpec",
    "Val",
    "compile_ir",
    "constant",
    "convert_element",
    "cpu_named",
    "cpu_target",
    "data_layout",
    "divide_integers",
    "emit_assembly",
    "float_text",
    "host_cpu",
    "host_target",
    "integer_literal",
    "is_long",
    "leave_out_passes",
    "line_table",
    "link_shared_library",
    "llvm_type",
    "llvm_version",
    "load_object",
    "is_saturating",
    "lower_elementwise",
    "lowering_rule",
    "mangle",
    "assembler_directives",
    "splat_constant",
    "target_machine",
    "used_conversions",
    "vector_of",
    "width_attributes",
    "windows_target",
    "zero_of",
]
