"""Runs pieces of Triton-C: in the interpreter, and compiled for the CPU; both must agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.c import CSource, kernel
from tilewright.frontend.semantics import FrontendOptions
from tilewright.ir import Module, print_module
from tilewright.ir.verifier import report
from tilewright.transforms import SHARED

Array = np.ndarray[Any, Any]
NAMES = {
    "float32": "float", "float64": "double", "float16": "half", "int8": "char", "int16": "short",
    "int32": "int", "int64": "long", "uint8": "unsigned char", "uint16": "unsigned short",
    "uint32": "unsigned", "uint64": "unsigned long", "bool": "bool",
}  # fmt: skip


def lower(source: str, **defines: object) -> Module:
    """The front end's tile IR of the only kernel, checked."""
    module = CSource(source, defines).lower(FrontendOptions())
    assert report(module.kernel) is None, report(module.kernel)
    return module


def text(source: str, **defines: object) -> str:
    """That tile IR as text."""
    return print_module(lower(source, **defines))


def canonical(module: Module) -> str:
    """A module after the passes that every back end starts with, as text."""
    SHARED.run(module)
    return print_module(module)


def run(
    body: str, *args: Array | float, defines: dict[str, Any] | None = None, **more: Any
) -> None:
    """Run statements as a kernel whose parameters a, b, c ... are the arguments.

    Runs compiled and interpreted; the arrays then hold what both have computed.
    """
    names = "abcdefghij"[: len(args)]
    declared = [f"{_type(arg)}{name}" for name, arg in zip(names, args, strict=True)]
    source = f"{more.get('before', '')}\n__global__ void piece({', '.join(declared)}) {{ {body} }}"
    grid = more.get("grid", (1,))
    copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    kernel(source, defines, interpret=True)[grid](*copies)
    kernel(source, defines)[grid](*args)
    for copy, arg in zip(copies, args, strict=True):
        np.testing.assert_array_equal(copy, arg)


def _type(arg: Array | float) -> str:
    if isinstance(arg, np.ndarray):
        return f"{NAMES[arg.dtype.name]} *"
    return "int " if isinstance(arg, int) else "float "
