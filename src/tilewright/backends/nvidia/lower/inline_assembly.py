"""Assembly of the user: its text once for each group of the thread's own elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from tilewright.backends.nvidia.layouts.tile_layout import layout_of, register_count
from tilewright.backends.nvidia.lower.combine_regions import register_groups
from tilewright.backends.nvidia.lower.gpu_lowering import (
    GpuLowering,
    lowering,
    memory_bits,
)
from tilewright.backends.nvidia.lower.register_packing import Element, pack, unpack
from tilewright.ir import Value
from tilewright.ir.types import TileType, element_of
from tilewright.llvm import Code, Val
from tilewright.ops import AsmOp, TimerOp, VolatileAsmOp
from tilewright.support import errors

_TYPES = {"r": "i32", "h": "i16", "l": "i64", "f": "float", "d": "double", "c": "i8", "b": "i1"}
"""LLVM types of the registers of a constraint."""


@lowering(AsmOp, VolatileAsmOp)
def _assembly(state: GpuLowering, op: AsmOp | VolatileAsmOp) -> None:
    columns = [state.registers_of(value) for value in op.inputs]
    counts = [register_count(value) for value in op.results]
    results: list[list[Val]] = [[Val("poison", "")] * count for count in counts]
    call = _Call(state, op)
    for group in _groups(op):
        found = call.emit([[column[r] for r in group] for column in columns])
        for result, values in zip(results, found, strict=True):
            for r, value in zip(group, values, strict=True):
                result[r] = value
    for value, registers in zip(op.results, results, strict=True):
        state.set_registers(value, registers)


@lowering(TimerOp)
def _timer(state: GpuLowering, op: TimerOp) -> None:
    state.set_registers(op.result, [state.asm("mov.u64 $0, %globaltimer;", "=l", "i64")])


def _groups(op: AsmOp | VolatileAsmOp) -> list[list[int]]:
    result = op.results[0]
    if isinstance(result.type, TileType):
        return register_groups(layout_of(result), op.pack)
    return [[0]] if op.pack == 1 else []


class _Call:
    """How groups of elements become operands, and the results of the text elements."""

    def __init__(self, state: GpuLowering, op: AsmOp | VolatileAsmOp) -> None:
        self.state, self.op = state, op
        letters = [part.strip() for part in op.constraints.split(",")]
        letters = [part for part in letters if part and part[0] != "~"]
        outputs = [part for part in letters if part.startswith("=")]
        self.types = [self._type(part.lstrip("=&")) for part in outputs]
        self.inputs = [
            self.types[int(part)] if part.isdigit() else self._type(part)
            for part in letters[len(outputs) :]
        ]
        needed = sum(self._registers(value) for value in op.results)
        given = sum(self._registers(value) for value in op.inputs)
        if (needed, given) != (len(self.types), len(self.inputs)):
            self._fail(f"the constraints must be those of {needed} results and {given} arguments")

    def _type(self, letter: str) -> str:
        if letter not in _TYPES:
            self._fail(f"a register '{letter}' has no meaning here")
        return _TYPES[letter]

    def _fail(self, reason: str) -> NoReturn:
        doing = f"run the assembly '{self.op.constraints}' here"
        advice = "write it in the language, or launch the kernel on a GPU"
        raise errors.InvalidOperation(doing, reason, advice, loc=self.op.loc)

    def _registers(self, value: Value) -> int:
        share = _share(element_of(value.type), self.op.pack)
        return self.op.pack // share

    def emit(self, groups: Sequence[Sequence[Val]]) -> list[list[Val]]:
        """The results' groups for those of the inputs."""
        code = self.state.code
        packed = [
            register
            for value, group in zip(self.op.inputs, groups, strict=True)
            for register in pack(self.state, group, element_of(value.type))
        ]
        operands = [self._converted(x, type_) for x, type_ in zip(packed, self.inputs, strict=True)]
        returned = self.types[0] if len(self.types) == 1 else f"{{ {', '.join(self.types)} }}"
        kind = "asm sideeffect" if isinstance(self.op, VolatileAsmOp) else "asm"
        arguments = ", ".join(value.typed for value in operands)
        attributes = " #1" if isinstance(self.op, VolatileAsmOp) else ""
        text, constraints = _quoted(self.op.text), "".join(self.op.constraints.split())
        call = f'call {returned} {kind} "{text}", "{constraints}"({arguments}){attributes}'
        got = code.let_here(call, returned)
        registers = iter(_fields(code, got, self.types))
        return [self._elements(value, registers) for value in self.op.results]

    def _elements(self, value: Value, registers: Iterator[Val]) -> list[Val]:
        element, pack_ = element_of(value.type), self.op.pack
        share = _share(element, pack_)
        wanted = f"i{memory_bits(element) * share}"
        taken = [self._converted(next(registers), wanted) for _ in range(pack_ // share)]
        return unpack(self.state, taken, pack_, element)

    def _converted(self, value: Val, wanted: str) -> Val:
        """The bits of a register in another type: cut, or extended by zeros."""
        code = self.state.code
        if value.type == wanted:
            return value
        if value.type in ("float", "double"):
            bits = "i32" if value.type == "float" else "i64"
            value = code.let_here(f"bitcast {value.typed} to {bits}", bits)
        target = {"float": "i32", "double": "i64"}.get(wanted, wanted)
        if value.type != target:
            change = "trunc" if int(value.type[1:]) > int(target[1:]) else "zext"
            value = code.let_here(f"{change} {value.typed} to {target}", target)
        if target != wanted:
            return code.let_here(f"bitcast {value.typed} to {wanted}", wanted)
        return value


def _fields(code: Code, got: Val, types: Sequence[str]) -> list[Val]:
    if len(types) == 1:
        return [got]
    return [code.let_here(f"extractvalue {got.typed}, {i}", type_) for i, type_ in enumerate(types)]


def _share(element: Element, pack_: int) -> int:
    """Elements of a group that share a register."""
    return min(pack_, max(1, 32 // memory_bits(element)))


def _quoted(text: str) -> str:
    """As a string of LLVM."""
    plain = (c if 32 <= ord(c) < 127 and c not in '"\\' else f"\\{ord(c):02X}" for c in text)
    return "".join(plain)
