"""Atomic additions to consecutive elements by one instruction.

    fp32         red.global.add.v4.f32               of v2, v4 on sm_90
    fp16, bf16   red.global.add.noftz.v4.f16x2       of one register with two elements (fp16 on
                                                     sm_60, bf16 on sm_90), of v2, v4 on sm_90

`red` where the old value has no use, else `atom`. PTX ISA, "red" and "atom".
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.layouts.access_vectors import vector_length
from tilewright.backends.nvidia.lower.global_memory import both, fields
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering
from tilewright.backends.nvidia.lower.register_packing import pack, unpack
from tilewright.ir.types import DType, dtype_of
from tilewright.llvm import Val
from tilewright.ops import AtomicOp

_VECTOR_BYTES = 16
_PACKED_BYTES = 4


def elements_of_one(state: GpuLowering, op: AtomicOp) -> int:
    """How many elements one instruction adds."""
    most = _most_bytes(state, dtype_of(op.type)) if op.kind == "add" else 0
    return vector_length(state.alignments, op.pointer, op.mask, most) if most else 1


def _most_bytes(state: GpuLowering, element: DType) -> int:
    """Bytes of the widest instruction; 0 if there is none for several elements."""
    is_packed = element.name == "f16" or (element.name == "bf16" and state.arch.bf16_atomic_add)
    if element.name != "f32" and not is_packed:
        return 0
    if state.arch.vector_atomic_add:
        return _VECTOR_BYTES
    return 0 if element.name == "f32" else _PACKED_BYTES


def add_vectors(state: GpuLowering, op: AtomicOp, length: int, owner: Val | None) -> list[Val]:
    """Add `length` elements by each instruction; returns the old values, undefined if unused."""
    pointers, values = state.registers_of(op.pointer), state.registers_of(op.operand)
    masks = None if op.mask is None else state.registers_of(op.mask)
    results: list[Val] = []
    for start in range(0, len(pointers), length):
        mask = owner if masks is None else both(state, owner, masks[start])
        results += _add(state, op, pointers[start], values[start : start + length], mask)
    return results


def _add(
    state: GpuLowering, op: AtomicOp, pointer: Val, values: Sequence[Val], mask: Val | None
) -> list[Val]:
    element, is_used = dtype_of(op.type), bool(op.result.uses)
    words = values if element.name == "f32" else pack(state, values, element)
    constraint = "f" if element.name == "f32" else "r"
    outputs = len(words) if is_used else 0
    # Results come first among the operands of inline assembly, then the address, then the numbers.
    targets = f"{_braced(range(outputs))}, " if is_used else ""
    sources = _braced(range(outputs + 1, outputs + 1 + len(words)))
    text = f"{_name(op, element, len(words))} {targets}[${outputs}], {sources};"
    constraints = [f"={constraint}"] * outputs + ["l"] + [constraint] * len(words)
    operands = [pointer, *words]
    if mask is not None:
        text = f"@${outputs + 1 + len(words)} {text}"
        constraints, operands = [*constraints, "b"], [*operands, mask]
    type_ = _result_type(words[0].type, outputs)
    got = state.asm(text, ",".join([*constraints, "~{memory}"]), type_, *operands)
    if not is_used:
        return list(values)
    found = fields(state, got, outputs, words[0].type)
    return list(found) if element.name == "f32" else unpack(state, found, len(values), element)


def _name(op: AtomicOp, element: DType, words: int) -> str:
    """The instruction without operands: the op's fences order it."""
    word = "atom" if op.result.uses else "red"
    vector = f".v{words}" if words > 1 else ""
    kind = f"add{vector}.f32" if element.name == "f32" else f"add.noftz{vector}.{element.name}x2"
    return f"{word}.relaxed.{op.scope}.global.{kind}"


def _braced(numbers: range) -> str:
    names = ", ".join(f"${number}" for number in numbers)
    return f"{{{names}}}" if len(numbers) > 1 else names


def _result_type(word: str, count: int) -> str:
    if count == 0:
        return "void"
    return word if count == 1 else f"{{ {', '.join([word] * count)} }}"
