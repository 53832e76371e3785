"""`triton.knobs`: Triton's switches as attributes, in groups, over the settings of this package.

A knob is what was assigned last; if nothing was, what the environment says; else its default. What
is assigned is written into the environment too, for processes that are started from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, cast

from tilewright.compiler import CompileTimes as CompileTimes
from tilewright.runtime import launch_enter, launch_exit
from tilewright.support import (
    HookChain,
    environment_flag,
    environment_text,
    import_late,
    kernel_hooks,
    set_environment,
    settings,
)
from tilewright.support.data_class import dataclass


class Env:
    """Assigned to a knob, stands for "as the environment says"."""


env = Env()


class env_base:
    """A knob: a descriptor on a group. key: its environment variable."""

    def __init__(self, key: str, default: object = None) -> None:
        self.key = key
        self.default = default
        self.name = ""
        self.no_effect_since = ""

    def without_effect(self, since: str) -> Self:
        """The knob is there for programs that set it; `since` says why it does nothing."""
        self.no_effect_since = since
        return self

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, group: base_knobs | None, owner: type | None = None) -> Any:
        if group is None:
            return self
        assigned = vars(group)
        return assigned[self.name] if self.name in assigned else self.get()

    def __set__(self, group: base_knobs, value: object) -> None:
        if isinstance(value, Env):
            self.__delete__(group)
            return
        self.assign(group, value)
        if value is None or isinstance(value, bool | str | int):
            text = str(int(value)) if isinstance(value, bool) else value
            set_environment(self.key, None if text is None else str(text))

    def __delete__(self, group: base_knobs) -> None:
        vars(group).pop(self.name, None)

    def assign(self, group: base_knobs, value: object) -> None:
        """Keep a value."""
        vars(group)[self.name] = value

    def get(self) -> Any:
        """The value without assignments: a text."""
        return environment_text(self.key, self.default)  # pyright: ignore[reportArgumentType]


class env_str(env_base):
    """A knob with a text."""


class env_bool(env_base):
    """A knob that is on or off."""

    def __init__(self, key: str, default: bool | None = False) -> None:
        super().__init__(key, default)

    def get(self) -> Any:
        """The value without assignments."""
        return environment_flag(self.key, self.default)  # pyright: ignore[reportArgumentType]


class env_int(env_base):
    """A knob with an integer."""

    def get(self) -> Any:
        """The value without assignments."""
        text = environment_text(self.key)
        return self.default if text is None else int(text)


def _same(value: Any) -> Any:
    return value


class _Shared(env_base):
    """A knob that is a setting of this package. to_triton, from_triton: of its values."""

    def __init__(
        self,
        key: str,
        setting: str,
        to_triton: Callable[[Any], Any] = _same,
        from_triton: Callable[[Any], Any] = _same,
    ) -> None:
        super().__init__(key)
        group, _, self._setting = setting.partition(".")
        self.group: object = getattr(settings(), group)
        self._to_triton, self._from_triton = to_triton, from_triton

    def __get__(self, group: base_knobs | None, owner: type | None = None) -> Any:
        return self if group is None else self._to_triton(getattr(self.group, self._setting))

    def __delete__(self, group: base_knobs) -> None:
        cast("Any", self.group).reset(self._setting)

    def assign(self, group: base_knobs, value: object) -> None:
        """Assign to the setting."""
        setattr(self.group, self._setting, None if value is None else self._from_triton(value))


class _Hook:
    """A hook that is called by this package. holder.attribute: where it is kept."""

    def __init__(self, holder: object, attribute: str) -> None:
        self._holder, self._attribute = holder, attribute

    def __get__(self, group: base_knobs | None, owner: type | None = None) -> Any:
        return self if group is None else getattr(self._holder, self._attribute)

    def __set__(self, group: base_knobs, value: Any) -> None:
        setattr(self._holder, self._attribute, value)


class _Chain:
    """A chain of hooks that is called by this package; None stands for an empty one."""

    def __init__(self, chain: HookChain[...]) -> None:
        self._chain = chain

    def __get__(self, group: base_knobs | None, owner: type | None = None) -> Any:
        return self if group is None else self._chain

    def __set__(self, group: base_knobs, value: Any) -> None:
        single = [] if value is None else [value]
        self._chain[:] = list(value) if isinstance(value, HookChain) else single


class base_knobs:
    """A group of knobs."""

    @property
    def knob_descriptors(self) -> dict[str, env_base]:
        """The knobs by name."""
        return {k: v for k, v in vars(type(self)).items() if isinstance(v, env_base)}

    @property
    def knobs(self) -> dict[str, Any]:
        """The values by name."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self) -> Self:
        """A group with the same assignments."""
        made = type(self)()
        vars(made).update(vars(self))
        return made

    def reset(self) -> Self:
        """Drop all assignments."""
        for name in self.knob_descriptors:
            delattr(self, name)
        return self

    @contextmanager
    def scope(self) -> Generator[None]:
        """A block after which assignments and environment are as before."""
        texts = self._texts()
        knobs = self.knob_descriptors.values()
        assigned = [vars(knob.group) for knob in knobs if isinstance(knob, _Shared)]
        before = [(values, dict(values)) for values in (vars(self), *assigned)]
        try:
            yield
        finally:
            # in place: launches hold these dictionaries
            for values, old in before:
                values.clear()
                values.update(old)
            for key, text in texts.items():
                set_environment(key, text)

    def _texts(self) -> dict[str, str | None]:
        return {knob.key: environment_text(knob.key) for knob in self.knob_descriptors.values()}


