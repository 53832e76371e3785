"""Chooses the tensor-core instruction of a product, and how the warps share the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import ge

from tilewright.ir.types import DType, dtype_of, shape_of
from tilewright.layout import (
    FRAGMENTS,
    REGISTER,
    Fragment,
    LinearLayout,
    log2,
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


def find_fragment(dtype: DType, shape: tuple[int, int, int]) -> Fragment | None:
    """The instruction for operands of a type and a product of (m, n, k); None if it has none."""
    names = {"f64": ("m8n8k4.f64",), "f32": ("m16n8k8.tf32",)}.get(dtype.name)
    if names is None:
        names = ("m16n8k32.b8",) if dtype.bits == 8 else ("m16n8k16.b16", "m16n8k8.b16")
    fragments = (FRAGMENTS[name] for name in names)
    sizes = ((f, (f.m, f.n, f.k)) for f in fragments)
    return next((f for f, size in sizes if all(map(ge, shape, size))), None)


def fragment_for(op: DotOp) -> Fragment:
    """The instruction of a product; see prepare_dots.py for the products that have one."""
    *_, m, k = shape_of(op.a.type)
    found = find_fragment(dtype_of(op.a.type), (m, shape_of(op.type)[-1], k))
    assert found is not None, op
    return found


def dot_layouts(op: DotOp, warps: int) -> DotLayouts:
    """Layouts for mma.sync: each warp computes a part of the result as square as it can."""
    fragment = fragment_for(op)
    *batch, m, n = shape_of(op.type)
    result = result_layout(fragment, (m, n), _share(m, n, warps, fragment))
    k = shape_of(op.a.type)[-1]
    layouts = (
        operand_layout(fragment, result, "a", k),
        operand_layout(fragment, result, "b", k),
        result,
    )
    return DotLayouts(fragment, *(_batched(layout, batch) for layout in layouts))


def _batched(layout: LinearLayout, batch: Sequence[int]) -> LinearLayout:
    """The layout for several matrices, each spread like one, in further registers."""
    for count in batch:
        bases = {name: [(0, *basis) for basis in layout.bases(name)] for name in layout.in_names}
        rest = (0,) * len(layout.outs)
        bases[REGISTER] += [(1 << bit, *rest) for bit in range(log2(count))]
        shape = (count, *layout.shape)
        layout = LinearLayout.from_bases(bases, {f"dim{i}": s for i, s in enumerate(shape)})
    return layout


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
