"""Which PyTorch has the Inductor whose interface to Triton is met here.

It is no public interface and changes with each minor version, so that others would fail somewhere
in the middle, or worse, compute something else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import PurePath

from tilewright.compiler import package_version
from tilewright.support import errors, import_late

_WORKERS = ("torch", "_inductor", "compile_worker", "__main__.py")

SUPPORTED = ("2.11", "2.12", "2.13")
"""Minor versions of PyTorch: tests pass with all on CPUs, and with 2.11 on GPUs."""

REGISTERED = ("2.13",)
"""Those whose hooks `register_with_inductor` knows."""


def check_torch(supported: Sequence[str] = SUPPORTED) -> None:
    """Errors: UnsupportedTorch, if another version has been imported."""
    version = str(getattr(sys.modules.get("torch"), "__version__", ""))
    if version and ".".join(version.split(".")[:2]) not in supported:
        raise errors.UnsupportedTorch(version, supported)


def triton_key() -> str:
    """What changes with the compiler: a part of the keys of Inductor's caches, which is the first
    that it asks for, and the last before it forks compile workers. Errors: UnsupportedTorch."""
    check_torch()
    if is_parent_of_workers():
        import_late("tilewright.triton_alias.compile_worker_start").prepare()
    return package_version()


def is_parent_of_workers() -> bool:
    """Whether this process is the one that Inductor starts to fork its compile workers."""
    file = str(getattr(sys.modules.get("__main__"), "__file__", None) or "")
    return PurePath(file).parts[-len(_WORKERS) :] == _WORKERS


def register_with_inductor() -> None:
    """Tell Inductor, by its hooks, what it lacks for kernels of a CPU.

    AOTInductor, and `torch.compile` with `cpp_wrapper`, call them from C++ then, and are compiled
    anew by another version of Tilewright; and configurations of templates and of users' kernels are
    measured once that differ in warps or stages only, which mean nothing there.
    Needs torch, and for C++ its compiler. Where Inductor's `cpu_backend` is not "triton", C++ is
    written as before. Errors: UnsupportedTorch.
    """
    import_late("torch")
    check_torch(REGISTERED)
    for module in ("inductor_cpp_wrapper", "inductor_choices", "inductor_tuning"):
        import_late(f"tilewright.triton_alias.{module}").register()
