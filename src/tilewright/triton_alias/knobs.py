"""`triton.knobs`: Triton's switches as attributes, in groups, over the settings of this package.

The module itself is `triton.knobs`. Assigning a group activates it; assigning `propagate_env`
decides whether assignments to knobs are written into the environment.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from tilewright.compiler import CompileTimes as CompileTimes
from tilewright.runtime import launch_enter, launch_exit
from tilewright.support import HookChain as HookChain
from tilewright.support import environment_flag as getenv_bool
from tilewright.support import environment_text as getenv
from tilewright.support import errors, import_late, kernel_hooks
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass
from tilewright.triton_alias.knob_descriptors import (
    Chain,
    Env,
    Hook,
    Shared,
    activate,
    base_knobs,
    env,
    env_base,
    env_bool,
    env_class,
    env_int,
    env_opt_bool,
    env_opt_str,
    env_str,
    env_str_callable_default,
    propagation,
    setenv,
    toenv,
)

__all__ = [
    "CompileTimes",
    "Env",
    "HookChain",
    "NvidiaTool",
    "amd",
    "autotuning",
    "base_knobs",
    "build",
    "cache",
    "compilation",
    "env",
    "env_base",
    "env_bool",
    "env_class",
    "env_int",
    "env_nvidia_tool",
    "env_opt_bool",
    "env_opt_str",
    "env_str",
    "env_str_callable_default",
    "getenv",
    "getenv_bool",
    "language",
    "nvidia",
    "proton",
    "redis",
    "refresh_knobs",
    "runtime",
    "setenv",
    "toenv",
]

propagate_env: bool
"""Whether assignments to knobs are written into the environment."""

_NO_C = "nothing is compiled by a C compiler"
_OWN_IR = "there is no MLIR; `tilewright compile --print-after` shows what each pass does"
_OWN_CHECKS = 'checks are made by @jit(check="bounds,race,overflow,uninit")'
_NO_AMD = "there is no back end for AMD"
_NO_PROTON = "nothing is profiled"
_OF_ASM = "the texts of all stages are in kernel.asm, and in TRITON_DUMP_DIR"


class build_knobs(base_knobs):
    """Commands of a C compiler, which is never called."""

    cc = env_opt_str("CC").without_effect(_NO_C)
    cudacrt_path = env_opt_str("TRITON_CUDACRT_PATH").without_effect(_NO_C)
    cudart_path = env_opt_str("TRITON_CUDART_PATH").without_effect(_NO_C)
    impl: Callable[..., str] | None = None

    @property
    def backend_dirs(self) -> set[str]:
        """Folders of CUDA that are set."""
        return {path for path in (self.cudacrt_path, self.cudart_path) if path is not None}


class redis_knobs(base_knobs):
    """The server of `triton.runtime.cache.RedisRemoteCacheBackend`."""

    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    host = env_str("TRITON_REDIS_HOST", "localhost")
    port = env_int("TRITON_REDIS_PORT", 6379)


def _triton_folder(name: str) -> str:
    return cache.get_triton_dir(name)


class _Folder(Shared):
    """A folder that is a setting; if that has no value, one below Triton's home."""

    def __init__(self, key: str, setting: str, name: str) -> None:
        super().__init__(key, setting, lambda path: str(path or _triton_folder(name)), Path)


class _CacheFolder(_Folder):
    """The folder of cache managers and, if it is set, of kernels. If neither it nor the setting is
    set, kernels are in the cache folder of the platform."""

    def get(self) -> Any:
        """The value without assignments."""
        own = getenv("TILEWRIGHT_CACHE_DIR") or getenv(self.key)
        return super().get() if own else _triton_folder("cache")


class cache_knobs(base_knobs):
    """Folders of cached files, and of dumps and overrides of kernels."""

    home_dir = env_str("TRITON_HOME", os.path.expanduser("~/"))
    dir = _CacheFolder("TRITON_CACHE_DIR", "cache.dir", "cache")
    dump_dir = _Folder("TRITON_DUMP_DIR", "compilation.dump_dir", "dump")
    override_dir = _Folder("TRITON_OVERRIDE_DIR", "compilation.override_dir", "override")
    manager_class = env_class("TRITON_CACHE_MANAGER", "CacheManager")
    remote_manager_class = env_class("TRITON_REMOTE_CACHE_BACKEND", "RemoteCacheBackend")

    def get_triton_dir(self, dirname: str) -> str:
        """A folder of Triton's below the home folder."""
        return str(Path(self.home_dir) / ".triton" / dirname)


