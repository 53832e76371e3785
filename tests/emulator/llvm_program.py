"""LLVM text of kernels that tests write by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from tests.emulator.machine import Kernel, run_program
from tests.emulator.memory import Array, Global

SHARED = "@shared_memory = external addrspace(3) global [0 x i8], align 1024"


@dataclass
class Program:
    """LLVM text that grows; registers are numbered."""

    lines: list[str] = field(default_factory=list[str])
    count: int = 0

    def let(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def do(self, text: str) -> None:
        self.lines.append(text)

    def asm(self, text: str, constraints: str, *operands: str, type_: str = "void") -> str:
        joined = text.replace("\n", "\\0A")
        call = f'call {type_} asm sideeffect "{joined}", "{constraints}"({", ".join(operands)}) #1'
        if type_ != "void":
            return self.let(call)
        self.do(call)
        return ""

    def tied(
        self, text: str, values: Sequence[str], type_: str, more: str, *operands: str
    ) -> list[str]:
        """Assembly that changes registers; what it leaves in them."""
        count = len(values)
        letter = "f" if type_ == "float" else "r"
        constraints = ",".join([f"={letter}"] * count + [str(i) for i in range(count)])
        struct = "{" + ", ".join([type_] * count) + "}"
        given = [f"{type_} {v}" for v in values]
        whole = self.asm(text, constraints + more + ",~{memory}", *given, *operands, type_=struct)
        return [self.let(f"extractvalue {struct} {whole}, {i}") for i in range(count)]

    def text(self, parameters: str, attributes: str = "") -> str:
        body = "\n".join(self.lines)
        head = f"define ptx_kernel void @k({parameters}) {attributes} {{"
        return f"{SHARED}\n{head}\nstart:\n{body}\nret void\n}}\n"

    def label(self, name: str) -> None:
        """The block before goes on here."""
        self.do(f"br label %{name}\n{name}:")

    @contextmanager
    def only(self, condition: str) -> Iterator[None]:
        """What follows is for some threads."""
        self.count += 1
        then, end = f"then{self.count}", f"end{self.count}"
        self.do(f"br i1 {condition}, label %{then}, label %{end}\n{then}:")
        yield
        self.label(end)

    def call(self, name: str, *operands: str, type_: str = "void") -> str:
        text = f"call {type_} @llvm.nvvm.{name}({', '.join(operands)})"
        if type_ != "void":
            return self.let(text)
        self.do(text)
        return ""


def launch(
    text: str, shared: int, *args: Any, warps: int = 4, seed: int | None = None,
    checked: Sequence[Array] = (), base: int = 0,
) -> None:  # fmt: skip
    """args: arrays, or what `run_program` takes. checked: all that may be accessed, if any.

    base: where shared memory starts.
    """
    kernel = Kernel(text, warps, shared, shared_base=base)
    order = None if seed is None else Random(seed)
    given = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in args]
    memory = Global([(a.ctypes.data, a.ctypes.data + a.nbytes) for a in checked])
    run_program(kernel, given, memory=memory, order=order)
