"""Programs of hand-written LLVM IR: `.ll` files, and the definitions that Python gives them.

The files hold plain LLVM IR, without placeholders. What Python decides stands in front of them:

    structures  a `ctypes.Structure` is the one table of a structure's fields: Python reads and
                writes through it, the IR through accessor functions that are generated from it.
                Of `class Entry` with a field `size` the text may call

                    @Entry.size(ptr) -> i64            its value
                    @Entry.set_size(ptr, i64)          stores it
                    @Entry.at_size(ptr) -> ptr         its address

                and use the type `%Entry`
    constants   `LIMIT = 8` is a function of no arguments, `call i64 @LIMIT()`
    extra       definitions as text, for what differs by platform: names, types, bytes

All of these are `alwaysinline`, and LLVM inlines such functions at every level of optimisation:
they cost nothing in the machine code, nor do functions that only divide a long one.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from tilewright import llvm
from tilewright.support.data_class import dataclass
from tilewright.support.disk_cache import Documents

__all__ = ["NativeProgram"]

_DOCUMENTS = Documents("native")

_ACCESSOR = re.compile(r"@(\w+)\.(?:(set|at)_)?(\w+)\(")


@dataclass(frozen=True)
class NativeProgram:
    """Hand-written LLVM IR that is compiled and loaded as one module.

    files: their functions may call each other; exports: functions whose addresses `load` gives;
    level: of optimisation, as in `compile_ir`; effort: of the code generator, as in `host_target`.
    0 is 4 times as fast as 1, whose code runs in three quarters of the time.
    """

    files: Sequence[Path]
    exports: Sequence[str]
    structures: Sequence[type[ctypes.Structure]] = ()
    constants: Mapping[str, int] = field(default_factory=dict[str, int])
    extra: str = ""
    level: int = 0
    effort: int = 0

    def text(self) -> str:
        """The whole module as LLVM IR."""
        body = "\n".join(path.read_text("utf-8") for path in self.files)
        types = [_type_definition(structure) for structure in self.structures]
        constants = [_constant(name, value) for name, value in self.constants.items()]
        parts = [*types, *constants, *_accessors(body, self.structures), self.extra, body]
        return "\n".join(parts)

    def compile(self) -> bytes:
        """An object file for this machine, from the disk cache if it is there."""
        text, target = self.text(), llvm.host_target(effort=self.effort)
        parts = (llvm.llvm_version(), repr(target), str(self.level), text)
        name = f"program-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"
        kept = _DOCUMENTS.read(name)
        if kept is not None:
            return base64.b64decode(kept["obj"])
        obj = llvm.compile_ir(text, target, self.level, inline=True).obj
        _DOCUMENTS.write(name, {"obj": base64.b64encode(obj).decode()})
        return obj

    def load(self) -> llvm.LoadedObject:
        """Compile, and link into this process."""
        return llvm.load_object(self.compile(), self.exports)


def _type_definition(structure: type[ctypes.Structure]) -> str:
    members = ", ".join(_ir_type(type_) for _, type_ in _fields(structure))
    return f"%{structure.__name__} = type {{ {members} }}"


def _fields(structure: type[ctypes.Structure]) -> list[tuple[str, Any]]:
    return [(name, type_) for name, type_, *_ in structure._fields_]


def _ir_type(type_: Any) -> str:
    """The LLVM type of a ctypes field. Both lay structures out as the platform's C does."""
    if issubclass(type_, ctypes.Structure):
        return f"%{type_.__name__}"
    if issubclass(type_, ctypes.Array):
        return f"[{type_._length_} x {_ir_type(type_._type_)}]"
    # `contents`: what ctypes.POINTER makes has no public base class
    if type_ in (ctypes.c_void_p, ctypes.c_char_p) or hasattr(type_, "contents"):
        return "ptr"
    return f"i{8 * ctypes.sizeof(type_)}"


def _constant(name: str, value: int) -> str:
    return f"define internal i64 @{name}() alwaysinline nounwind {{\n  ret i64 {value}\n}}"


def _accessors(body: str, structures: Sequence[type[ctypes.Structure]]) -> list[str]:
    """Definitions of the accessors that the text calls."""
    named = {structure.__name__: structure for structure in structures}
    # only these, since LLVM parses each
    used = sorted(set(_ACCESSOR.findall(body)))
    return [_accessor(named[name], kind, member) for name, kind, member in used if name in named]


def _accessor(structure: type[ctypes.Structure], kind: str, member: str) -> str:
    fields = _fields(structure)
    index = [name for name, _ in fields].index(member)
    name, type_ = structure.__name__, _ir_type(fields[index][1])
    address = f"  %at = getelementptr inbounds %{name}, ptr %self, i32 0, i32 {index}\n"
    body, result, parameter = {
        "": (f"  %value = load {type_}, ptr %at\n  ret {type_} %value", type_, ""),
        "set": (f"  store {type_} %value, ptr %at\n  ret void", "void", f", {type_} %value"),
        "at": ("  ret ptr %at", "ptr", ""),
    }[kind]
    function = f"{kind}_{member}" if kind else member
    return (
        f"define internal {result} @{name}.{function}(ptr %self{parameter}) "
        f"alwaysinline nounwind {{\n{address}{body}\n}}"
    )
