"""The boundary to LLVM: the only package that imports llvmlite."""

from .jit import LoadedObject, load_object
from .optimize import DEFAULT_LEVEL, CompiledObject, LlvmError, compile_ir, emit_assembly
from .target import HostCpu, TargetSpec, data_layout, host_cpu, host_target, target_machine

__all__ = [
    "DEFAULT_LEVEL",
    "CompiledObject",
    "HostCpu",
    "LlvmError",
    "LoadedObject",
    "TargetSpec",
    "compile_ir",
    "data_layout",
    "emit_assembly",
    "host_cpu",
    "host_target",
    "load_object",
    "target_machine",
]
