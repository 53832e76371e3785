"""Chooses the tensor-core instruction of a product, and how the warps share the result."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.types import dtype_of, shape_of
from tilewright.layout import (
    FRAGMENTS,
    Fragment,
    LinearLayout,
    operand_layout,
    result_layout,
)
from tilewright.ops import DotOp


@dataclass(frozen=True, slots=True)
class DotLayouts:
    """Layouts of one product, and the instruction that computes it."""

    fragment: Fragment
    a: LinearLayout
    b: LinearLayout
    result: LinearLayout


def fragment_for(op: DotOp) -> Fragment:
    """The instruction for the element types of a product."""
    element = dtype_of(op.a.type)
    if element.name == "f64":
        return FRAGMENTS["m8n8k4.f64"]
    if element.name == "f32":
        return FRAGMENTS["m16n8k8.tf32"]
    return FRAGMENTS["m16n8k32.b8" if element.bits == 8 else "m16n8k16.b16"]


def dot_layouts(op: DotOp, warps: int) -> DotLayouts:
    """Layouts for mma.sync: each warp computes a part of the result as square as it can."""
    fragment = fragment_for(op)
    m, n = shape_of(op.type)
    result = result_layout(fragment, (m, n), _share(m, n, warps, fragment))
    k = shape_of(op.a.type)[1]
    return DotLayouts(
        fragment,
        operand_layout(fragment, result, "a", k),
        operand_layout(fragment, result, "b", k),
        result,
    )


def _share(m: int, n: int, warps: int, fragment: Fragment) -> tuple[int, int]:
    """Warps along M and N: halve the longer side of a warp's part first."""
    along_m = along_n = 1
    while along_m * along_n < warps:
        rows, columns = m // along_m, n // along_n
        if rows > fragment.m and (rows >= columns or columns <= fragment.n):
            along_m *= 2
        elif columns > fragment.n:
            along_n *= 2
        else:
            along_m *= 2
    return along_m, along_n
