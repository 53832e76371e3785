"""Verification that a machine has the instructions of the AVX-512 ops."""

from __future__ import annotations

from tilewright.ir import Op

# by name: the classes are imported only where an expansion emits one
_AVX512 = ("arith.exponent", "arith.significand", "arith.scale", "arith.lookup")
_AVX512_BF16 = "arith.round_normal_to_bf16"


def missing_instruction(op: Op, avx512: bool = False, rounds_bf16: bool = False) -> str | None:
    """The problem with an op of `avx512_ops` on a machine; None if it has the instruction."""
    if op.opcode in _AVX512 and not avx512:
        return f"{op.opcode} is an instruction of AVX-512, which the target lacks"
    if op.opcode == _AVX512_BF16 and not rounds_bf16:
        return f"{op.opcode} is an instruction of AVX512-BF16, which the target lacks"
    return None
