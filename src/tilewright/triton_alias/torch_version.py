"""Versions of PyTorch whose Inductor is supported.

Inductor's interface to Triton is not public and changes with each minor version: other versions
would fail later or compute wrong results.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import PurePath

from tilewright.compiler import package_version
from tilewright.support import errors, import_late

_WORKERS = ("torch", "_inductor", "compile_worker", "__main__.py")

SUPPORTED = ("2.11", "2.12", "2.13")
"""Minor versions of PyTorch: tests pass with all of them on CPUs, and with 2.11 on GPUs."""

REGISTERED = ("2.13",)
"""Versions whose hooks `register_with_inductor` supports."""


def check_torch(supported: Sequence[str] = SUPPORTED) -> None:
    """Check the imported version. Errors: UnsupportedTorch."""
    version = str(getattr(sys.modules.get("torch"), "__version__", ""))
    if version and ".".join(version.split(".")[:2]) not in supported:
        raise errors.UnsupportedTorch(version, supported)


def triton_key() -> str:
    """A key of the compiler's version, part of the keys of Inductor's caches. Inductor calls it
    first, and before it forks compile workers. Errors: UnsupportedTorch."""
    check_torch()
    if is_parent_of_workers():
        import_late("tilewright.triton_alias.compile_worker_start").prepare()
    return package_version()


def is_parent_of_workers() -> bool:
    """Whether this process is the one from which Inductor forks its compile workers."""
    file = str(getattr(sys.modules.get("__main__"), "__file__", None) or "")
    return PurePath(file).parts[-len(_WORKERS) :] == _WORKERS


def register_with_inductor() -> None:
    """Register support for kernels on a CPU with Inductor's hooks.

    AOTInductor, and `torch.compile` with `cpp_wrapper`, then call kernels from C++, and recompile
    with another version of Tilewright. Configurations of templates and of users' kernels that
    differ only in warps or stages, which a CPU ignores, are measured once.
    Needs torch and, for C++, a compiler. If Inductor's `cpu_backend` is not "triton", its C++ is
    unchanged. Errors: UnsupportedTorch.
    """
    import_late("torch")
    check_torch(REGISTERED)
    for module in ("inductor_cpp_wrapper", "inductor_choices", "inductor_tuning"):
        import_late(f"tilewright.triton_alias.{module}").register()
