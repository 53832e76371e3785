"""Programs that are written in C and loaded as LLVM IR, so that users need no C compiler.

`scripts/compile_native.py` compiles the C file of a program by a pinned clang to LLVM IR next to
it, which is checked in. One text serves every target: it contains no target-specific names or
instructions. Python defines what a C file shares with it, or depends on the target or the system:

    structures   a `ctypes.Structure` is the one table of a structure's fields; the script writes
                 them, and the constants, to the header `..._structures.h` of the program
    constants    numbers that are the same everywhere
    definitions  LLVM IR of `extern` declarations of the C file, which replaces the declarations
                 when the program is loaded: an instruction of the target, a number of the system.
                 A function among them is `alwaysinline`
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from tilewright import llvm
from tilewright.support.data_class import dataclass
from tilewright.support.disk_cache import Documents

_DOCUMENTS = Documents("native")

_DECLARATION = re.compile(
    r"^(?:declare [^\n]*?@(\w+)\([^\n]*|@(\w+) = external [^\n]*)$", re.MULTILINE
)


@dataclass(frozen=True)
class NativeProgram:
    """A program in C that is loaded as one module.

    source: its C file; exports: functions whose addresses `load` gives; effort: of the code
    generator, as in `host_target`: 1 compiles more slowly, to faster code; for the others see the
    head of this module.
    """

    source: Path
    exports: Sequence[str]
    structures: Sequence[type[ctypes.Structure]] = ()
    constants: Mapping[str, int] = field(default_factory=dict[str, int])
    definitions: Mapping[str, str] = field(default_factory=dict[str, str])
    effort: int = 0

    @property
    def ir(self) -> Path:
        """The file of its LLVM IR."""
        return self.source.with_suffix(".ll")

    def text(self) -> str:
        """The whole module as LLVM IR, with the definitions in place of their declarations."""

        def defined(match: re.Match[str]) -> str:
            return self.definitions.get(match[1] or match[2], match[0])

        return _DECLARATION.sub(defined, self.ir.read_text("utf-8"))

    def compile(self) -> bytes:
        """An object file for this machine, from the disk cache if it is there."""
        text, target = self.text(), llvm.host_target(effort=self.effort)
        parts = (llvm.llvm_version(), repr(target), text)
        name = f"program-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"
        cached = _DOCUMENTS.read(name)
        if cached is not None:
            return base64.b64decode(cached["obj"])
        obj = llvm.compile_ir(text, target, optimise=False, inline=bool(self.definitions))
        _DOCUMENTS.write(name, {"obj": base64.b64encode(obj).decode()})
        return obj

    def load(self) -> llvm.LoadedObject:
        """Compile, and link into this process."""
        return llvm.load_object(self.compile(), self.exports)


def constant(name: str, value: int, bits: int = 64) -> str:
    """The definition of an integer that a C file declares `extern const`."""
    return f"@{name} = internal constant i{bits} {value}"


OBJECT_LAYOUT = {"object_bytes": constant("object_bytes", object.__basicsize__)}
"""Definitions for programs that read the type of an object by cpython.h; builds of CPython
differ."""
