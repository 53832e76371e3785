"""Rewrite dots to those of tensor cores, or to `nvidia.dot_fma`.

    %c = tile.dot %a, %b, %acc {precision = "ieee"} : tile<16x16xf32>
    %d = tile.dot %h, %k, %sum : tile<16x16xf16>                (%h, %k, %sum: tile<16x16xf16>)
becomes
    %c = nvidia.dot_fma %a, %b, %acc : tile<16x16xf32>
    %0 = arith.cast %sum : tile<16x16xf32>
    %1 = tile.dot %h, %k, %0 : tile<16x16xf32>
    %d = arith.cast %1 : tile<16x16xf16>

* fp8 where the tensor cores lack it: in f16, which holds it exactly
* accumulators in f16: in f32, rounded at the end
* fp32 more exact than tf32: operands are split into parts, and the dots of parts are added, the
  smallest first:

    a = ah + al, b = bh + bl                      tf32x3, bf16x3: al bh + ah bl + ah bh
    a = ah + am + al ...                          bf16x6: the dots down to am bm

* tiles smaller than an instruction, of numbers of 16 bits or less: padded, see _pad_dots.py
* exact fp32, other small tiles, and types that the tensor cores of the architecture lack:
  FMAs, with operands of the accumulator's type
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.layouts.mma_layouts import find_fragment
from tilewright.backends.nvidia.ops import FmaDotOp
from tilewright.backends.nvidia.passes._pad_dots import is_worth_padding, padded_dot
from tilewright.ir import Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import DType, bf16, dtype_of, f16, f32, i32, shape_of
from tilewright.ops import (
    DotOp,
)
from tilewright.support.data_class import dataclass
from tilewright.transforms.expand import converted, expand

_TF32_BITS = -1 << 13
"""Mask of the bits of f32 that tf32 has: all but the last 13 of its 23 fraction bits."""

_PARTS = {"tf32x3": 2, "bf16x3": 2, "bf16x6": 3}


def illegal_dot(op: Op, arch: Arch) -> str | None:
    """The error of a dot that an architecture's tensor cores do not compute; None if they do."""
    assert isinstance(op, DotOp)
    a, _, acc = (dtype_of(v.type) for v in op.operands)
    if not (_has_type(a, arch) and _fits(op)):
        return f"tensor cores do not multiply {op.a.type} and {op.b.type}"
    if acc is f16 or (a is f32 and op.precision != "tf32"):
        return f"tensor cores do not compute {op.precision} dots of {a} in {acc}"
    return None


@dataclass(frozen=True)
class LegalizeDots(Pass, name="nvidia-legalize-dots"):
    """Leave only dots that the lowering computes. capability: of the architecture."""

    capability: int = 90

    def run(self, function: Function) -> bool:
        arch = row_for(self.capability)

        def legalize(op: Op, builder: Builder) -> Value | None:
            assert isinstance(op, DotOp)
            return _legalized(op, builder, arch)

        return expand(function, {DotOp: legalize})


def _legalized(op: DotOp, builder: Builder, arch: Arch) -> Value | None:
    """The legal form of a dot; None if tensor cores compute it unchanged."""
    kinds = [dtype_of(v.type) for v in op.operands]
    if kinds[2] is f16:
        wide = DotOp(op.a, op.b, converted(builder, op.acc, f32), op.precision, op.max_imprecise)
        return converted(builder, _legal_value(wide, builder, arch), f16)
    if kinds[0].is_fp8 and not arch.mma_forms(kinds[0].name, "f32"):
        # f16 holds every fp8 number exactly.
        a, b = (converted(builder, v, f16) for v in (op.a, op.b))
        wide = DotOp(a, b, op.acc, op.precision, op.max_imprecise)
        return _legal_value(wide, builder, arch)
    fits, has_type = _fits(op), _has_type(kinds[0], arch)
    # Before the fallback to FMA, which for narrow types costs more than padding.
    if has_type and not fits and is_worth_padding(op):
        return padded_dot(op, builder)
    if fma_reason(op, arch):
        return _by_fma(op, builder, kinds[2])
    if kinds[0] is f32 and op.precision in _PARTS:
        return _in_parts(op, builder)
    return None


def fma_reason(op: DotOp, arch: Arch) -> str:
    """Why tensor cores do not compute a dot that is not padded; "" if they do."""
    kind = dtype_of(op.a.type)
    if not _has_type(kind, arch):
        return f"tensor cores of {arch.name} do not multiply {kind}"
    if not _fits(op):
        return "the tiles are smaller than an instruction of the tensor cores"
    exact = kind is f32 and op.precision == "ieee"
    return "tensor cores do not compute exact fp32 dots (ieee)" if exact else ""


def _legal_value(op: DotOp, builder: Builder, arch: Arch) -> Value:
    """The value of a new dot: its own, or that of its legal form."""
    builder.emit(op)
    value = _legalized(op, builder, arch)
    if value is None:
        return op.result
    Rewriter.erase(op)
    return value


def _fits(op: DotOp) -> bool:
    """Whether the tiles are as large as an instruction."""
    *_, m, k = shape_of(op.a.type)
    return find_fragment(dtype_of(op.a.type), (m, shape_of(op.type)[-1], k)) is not None


def _has_type(kind: DType, arch: Arch) -> bool:
    """Whether tensor cores have the type of the operands."""
    name = "tf32" if kind is f32 else kind.name
    return any(form.operand == name for form in arch.mma)


def _by_fma(op: DotOp, builder: Builder, result: DType) -> Value:
    # FMA has one type; integers are accumulated in i32.
    kind = result if result.is_float else i32
    a, b = (converted(builder, v, kind) for v in (op.a, op.b))
    return builder.value(FmaDotOp(a, b, op.acc))


def _in_parts(op: DotOp, builder: Builder) -> Value:
    count, in_bf16 = _PARTS[op.precision], op.precision.startswith("bf16")
    left, right = (_split(builder, v, count, in_bf16) for v in (op.a, op.b))
    acc = op.acc
    # dots of the small parts first, so that large ones do not absorb their sum
    for order in reversed(range(count)):
        for i in reversed(range(order + 1)):
            # The precision concerns parts in f32 only.
            acc = builder.value(DotOp(left[i], right[order - i], acc, "tf32"))
    return acc


def _split(builder: Builder, x: Value, count: int, in_bf16: bool) -> Sequence[Value]:
    """Parts of f32 values, the largest first; infinities and NaN are in the first part only."""
    parts: list[Value] = []
    for i in range(count):
        part = _leading(builder, x, in_bf16)
        parts.append(part)
        if i + 1 < count:
            rest = builder.sub(x, converted(builder, part, f32))
            # inf - inf is NaN: nothing remains to split
            finite = builder.eq(rest, rest)
            x = builder.select(finite, rest, 0)
    return parts


def _leading(builder: Builder, x: Value, in_bf16: bool) -> Value:
    """The first bits of f32 values, as bf16 or as f32."""
    if in_bf16:
        return builder.cast(x, bf16)
    return builder.bitcast(builder.bit_and(builder.bitcast(x, i32), _TF32_BITS), x.type)