class compilation_knobs(base_knobs):
    """Options of compilation."""

    dump_ir = env_bool("TRITON_KERNEL_DUMP")
    override = env_bool("TRITON_KERNEL_OVERRIDE")
    always_compile = Shared("TRITON_ALWAYS_COMPILE", "cache.always_compile")
    disable_line_info = Shared(
        "TRITON_DISABLE_LINE_INFO", "compilation.line_info", lambda on: not on, lambda off: not off
    )
    front_end_debugging = env_bool("TRITON_FRONT_END_DEBUGGING").without_effect(
        "tracebacks end at the line of the kernel; a mistake of the compiler shows its own frames"
    )
    instrumentation_mode = env_str("TRITON_INSTRUMENTATION_MODE", "").without_effect(_OWN_CHECKS)
    enable_asan = env_bool("TRITON_ENABLE_ASAN").without_effect(_OWN_CHECKS)
    fpsan_homomorphic_casts = env_bool("TRITON_FPSAN_HOMOMORPHIC_CASTS").without_effect(_OWN_CHECKS)
    use_ir_loc = env_opt_str("USE_IR_LOC").without_effect(_OWN_IR)
    dump_ir_extract_di_local_variables = env_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES").without_effect(
        "values always have the names of the kernel's variables"
    )
    store_binary_only = env_bool("TRITON_STORE_BINARY_ONLY").without_effect(
        "the disk cache stores all stages up to a size, TILEWRIGHT_CACHE_MB"
    )
    allow_non_constexpr_globals = env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS").without_effect(
        "globals may be numbers, strings, lists and dictionaries without strict_triton"
    )
    listener = Hook(kernel_hooks, "listener")


class autotuning_knobs(base_knobs):
    """The autotuner."""

    cache = Shared("TRITON_CACHE_AUTOTUNING", "autotuning.cache")
    print = Shared("TRITON_PRINT_AUTOTUNING", "autotuning.print")
    listener = Hook(kernel_hooks, "tuned")


class runtime_knobs(base_knobs):
    """Launches, and the hooks around them."""

    interpret = Shared("TRITON_INTERPRET", "interpreter.enabled")
    debug = Shared("TRITON_DEBUG", "compilation.debug")
    override_arch = Shared("TRITON_OVERRIDE_ARCH", "compilation.override_arch")
    launch_enter_hook = Chain(launch_enter)
    launch_exit_hook = Chain(launch_exit)
    kernel_load_start_hook = Chain(kernel_hooks.load_start)
    kernel_load_end_hook = Chain(kernel_hooks.load_end)
    jit_cache_hook = Hook(kernel_hooks, "jit_cache")
    jit_post_compile_hook = Hook(kernel_hooks, "jit_post_compile")
    kernel_unload_hook = Chain(kernel_hooks.unload)
    add_stages_inspection_hook = Hook(kernel_hooks, "stages")


class language_knobs(base_knobs):
    """Defaults of the language."""

    fp32_default = Shared("TRITON_F32_DEFAULT", "compilation.f32_default")
    default_fp_fusion = Shared("TRITON_DEFAULT_FP_FUSION", "compilation.fp_fusion")
    force_disable_fp_fusion = Shared(
        "TRITON_FORCE_DISABLE_FP_FUSION",
        "compilation.fp_fusion",
        lambda on: not on,
        lambda off: not off,
    )


@dataclass(frozen=True)
class NvidiaTool:
    """A program of the CUDA toolkit. version: major and minor."""

    path: str
    version: str

    @classmethod
    def from_path(cls, path: str) -> Self | None:
        """A program that prints its release; None for others."""
        try:
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
        except synchronous(OSError, subprocess.CalledProcessError):
            return None
        release = re.search(r"release (\d+\.\d+)", said.stdout)
        return None if release is None else cls(path, release[1])


class env_nvidia_tool(env_base):
    """A knob with a program of the CUDA toolkit, assigned by its path; the default is searched like
    ptxas."""

    def __init__(self, binary: str) -> None:
        super().__init__(f"TRITON_{binary.upper().replace('-', '_')}_PATH")
        self.binary = binary

    def get(self) -> NvidiaTool:
        """The program without assignments. Errors: ToolMissing."""
        return self.transform(getenv(self.key))

    def transform(self, val: str | None) -> NvidiaTool:
        """The program at a path. Errors: ToolMissing."""
        find_tool = import_late("tilewright.backends.nvidia.assemble.ptxas").find_tool
        found = NvidiaTool.from_path(val or str(find_tool(self.binary)))
        if found is None:
            raise errors.ToolMissing(self.binary, str(val), f"set {self.key} to the program")
        return found


