"""Find a Python kernel by the name of its module or file."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from tilewright.runtime import JITFunction
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import synchronous


def kernel_named(module_or_file: str, name: str) -> JITFunction:
    """The kernel `name` of a module (`package.module`) or a file (`folder/file.py`).

    The code of the module is run. Raises KernelMissing where there is no such kernel; exceptions
    of the module itself propagate.
    """
    module = _module(module_or_file)
    kernel = getattr(module, name, None)
    # An autotuner or a heuristic holds the kernel that it launches as `fn`.
    while kernel is not None and not isinstance(kernel, JITFunction):
        kernel = getattr(kernel, "fn", None)
    if kernel is None:
        kernels = [n for n, value in vars(module).items() if isinstance(value, JITFunction)]
        there = ", ".join(kernels) or "none"
        raise errors.KernelMissing(
            f"{module_or_file} has no kernel '{name}'; its kernels are: {there}"
        )
    return kernel


def object_named(module_or_file: str, name: str) -> object:
    """The object `name` of a module or a file, whose code is run. Raises KernelMissing."""
    found: object = _module(module_or_file)
    for part in name.split("."):
        if not hasattr(found, part):
            raise errors.KernelMissing(f"{module_or_file} has no '{name}'")
        found = getattr(found, part)
    return found


def only_kernel_of(file: str) -> str:
    """The name of a file's only kernel that is launched: no other kernel calls it.

    Raises KernelMissing where there are several, or none.
    """
    module = _from_file(Path(file))
    kernels = {n: value for n, value in vars(module).items() if isinstance(value, JITFunction)}
    own = {n: k for n, k in kernels.items() if k.fn.__module__ == module.__name__}
    called = {name for k in own.values() for name in k.fn.__code__.co_names}
    names = [name for name in own if name not in called]
    if len(names) != 1:
        there = ", ".join(names) or "none"
        raise errors.KernelMissing(f"name a kernel, as in {file}:kernel; its kernels are: {there}")
    return names[0]


def check_python(path: Path) -> None:
    """Raise KernelMissing for a file that Python cannot parse, with the location of the mistake."""
    try:
        # dont_inherit: without the __future__ imports of this module
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    # ValueError: null bytes, up to Python 3.11
    except synchronous(SyntaxError, ValueError) as problem:
        said = "".join(traceback.format_exception_only(problem)).rstrip()
        raise errors.KernelMissing(f"{path} is not Python source\n{said}") from None


def _module(module_or_file: str) -> ModuleType:
    from_file = module_or_file.endswith(".py")
    return _from_file(Path(module_or_file)) if from_file else _from_name(module_or_file)


def _from_name(name: str) -> ModuleType:
    """An importable module, also one in the current folder."""
    # As `python -m` does: modules of the current folder can be named.
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        # Only a missing module of that name is the user's mistake; imports inside it are not.
        if problem.name is None or not (
            name == problem.name or name.startswith(f"{problem.name}.")
        ):
            raise
        raise errors.KernelMissing(f"there is no module '{name}'") from None
    finally:
        sys.path.remove("")


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise errors.KernelMissing(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    check_python(path)
    # Registered before it runs, as imports do: dataclasses and pickling look modules up.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
