"""Arithmetic on pairs of 16-bit floats: one instruction (`add.f16x2`) for two registers.

    %a = fadd half %x0, %y0             %x = <%x0, %x1>
    %b = fadd half %x1, %y1      ->     %s = fadd <2 x half> %x, <%y0, %y1>
                                        %a, %b = the elements of %s

LLVM cancels the elements of one operation that become the pair of the next. Where the architecture
has no bf16 arithmetic, legalize_arithmetic.py has made it fp32, and nothing is packed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering
from tilewright.ir import Op
from tilewright.ir.types import DType, element_of
from tilewright.llvm import Val

_PACKED = frozenset(
    f"arith.{name}" for name in ("add", "sub", "mul", "fma", "min", "max", "neg", "abs")
)

One = Callable[[GpuLowering, Op, list[Val]], Val]


def is_packed(state: GpuLowering, op: Op) -> bool:
    """Whether an element-wise op takes two registers at a time."""
    element = element_of(op.results[0].type)
    if not isinstance(element, DType) or element.name not in ("f16", "bf16"):
        return False
    if element.name == "bf16" and not state.arch.bf16_arithmetic:
        return False
    if len(state.registers_of(op.operands[0])) < 2 or op.opcode not in _PACKED:
        return False
    return all(element_of(v.type) is element for v in op.operands)


def lower_packed(state: GpuLowering, op: Op, one: One) -> None:
    """Lower an op for which `is_packed` holds; one: how a single operation is emitted.

    Pairs of the same operands are computed once.
    """
    columns = [state.registers_of(v) for v in op.operands]
    emitted: dict[tuple[str, ...], tuple[Val, Val]] = state.emitted_of(op)
    results: list[Val] = []
    # Register counts are powers of two: no register is left without a partner.
    for i in range(0, len(columns[0]), 2):
        key = tuple(v.text for column in columns for v in column[i : i + 2])
        if key not in emitted:
            pairs = [_joined(state, column[i : i + 2]) for column in columns]
            emitted[key] = _split(state, one(state, op, pairs))
        results += emitted[key]
    state.set_registers(op.results[0], results)


def _joined(state: GpuLowering, values: Sequence[Val]) -> Val:
    vector = f"<2 x {values[0].type}>"
    pair = Val("poison", vector)
    for lane, value in enumerate(values):
        text = f"insertelement {pair.typed}, {value.typed}, i64 {lane}"
        pair = state.code.let_here(text, vector)
    return pair


def _split(state: GpuLowering, pair: Val) -> tuple[Val, Val]:
    low, high = (
        state.code.let_here(f"extractelement {pair.typed}, i64 {lane}", pair.element)
        for lane in range(2)
    )
    return low, high
