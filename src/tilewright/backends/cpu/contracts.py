"""Contracts of tile IR before and after the legalization for CPUs."""

from __future__ import annotations

from functools import cache

from tilewright.backends.cpu.ops import Bf16DotOp, BlockTransposeOp
from tilewright.backends.cpu.passes.legalize import illegal_op
from tilewright.backends.manifest import legal_ops
from tilewright.ir import Contract, Op
from tilewright.ir.types import PointerType, Type, element_of
from tilewright.llvm import TargetCpu
from tilewright.transforms import layout_problem
from tilewright.transforms.expand import missing_instruction


def _type_problem(type_: Type) -> str | None:
    element = element_of(type_)
    if (element.element if isinstance(element, PointerType) else element).is_fp8:
        return f"values of {type_} are stored as their bits"
    return layout_problem(type_)


@cache
def front_end() -> Contract:
    """The contract before the first pass."""
    return Contract("the front end", legal_ops(BlockTransposeOp, Bf16DotOp), layout_problem)


@cache
def texts_for(cpu: TargetCpu) -> Contract:
    """The contract of texts of the first stage for a CPU: ops of front ends and of its passes."""
    dots = {*cpu.dots, *cpu.tile_dots}

    def problem(op: Op) -> str | None:
        if isinstance(op, Bf16DotOp) and "bf16" not in dots:
            return f"{op.opcode} is an instruction that {cpu.name} lacks"
        return missing_instruction(op, cpu.has_avx512, cpu.rounds_to_bf16)

    ops = legal_ops(BlockTransposeOp, Bf16DotOp)
    return Contract("the front end", ops, layout_problem, problem)


@cache
def legalized() -> Contract:
    """The contract after cpu-legalize: ops that the lowering has code for."""
    return Contract(
        "cpu-legalize", legal_ops(BlockTransposeOp, Bf16DotOp), _type_problem, illegal_op
    )