_NO_C = "nothing is compiled by a C compiler"
_FILES = "kernels are kept in files, which any number of processes and machines may share"
_OWN_IR = "there is no MLIR; `tilewright compile --print-after` shows what each pass does"
_OWN_CHECKS = 'checks are made by @jit(check="bounds,race,overflow,uninit")'
_NO_AMD = "there is no back end for AMD"
_NO_PROTON = "nothing is profiled"
_OF_ASM = "the texts of all stages are in kernel.asm, and in TRITON_DUMP_DIR"


class build_knobs(base_knobs):
    """How a C compiler would be called, which never happens."""

    cc = env_str("CC").without_effect(_NO_C)
    cudacrt_path = env_str("TRITON_CUDACRT_PATH").without_effect(_NO_C)
    cudart_path = env_str("TRITON_CUDART_PATH").without_effect(_NO_C)
    impl: Callable[..., str] | None = None


class redis_knobs(base_knobs):
    """A cache on a server, of which there is none."""

    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}").without_effect(
        _FILES
    )
    host = env_str("TRITON_REDIS_HOST", "localhost").without_effect(_FILES)
    port = env_int("TRITON_REDIS_PORT", 6379).without_effect(_FILES)


class cache_knobs(base_knobs):
    """Where compiled kernels are kept, dumped, and replaced from."""

    home_dir = env_str("TRITON_HOME", str(Path("~").expanduser()))
    dir = _Shared("TRITON_CACHE_DIR", "cache.dir", str, Path)
    dump_dir = _Shared("TRITON_DUMP_DIR", "compilation.dump_dir", _same, Path)
    override_dir = _Shared("TRITON_OVERRIDE_DIR", "compilation.override_dir", _same, Path)
    manager_class = env_str("TRITON_CACHE_MANAGER").without_effect(_FILES)
    remote_manager_class = env_str("TRITON_REMOTE_CACHE_BACKEND").without_effect(_FILES)

    def get_triton_dir(self, dirname: str) -> str:
        """A folder of Triton's below the home folder."""
        return str(Path(self.home_dir) / ".triton" / dirname)


class compilation_knobs(base_knobs):
    """How kernels are compiled."""

    dump_ir = env_bool("TRITON_KERNEL_DUMP")
    override = env_bool("TRITON_KERNEL_OVERRIDE")
    always_compile = _Shared("TRITON_ALWAYS_COMPILE", "cache.always_compile")
    disable_line_info = _Shared(
        "TRITON_DISABLE_LINE_INFO", "compilation.line_info", lambda on: not on, lambda off: not off
    )
    front_end_debugging = env_bool("TRITON_FRONT_END_DEBUGGING").without_effect(
        "tracebacks end at the line of the kernel; a mistake of the compiler shows its own frames"
    )
    instrumentation_mode = env_str("TRITON_INSTRUMENTATION_MODE", "").without_effect(_OWN_CHECKS)
    enable_asan = env_bool("TRITON_ENABLE_ASAN").without_effect(_OWN_CHECKS)
    fpsan_homomorphic_casts = env_bool("TRITON_FPSAN_HOMOMORPHIC_CASTS").without_effect(_OWN_CHECKS)
    use_ir_loc = env_str("USE_IR_LOC").without_effect(_OWN_IR)
    dump_ir_extract_di_local_variables = env_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES").without_effect(
        "the names of values are those of the kernel's variables anyway"
    )
    store_binary_only = env_bool("TRITON_STORE_BINARY_ONLY").without_effect(
        "the disk cache keeps every stage below a size, TILEWRIGHT_CACHE_MB"
    )
    allow_non_constexpr_globals = env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS").without_effect(
        "numbers, strings, lists and dictionaries as globals are allowed but by strict_triton"
    )
    listener = _Hook(kernel_hooks, "listener")