def _assembler(chosen: Path | None) -> NvidiaTool:
    """The ptxas in use, or the one for a choice. Errors: ToolMissing."""
    ptxas = import_late("tilewright.backends.nvidia.assemble.ptxas")
    path = chosen if chosen is not None and chosen.is_file() else ptxas.find_ptxas()
    major, minor, *_ = ptxas.version(path).split(".")
    return NvidiaTool(str(path), f"{major}.{minor}")


class nvidia_knobs(base_knobs):
    """The back end for NVIDIA."""

    cuobjdump = env_nvidia_tool("cuobjdump")
    nvdisasm = env_nvidia_tool("nvdisasm")
    ptxas = Shared("TRITON_PTXAS_PATH", "cuda.ptxas_path", _assembler, Path)
    ptxas_blackwell = Shared("TRITON_PTXAS_PATH", "cuda.ptxas_path", _assembler, Path)
    dump_nvptx = env_bool("NVPTX_ENABLE_DUMP").without_effect(_OF_ASM)
    dump_ptxas_log = env_bool("TRITON_DUMP_PTXAS_LOG").without_effect(
        "kernel.n_regs and kernel.n_spills hold the figures of the log"
    )
    disable_ptxas_opt = env_bool("DISABLE_PTXAS_OPT").without_effect("there is no switch for it")
    ptxas_options = env_opt_str("PTXAS_OPTIONS").without_effect("there is no switch for it")
    mock_ptx_version = env_opt_str("TRITON_MOCK_PTX_VERSION").without_effect(
        "the version of PTX is that of the assembler"
    )
    libdevice_path = env_opt_str("TRITON_LIBDEVICE_PATH").without_effect(
        "the functions of libdevice are built in"
    )
    libcuda_path = env_opt_str("TRITON_LIBCUDA_PATH").without_effect(
        "the driver is found by the system's linker: LD_LIBRARY_PATH"
    )


class amd_knobs(base_knobs):
    """The back end for AMD, which does not exist: the knobs only hold assigned values."""

    use_buffer_ops = env_bool("AMDGCN_USE_BUFFER_OPS", True).without_effect(_NO_AMD)
    use_buffer_atomics = env_bool("AMDGCN_USE_BUFFER_ATOMICS", True).without_effect(_NO_AMD)
    buffer_ops_analyze_small_tensor_range = env_bool(
        "AMDGCN_ANALYZE_SMALL_TENSOR_RANGE"
    ).without_effect(_NO_AMD)
    dump_amdgcn = env_bool("AMDGCN_ENABLE_DUMP").without_effect(_NO_AMD)
    libhip_path = env_opt_str("TRITON_LIBHIP_PATH").without_effect(_NO_AMD)
    use_block_pingpong = env_opt_bool("TRITON_HIP_USE_BLOCK_PINGPONG").without_effect(_NO_AMD)
    use_in_thread_transpose = env_opt_bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE").without_effect(
        _NO_AMD
    )
    use_async_copy = env_bool("TRITON_HIP_USE_ASYNC_COPY").without_effect(_NO_AMD)
    scalarize_packed_fops = env_bool("AMDGCN_SCALARIZE_PACKED_FOPS").without_effect(_NO_AMD)


class proton_knobs(base_knobs):
    """The profiler, which traces launches."""

    disable = env_bool("TRITON_PROTON_DISABLE").without_effect(_NO_PROTON)
    cupti_lib_dir = env_str("TRITON_CUPTI_LIB_PATH", "").without_effect(_NO_PROTON)
    enable_nvtx = env_bool("TRITON_ENABLE_NVTX", True).without_effect(_NO_PROTON)


build = build_knobs()
redis = redis_knobs()
cache = cache_knobs()
compilation = compilation_knobs()
autotuning = autotuning_knobs()
runtime = runtime_knobs()
language = language_knobs()
nvidia = nvidia_knobs()
amd = amd_knobs()
proton = proton_knobs()


def refresh_knobs() -> None:
    """Read the environment again, which every read of a knob does."""


class _Module(ModuleType):
    """This module, whose groups are the active ones."""

    @property
    def propagate_env(self) -> bool:
        """See above."""
        return propagation.on

    @propagate_env.setter
    def propagate_env(self, on: bool) -> None:
        propagation.on = on

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, base_knobs) and isinstance(vars(self).get(name), type(value)):
            activate(value)
        super().__setattr__(name, value)


def _activate_all() -> None:
    # a function, so that no group has a second name here: programs iterate over this module's
    for group in [value for value in globals().values() if isinstance(value, base_knobs)]:
        activate(group)


_activate_all()
sys.modules[__name__].__class__ = _Module
