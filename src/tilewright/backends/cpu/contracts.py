"""What is legal in tile IR before and after the legalization for CPUs."""

from __future__ import annotations

from functools import cache

from tilewright.backends.cpu.ops import Bf16DotOp, BlockTransposeOp
from tilewright.backends.cpu.passes.legalize import illegal_op
from tilewright.backends.manifest import legal_ops
from tilewright.ir import Contract
from tilewright.ir.types import PointerType, Type, element_of
from tilewright.transforms import layout_problem


def _type_problem(type_: Type) -> str | None:
    element = element_of(type_)
    if (element.element if isinstance(element, PointerType) else element).is_fp8:
        return f"values of {type_} have become their bits"
    return layout_problem(type_)


@cache
def front_end() -> Contract:
    """Before the first pass; also for texts of the first stage, which hold what its passes make."""
    return Contract("the front end", legal_ops(BlockTransposeOp, Bf16DotOp), layout_problem)


@cache
def legalized() -> Contract:
    """After cpu-legalize: what the lowering has code for."""
    return Contract(
        "cpu-legalize", legal_ops(BlockTransposeOp, Bf16DotOp), _type_problem, illegal_op
    )
