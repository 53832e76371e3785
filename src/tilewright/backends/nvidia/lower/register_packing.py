"""Elements packed into the 32- or 64-bit registers that memory instructions and shuffles move."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, memory_bits
from tilewright.ir.types import DType, PointerType
from tilewright.llvm import Val, llvm_type

Element = DType | PointerType


def packed_type(element: Element, count: int) -> str:
    """LLVM integer type of the packed registers that hold `count` elements."""
    bits = memory_bits(element)
    return "i64" if bits == 64 else "i32" if bits * count >= 32 else f"i{bits * count}"


def pack(state: GpuLowering, values: Sequence[Val], element: Element) -> list[Val]:
    """Pack elements, one a register, lowest first."""
    bits = memory_bits(element)
    per_register = max(1, 32 // bits) if bits < 32 else 1
    # Fewer elements than fill 32 bits make one narrower register.
    per_register = min(per_register, len(values))
    if per_register == 1:
        return [_to_bits(state, v, element) for v in values]
    packed: list[Val] = []
    # 16-bit floats stay floats: LLVM then cancels this against the pairs of packed_arithmetic.py
    raw = values if bits == 16 else [_to_bits(state, v, element) for v in values]
    vector = f"<{per_register} x {raw[0].type}>"
    for start in range(0, len(raw), per_register):
        joined = Val("poison", vector)
        for lane, value in enumerate(raw[start : start + per_register]):
            text = f"insertelement {vector} {joined}, {value.typed}, i64 {lane}"
            joined = state.code.let_here(text, vector)
        register_type = f"i{bits * per_register}"
        packed.append(
            state.code.let_here(f"bitcast {joined.typed} to {register_type}", register_type)
        )
    return packed


def unpack(state: GpuLowering, packed: Sequence[Val], count: int, element: Element) -> list[Val]:
    """The `count` elements of packed registers, one a register."""
    bits = memory_bits(element)
    raw: list[Val] = []
    for register in packed:
        per_register = int(register.type[1:]) // bits
        if per_register == 1:
            raw.append(register)
            continue
        # 16-bit floats stay floats, as in `pack`.
        lane_type = llvm_type(element) if bits == 16 else f"i{bits}"
        vector = f"<{per_register} x {lane_type}>"
        split = state.code.let_here(f"bitcast {register.typed} to {vector}", vector)
        raw += [
            state.code.let_here(f"extractelement {split.typed}, i64 {lane}", lane_type)
            for lane in range(per_register)
        ]
    return [_from_bits(state, v, element) for v in raw[:count]]


def _to_bits(state: GpuLowering, value: Val, element: Element) -> Val:
    code, register_type = state.code, f"i{memory_bits(element)}"
    if isinstance(element, PointerType):
        return code.let_here(f"ptrtoint {value.typed} to i64", "i64")
    if element.is_bool:
        # A bool is a byte in memory.
        return code.let_here(f"zext {value.typed} to i8", "i8")
    if value.type == register_type:
        return value
    return code.let_here(f"bitcast {value.typed} to {register_type}", register_type)


def _from_bits(state: GpuLowering, value: Val, element: Element) -> Val:
    code, type_ = state.code, llvm_type(element)
    if isinstance(element, PointerType):
        return code.let_here(f"inttoptr {value.typed} to ptr", "ptr")
    if element.is_bool:
        # Not a truncation: memory may hold any byte, and all but 0 are true.
        return code.let_here(f"icmp ne {value.typed}, 0", "i1")
    if value.type == type_:
        return value
    return code.let_here(f"bitcast {value.typed} to {type_}", type_)