class autotuning_knobs(base_knobs):
    """The autotuner."""

    cache = _Shared("TRITON_CACHE_AUTOTUNING", "autotuning.cache")
    print = _Shared("TRITON_PRINT_AUTOTUNING", "autotuning.print")
    listener = _Hook(kernel_hooks, "tuned")


class runtime_knobs(base_knobs):
    """Launches, and the hooks around them."""

    interpret = _Shared("TRITON_INTERPRET", "interpreter.enabled")
    debug = _Shared("TRITON_DEBUG", "compilation.debug")
    override_arch = _Shared("TRITON_OVERRIDE_ARCH", "compilation.override_arch")
    launch_enter_hook = _Chain(launch_enter)
    launch_exit_hook = _Chain(launch_exit)
    kernel_load_start_hook = _Chain(kernel_hooks.load_start)
    kernel_load_end_hook = _Chain(kernel_hooks.load_end)
    jit_cache_hook = _Hook(kernel_hooks, "jit_cache")
    jit_post_compile_hook = _Hook(kernel_hooks, "jit_post_compile")
    kernel_unload_hook = _Chain(kernel_hooks.unload)
    add_stages_inspection_hook = _Hook(kernel_hooks, "stages")


class language_knobs(base_knobs):
    """Defaults of the language."""

    fp32_default = _Shared("TRITON_F32_DEFAULT", "compilation.f32_default")
    default_fp_fusion = _Shared("TRITON_DEFAULT_FP_FUSION", "compilation.fp_fusion")
    force_disable_fp_fusion = _Shared(
        "TRITON_FORCE_DISABLE_FP_FUSION",
        "compilation.fp_fusion",
        lambda on: not on,
        lambda off: not off,
    )


@dataclass(frozen=True)
class NvidiaTool:
    """A program of the CUDA toolkit."""

    path: str
    version: str


class _Ptxas(_Shared):
    """The assembler that is used, with its version."""

    def __get__(self, group: base_knobs | None, owner: type | None = None) -> Any:
        if group is None:
            return self
        ptxas = import_late("tilewright.backends.nvidia.assemble.ptxas")
        path = ptxas.find_ptxas()
        return NvidiaTool(str(path), ptxas.version(path))


class nvidia_knobs(base_knobs):
    """The back end for NVIDIA."""

    ptxas = _Ptxas("TRITON_PTXAS_PATH", "cuda.ptxas_path", _same, Path)
    ptxas_blackwell = _Ptxas("TRITON_PTXAS_PATH", "cuda.ptxas_path", _same, Path)
    dump_nvptx = env_bool("NVPTX_ENABLE_DUMP").without_effect(_OF_ASM)
    dump_ptxas_log = env_bool("TRITON_DUMP_PTXAS_LOG").without_effect(
        "kernel.n_regs and n_spills are what the log says"
    )
    disable_ptxas_opt = env_bool("DISABLE_PTXAS_OPT").without_effect("there is no switch for it")
    ptxas_options = env_str("PTXAS_OPTIONS").without_effect("there is no switch for it")
    mock_ptx_version = env_str("TRITON_MOCK_PTX_VERSION").without_effect(
        "the version of PTX is that of the assembler"
    )
    libdevice_path = env_str("TRITON_LIBDEVICE_PATH").without_effect(
        "the functions of libdevice are this package's own"
    )
    libcuda_path = env_str("TRITON_LIBCUDA_PATH").without_effect(
        "the driver is found by the system's linker: LD_LIBRARY_PATH"
    )


class amd_knobs(base_knobs):
    """The back end for AMD, of which there is none: the knobs hold what is assigned."""

    use_buffer_ops = env_bool("AMDGCN_USE_BUFFER_OPS", True).without_effect(_NO_AMD)
    use_buffer_atomics = env_bool("AMDGCN_USE_BUFFER_ATOMICS", True).without_effect(_NO_AMD)
    libhip_path = env_str("TRITON_LIBHIP_PATH").without_effect(_NO_AMD)
    use_block_pingpong = env_bool("TRITON_HIP_USE_BLOCK_PINGPONG", None).without_effect(_NO_AMD)
    use_in_thread_transpose = env_bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE", None).without_effect(
        _NO_AMD
    )
    use_async_copy = env_bool("TRITON_HIP_USE_ASYNC_COPY").without_effect(_NO_AMD)


class proton_knobs(base_knobs):
    """The profiler, of which there are only names."""

    disable = env_bool("TRITON_PROTON_DISABLE").without_effect(_NO_PROTON)
    cupti_lib_dir = env_str("TRITON_CUPTI_LIB_PATH", "").without_effect(_NO_PROTON)


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
    """Read the environment anew, which every look at a knob does."""
