"""Elements packed into the 32-bit (or 64-bit) words that memory instructions and shuffles move."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.lower.gpu_state import State, memory_bits
from tilewright.ir.types import DType, PointerType
from tilewright.llvm import Val, llvm_type

Element = DType | PointerType


def word_type(element: Element, count: int) -> str:
    """LLVM integer type of the words that carry `count` elements."""
    bits = memory_bits(element)
    return "i64" if bits == 64 else "i32" if bits * count >= 32 else f"i{bits * count}"


def pack(state: State, values: Sequence[Val], element: Element) -> list[Val]:
    """Registers as words, lowest element first."""
    bits = memory_bits(element)
    per_word = max(1, 32 // bits) if bits < 32 else 1
    per_word = min(per_word, len(values))
    if per_word == 1:
        return [_to_bits(state, v, element) for v in values]
    words: list[Val] = []
    # 16-bit floats stay what they are, so that the pairs of packed_arithmetic.py meet their words
    raw = values if bits == 16 else [_to_bits(state, v, element) for v in values]
    vector = f"<{per_word} x {raw[0].type}>"
    for start in range(0, len(raw), per_word):
        joined = Val("poison", vector)
        for lane, value in enumerate(raw[start : start + per_word]):
            text = f"insertelement {vector} {joined}, {value.typed}, i64 {lane}"
            joined = state.code.let_here(text, vector)
        word = f"i{bits * per_word}"
        words.append(state.code.let_here(f"bitcast {joined.typed} to {word}", word))
    return words


def unpack(state: State, words: Sequence[Val], count: int, element: Element) -> list[Val]:
    """Words back as `count` registers."""
    bits = memory_bits(element)
    raw: list[Val] = []
    for word in words:
        per_word = int(word.type[1:]) // bits
        if per_word == 1:
            raw.append(word)
            continue
        lane_type = llvm_type(element) if bits == 16 else f"i{bits}"
        vector = f"<{per_word} x {lane_type}>"
        split = state.code.let_here(f"bitcast {word.typed} to {vector}", vector)
        raw += [
            state.code.let_here(f"extractelement {split.typed}, i64 {lane}", lane_type)
            for lane in range(per_word)
        ]
    return [_from_bits(state, v, element) for v in raw[:count]]


def _to_bits(state: State, value: Val, element: Element) -> Val:
    code, word = state.code, f"i{memory_bits(element)}"
    if isinstance(element, PointerType):
        return code.let_here(f"ptrtoint {value.typed} to i64", "i64")
    if element.is_bool:
        return code.let_here(f"zext {value.typed} to i8", "i8")
    if value.type == word:
        return value
    return code.let_here(f"bitcast {value.typed} to {word}", word)


def _from_bits(state: State, value: Val, element: Element) -> Val:
    code, wanted = state.code, llvm_type(element)
    if isinstance(element, PointerType):
        return code.let_here(f"inttoptr {value.typed} to ptr", "ptr")
    if element.is_bool:
        return code.let_here(f"icmp ne {value.typed}, 0", "i1")
    if value.type == wanted:
        return value
    return code.let_here(f"bitcast {value.typed} to {wanted}", wanted)
