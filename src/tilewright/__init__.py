"""Tilewright: write tile-level kernels in Python; run them on CPUs, GPUs or in an interpreter.

    import tilewright
    import tilewright.language as tl

    @tilewright.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

    add[(tilewright.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)

The functions and types of `tilewright.language` are names of this module too. Everything is loaded
when it is first used, so that importing the package takes no time; `__init__.pyi` has the types.
"""

from __future__ import annotations

import importlib

_MODULES = frozenset(
    {
        "aot",
        "backends",
        "c",
        "compiler",
        "distributed",
        "jax",
        "kernels",
        "language",
        "runtime",
        "testing",
    }
)

_ELSEWHERE = {"knobs": "triton_alias.knobs"}
"""Modules that Triton has at its top."""

_RUNTIME = "runtime"
_COMPILER = "compiler"
_ERRORS = "support.errors"
_PLACES = {
    "ASTSource": _COMPILER,
    "AsyncCompileMode": _RUNTIME,
    "Autotuner": _RUNTIME,
    "AutotunerError": _ERRORS,
    "CompilationError": _ERRORS,
    "CompiledKernel": _COMPILER,
    "Config": _RUNTIME,
    "ConstexprFunction": _RUNTIME,
    "FutureKernel": _RUNTIME,
    "GPUTarget": "backends",
    "Heuristics": _RUNTIME,
    "IRSource": _COMPILER,
    "InterpreterError": _ERRORS,
    "JITFunction": _RUNTIME,
    "KernelInterface": _RUNTIME,
    "MockTensor": _RUNTIME,
    "OutOfResources": _ERRORS,
    "OverlapWarning": _ERRORS,
    "TensorWrapper": _RUNTIME,
    "TilewrightError": _ERRORS,
    "TilewrightWarning": _ERRORS,
    "__version__": "support.version",
    "as_triton": "triton_alias",
    "autotune": _RUNTIME,
    "compile": _COMPILER,
    "compile_many": _COMPILER,
    "errors": "support",
    "heuristics": _RUNTIME,
    "jit": _RUNTIME,
    "reinterpret": _RUNTIME,
    "set_allocator": _RUNTIME,
    "settings": "support",
}
"""Host-side names, and the module of this package that has each."""

_ALIASES = {"TritonError": "TilewrightError", "constexpr_function": "ConstexprFunction"}


def __getattr__(name: str) -> object:
    """Import a name at its first use, and cache it."""
    wanted = _ALIASES.get(name, name)
    if wanted in _MODULES or wanted in _ELSEWHERE:
        return importlib.import_module(f"{__name__}.{_ELSEWHERE.get(wanted, wanted)}")
    if wanted in _PLACES:
        module = importlib.import_module(f"{__name__}.{_PLACES[wanted]}")
    else:
        module = importlib.import_module(f"{__name__}.language")
        if wanted not in module.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    attribute = globals()[name] = getattr(module, wanted)
    return attribute


def __dir__() -> list[str]:
    language = importlib.import_module(f"{__name__}.language")
    return sorted({*_MODULES, *_ELSEWHERE, *_PLACES, *_ALIASES, *language.__all__})
