"""The table of Triton's modules: their names in this package, and why others are missing.

A row consists of texts: "package.module" means all public names of one of our modules, and
"package.module: name other=ours" some of them, `other` being Triton's name of `ours`. A name that
our module does not have is missing, even if a row contains it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.support import errors
from tilewright.support.data_class import dataclass

ROOT = "triton"
TRITON_VERSION = "3.6.0"
"""`triton.__version__`, which programs compare as text and as numbers."""


@dataclass(frozen=True, slots=True)
class Row:
    """The contents of a module. names: name -> "module:attribute"; whole: modules all of whose
    public names it has; instance: "module:attribute" of an object all of whose attributes it has;
    itself: the module of ours that it is, so that assignments to it have an effect; is_command:
    whether `python -m` runs it."""

    names: Mapping[str, str]
    whole: tuple[str, ...]
    instance: str
    itself: str = ""
    is_command: bool = False


def _row(*texts: str, instance: str = "") -> Row:
    names: dict[str, str] = {}
    whole: list[str] = []
    for text in texts:
        module, _, listed = text.partition(": ")
        if not listed:
            whole.append(f"tilewright.{module}")
        for word in listed.split():
            name, _, ours = word.partition("=")
            names[name] = f"tilewright.{module}:{ours or name}"
    return Row(names, tuple(whole), instance)


def _itself(module: str) -> Row:
    return Row({}, (f"tilewright.{module}",), "", f"tilewright.{module}")


def _command(module: str) -> Row:
    return Row({}, (f"tilewright.{module}",), "", f"tilewright.{module}", is_command=True)


def _with_modules(row: Row, **modules: str) -> Row:
    """A row with whole modules as names."""
    return Row({**row.names, **modules}, row.whole, row.instance)


_ERRORS = "support.errors: "
_HERE = "triton_alias."
_TUNERS = "runtime: Autotuner Config Heuristics autotune heuristics"
_KERNELS = "runtime: JITFunction KernelInterface MockTensor TensorWrapper reinterpret"
_LAUNCH_ERRORS = _ERRORS + "InterpreterError OutOfResources"
_COMPILE = _HERE + "compiled_files: compile"
_COMPILER = "compiler: CompiledKernel IRSource"
_SOURCE = _HERE + "memory_accesses: ASTSource"
_LAZY = "runtime: LazyDict=LaunchMetadata"
_MANAGERS = _HERE + "cache_managers: "
_BACKENDS = _HERE + "backend_classes: "

MODULES: dict[str, Row] = {
    "triton": _row(
        "runtime: Config JITFunction KernelInterface MockTensor TensorWrapper autotune cdiv "
        "heuristics jit next_power_of_2 reinterpret set_allocator AsyncCompileMode FutureKernel",
        _COMPILE,
        "runtime: constexpr_function=ConstexprFunction",
        "language: aggregate must_use_result",
        _LAUNCH_ERRORS,
        _ERRORS + "CompilationError TritonError=TilewrightError",
    ),
    "triton.errors": _row(_ERRORS + "TritonError=TilewrightError"),
    "triton.knobs": _itself(_HERE + "knobs"),
    "triton._utils": _row(_HERE + "argument_paths"),
    "triton._internal_testing": _row(_HERE + "test_helpers", _HERE + "test_helpers: requires_tma"),
    "triton._C": _row(),
    "triton._C.libtriton": _row("support: getenv=environment_text getenv_bool=environment_flag"),
    "triton._C.libtriton.ir": _row(_HERE + "memory_accesses: context load_dialects"),
    "triton.testing": _row("testing"),
    "triton.profiler": _row(_HERE + "profiler"),
    "triton.profiler.viewer": _row(_HERE + "profile_viewer: parse print_tree"),
    # --- the language -------------------------------------------------------------------------
    "triton.language": _row(
        "language", "language: tensor_descriptor_type", _HERE + "named_types: str_to_ty"
    ),
    "triton.language.core": _row(
        "language.core", "language", "language: _aggregate=aggregate _tensor_member_fn=member",
        "language: _DtypeClass=dtype base_value get_int_dtype is_builtin tensor_descriptor_type",
        _HERE + "named_types: str_to_ty",
        _HERE + "user_builtins: builtin extern=builtin",
        _HERE + "argument_paths: validate_block_shape get_primitive_bitwidth",
    ),
    "triton.language.math": _row("language.math"),
    "triton.language.standard": _row(
        "language.standard",
        "language: bitonic_merge cdiv flip interleave ravel sigmoid softmax sort squeeze swizzle2d "
        "topk unsqueeze zeros zeros_like",
    ),
    "triton.language.random": _row("language.random"),
    "triton.language.semantic": _row(),
    "triton.language.target_info": _row("language.target_info"),
    "triton.language.extra": _row(),
    "triton.language.extra.libdevice": _row("language.extra.libdevice"),
    "triton.language.extra.cuda": _row("language.extra.cuda"),
    "triton.language.extra.cuda.libdevice": _row("language.extra.libdevice"),
    "triton.language.extra.cuda.gdc": _row(
        "language.extra.cuda: gdc_launch_dependents gdc_wait"
    ),
    "triton.language.extra.cuda.utils": _row("language.extra.cuda"),
    "triton.language.extra.hip": _row(),
    "triton.language.extra.hip.libdevice": _row("language.extra.libdevice"),
    # --- the host -----------------------------------------------------------------------------
    "triton.runtime": _row(
        _TUNERS, _KERNELS, "runtime: driver", _LAUNCH_ERRORS,
        _HERE + "cache_managers: RedisRemoteCacheBackend RemoteCacheBackend",
    ),
    "triton.runtime.jit": _row(
        _KERNELS, "runtime: KernelParam jit ConstexprFunction constexpr_function=ConstexprFunction",
        "runtime: JITCallable=FunctionText",
        "language: TensorDescriptor",
        _HERE + "argument_paths: T=AnyType get_full_name get_jit_fn_file_line is_namedtuple",
        _HERE + "argument_paths: find_paths_if get_iterable_path type_canonicalisation_dict",
        "runtime: driver JitFunctionInfo",
        _HERE + "memory_accesses: mangle_type native_specialize_impl",
    ),
    "triton.runtime.autotuner": _row(
        _TUNERS, "runtime: JITFunction KernelInterface driver",
        _ERRORS + "AutotunerError OutOfResources PTXASError", _MANAGERS + "get_cache_manager",
        _HERE + "torch_version: triton_key",
    ),
    "triton.runtime.driver": _row(
        "runtime: driver", _BACKENDS + "_create_driver=default_driver DriverBase backends",
        instance="tilewright.runtime:driver",
    ),
    "triton.runtime.cache": _with_modules(
        _row(
            _HERE + "cache_managers", _HERE + "torch_version: triton_key",
            _HERE + "argument_paths: _base32=path_key",
        ),
        knobs="triton.knobs",
    ),
    "triton.runtime.errors": _row(
        _LAUNCH_ERRORS, _ERRORS + "AutotunerError PTXASError TritonError=TilewrightError"
    ),
    "triton.runtime.interpreter": _row(
        "runtime: InterpretedFunction", _ERRORS + "InterpreterError"
    ),
    "triton.runtime.build": _row(),
    "triton.runtime._allocation": _row(
        "runtime.scratch_allocator: _allocator=ALLOCATOR", "runtime.scratch_allocator"
    ),
    "triton.runtime._async_compile": _row("runtime: AsyncCompileMode FutureKernel active_mode"),
    "triton.compiler": _row(
        _COMPILER, _COMPILE, _SOURCE, _LAZY, _ERRORS + "CompilationError",
        _BACKENDS + "make_backend", _MANAGERS + "get_cache_key",
    ),
    "triton.compiler.compiler": _row(
        _COMPILER, _COMPILE, _SOURCE, _LAZY, _ERRORS + "CompilationError",
        _HERE + "torch_version: triton_key",
        _BACKENDS + "make_backend max_shared_mem backends BaseBackend GPUTarget Language",
        "runtime: driver", _ERRORS + "OutOfResources",
        _MANAGERS + "get_cache_key get_cache_manager get_dump_manager get_override_manager",
    ),
    "triton.compiler.errors": _row(
        _ERRORS + "CompilationError CompileTimeAssertionFailure UnsupportedLanguageConstruct",
        _ERRORS + "TritonError=TilewrightError",
    ),
    "triton.compiler.code_generator": _row(
        _ERRORS + "CompilationError CompileTimeAssertionFailure UnsupportedLanguageConstruct"
    ),
    "triton.backends": _row(_BACKENDS + "Backend=TritonBackend BaseBackend DriverBase backends"),
    "triton.backends.compiler": _row(_BACKENDS + "BaseBackend GPUTarget Language"),
    "triton.backends.driver": _row(_BACKENDS + "Benchmarker DriverBase GPUDriver"),
    "triton.backends.nvidia": _row(),
    "triton.backends.nvidia.compiler": _row(
        _BACKENDS + "CUDABackend GPUTarget min_dot_size BaseBackend", _ERRORS + "PTXASError",
    ),
    "triton.backends.nvidia.driver": _row(_BACKENDS + "CudaDriver CudaUtils"),
    "triton.tools": _row(),
    "triton.tools.compile": _command(_HERE + "aot_compile_tool"),
    "triton.tools.link": _command(_HERE + "aot_link_tool"),
    "triton.tools.tensor_descriptor": _row("language: TensorDescriptor"),
    "triton.tools.mxfp": _row(_HERE + "mxfp: MXFP4Tensor MXScaleTensor"),
    "triton.tools.disasm": _itself(_HERE + "disassembly"),
    "triton.tools.ragged_tma": _row("kernels.ragged_descriptors"),
}  # fmt: skip

_REFUSED = (
    ("triton._C.libtriton", "the bindings of MLIR and LLVM; Tilewright has its own tile IR"),
    ("triton._filecheck", "helpers of Triton's own tests"),
    ("triton.experimental.gluon", "Gluon, kernels with explicit layouts, is in tier C"),
    ("triton.experimental", "experimental packages, as Gluon, are in tier C"),
    ("triton.instrumentation", "instrumentation of MLIR is in tier C"),
    ("triton.profiler", "of Proton, sessions with data='trace' are here"),
    ("triton.compiler.code_generator", "the generator of MLIR; kernels are lowered to tile IR"),
    ("triton.language.semantic", "operations are defined on tile IR, not on a builder of MLIR"),
    ("triton.runtime.interpreter", "the interpreter differs: jit(interpret=True)"),
    ("triton.runtime.jit", "arguments are specialized differently"),
    ("triton.testing", "setting a device's clocks is in tier C"),
    ("triton.language.target_info", "the target is known while a kernel is compiled"),
    ("triton.runtime.build", "nothing is compiled by a C compiler at run time"),
    ("triton.backends.nvidia", "the back end for NVIDIA differs"),
    ("triton.backends", "back ends and their classes differ: docs/howto/add-a-backend.md"),
    ("triton.tools", "the builder of external libraries is in tier C"),
    ("triton.language.extra.cuda", "some functions that only NVIDIA's GPUs have are missing"),
    ("triton.language.extra", "Triton 3.6 has cuda and hip, of which hip is in tier C"),
    ("triton.language", "the language has no such name (yet)"),
)  # fmt: skip
"""Prefixes of names, and their row of Triton's surface; the first match counts."""


def refusal(wanted: str) -> errors.MissingInTriton:
    """The error for a module, or a name in one, that is not in the table."""
    for beginning, reason in _REFUSED:
        if wanted == beginning or wanted.startswith(beginning + "."):
            return errors.MissingInTriton(wanted, reason)
    return errors.MissingInTriton(wanted, f"it has no counterpart here (Triton {TRITON_VERSION})")
