"""Kernels by name under either compiler; Triton's are made of the same source.

A kernel is named as "softmax.softmax_kernel": a file in `benchmarks/kernels` or
`tilewright.kernels`, and its function. This module imports triton with the first twin, and
tilewright with its first kernel: it also runs in an environment that holds Triton alone.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import tempfile
from pathlib import Path
from typing import Any

OWN_KERNELS = Path(__file__).resolve().with_name("kernels")
KERNELS = OWN_KERNELS.parents[1] / "src" / "tilewright" / "kernels"

HEAD = "import triton\nimport triton.language as tl\n"
DECORATOR = "\n\n@triton.jit\n"


def kernel_of(side: str, name: str) -> Any:
    """The kernel of a compiler, "tilewright" or "triton"."""
    if side == "triton":
        return twin(name)
    module, _, function = name.partition(".")
    package = (
        "benchmarks.kernels"
        if source_file(module).parent == OWN_KERNELS
        else ("tilewright.kernels")
    )
    return getattr(importlib.import_module(f"{package}.{module}"), function)


def source_file(module: str) -> Path:
    """The file of a module of kernels."""
    own = OWN_KERNELS / f"{module}.py"
    return own if own.exists() else KERNELS / f"{module}.py"


def twin(name: str, folder: Path | None = None) -> Any:
    """Triton's JITFunction of a kernel.

    folder: where its source is written, since Triton reads the source of a kernel from its file;
        a new temporary folder if not given.
    """
    module, _, function = name.partition(".")
    place = Path(tempfile.mkdtemp(prefix="twins-")) if folder is None else folder
    path = place / f"{function}.py"
    path.write_text(source_with_callees(source_file(module), function))
    spec = importlib.util.spec_from_file_location(function, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return getattr(loaded, function)


def source_with_callees(path: Path, function: str) -> str:
    """A module for Triton that holds a function, after those of the same file that it calls."""
    wanted, seen = [function], list[str]()
    names = {node.name for node in ast.parse(path.read_text()).body
             if isinstance(node, ast.FunctionDef)}  # fmt: skip
    while wanted:
        name = wanted.pop()
        seen = [name, *(other for other in seen if other != name)]
        wanted += [
            node.id  # called, or handed to a scan
            for node in ast.walk(ast.parse(source_of(path, name)))
            if isinstance(node, ast.Name) and node.id in names
        ]
    return HEAD + "".join(DECORATOR + source_of(path, name) for name in seen)


def source_of(path: Path, function: str) -> str:
    """The text of one function of a file, without its decorators. Raises KeyError without it."""
    text = path.read_text()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno]) + "\n"
    raise KeyError(function)
