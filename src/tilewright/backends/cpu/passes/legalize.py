"""Expands ops that the CPU lowering has no code for.

    %s = arith.add %h, %h : tile<64xf16>
    mem.store %p, %b                              (%p: tile<64xptr<bf16>>, %b: tile<64xbf16>)
becomes
    %0 = arith.cast %h : tile<64xf32>
    %1 = arith.cast %h : tile<64xf32>
    %2 = arith.add %0, %1 : tile<64xf32>
    %s = arith.cast %2 : tile<64xf16>
    mem.store %p, %b                              (%p: tile<64xptr<u16>>, %b: tile<64xu16>)

After the pass there are no sorts, no elementary functions but those that LLVM has, no arithmetic on
f16, no bf16 and fp8 values but their bits, and no casts that LLVM lacks. Dots are of f32, f64 and
i32, or of bf16 and bytes where the CPU has instructions for them.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from tilewright.backends.cpu.microkernel import TILE_ROW_BYTES, TILE_ROWS
from tilewright.backends.cpu.ops import Bf16DotOp
from tilewright.ir import Builder, Function, Op, Pass, Value
from tilewright.ir.types import (
    bf16,
    dtype_of,
    element_of,
    f32,
    i8,
    i32,
    shape_of,
    u8,
    u16,
)
from tilewright.ops import (
    AbsOp,
    AddOp,
    CastOp,
    CompareOp,
    DivOp,
    DotOp,
    FmaOp,
    MathOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    PrintOp,
    RemOp,
    SortOp,
    SubOp,
)
from tilewright.support.data_class import dataclass
from tilewright.transforms.expand import (
    EXPANSIONS,
    Expansion,
    expand,
    expand_cast,
    expand_math,
    expand_sort,
    is_native_cast,
    is_small_float,
    store_as_bits,
    widen_dot,
    widen_elementwise,
    widen_extremum,
    widen_print,
    widen_sign,
)

_GROUPS = {"bf16": 2, "int8": 4}
"""Kinds of grouped dots: how many neighbours along K an instruction multiplies and adds."""

_MOST_BYTES = 1 << 17
"""Limit of an operand that the micro-kernel copies to the stack."""

_MOST_ROW_BYTES = 1 << 11
"""Limit of a row of A: the micro-kernel for tiles copies 32 columns of B of that length to the
stack."""


def _grouped_kind(op: DotOp) -> str | None:
    """The kind of a dot that an instruction for groups can compute, else None."""
    a, b, acc = (dtype_of(v.type) for v in op.operands)
    if a is bf16 and b is bf16 and acc is f32:
        return "bf16"
    return "int8" if a in (i8, u8) and b is i8 and acc is i32 else None


def _fits_groups(op: DotOp, group: int) -> bool:
    """Whether the sizes are those that the micro-kernel for groups takes."""
    (m, k), n = shape_of(op.a.type)[-2:], shape_of(op.b.type)[-1]
    return n % 16 == 0 and k % (2 * group) == 0 and max(m, 16) * k <= _MOST_BYTES


def _fits_tiles(op: DotOp) -> bool:
    """Whether the sizes are those that the micro-kernel for tiles takes."""
    (m, k), n = shape_of(op.a.type)[-2:], shape_of(op.b.type)[-1]
    row = k * dtype_of(op.a.type).bytes
    return m % TILE_ROWS == n % TILE_ROWS == row % TILE_ROW_BYTES == 0 and row <= _MOST_ROW_BYTES


def _expand_dot(
    op: Op, builder: Builder, dots: Collection[str], tiles: Collection[str]
) -> Value | None:
    """A dot of types that the CPU multiplies; dots, tiles: kinds with an instruction."""
    assert isinstance(op, DotOp)
    kind = _grouped_kind(op)
    in_tiles = kind in tiles and _fits_tiles(op)
    if kind is None or not (in_tiles or (kind in dots and _fits_groups(op, _GROUPS[kind]))):
        return widen_dot(op, builder)
    if kind == "int8":
        return None
    a, b = (builder.bitcast(x, u16) for x in (op.a, op.b))
    return builder.value(Bf16DotOp(a, b, op.acc, op.precision, op.max_imprecise))


_WIDEN: dict[type[Op], Expansion] = {
    PrintOp: widen_print,
    NegOp: widen_sign,
    AbsOp: widen_sign,
    MinOp: widen_extremum,
    MaxOp: widen_extremum,
    **dict.fromkeys(
        (AddOp, SubOp, MulOp, DivOp, RemOp, CompareOp, FmaOp, MathOp), widen_elementwise
    ),
}
"""Expansions to arithmetic in types that CPUs compute in; they make casts and functions of f32."""


def illegal_op(op: Op) -> str | None:
    """The reason that the lowering of this backend has no code for an op; None if it has."""
    elements = [element_of(v.type) for v in op.operands]
    if (type(op) in _WIDEN or isinstance(op, DotOp)) and any(map(is_small_float, elements)):
        return f"{op.opcode} is computed in 32 bits or more, not in {elements[0]}"
    grouped = isinstance(op, Bf16DotOp) or (isinstance(op, DotOp) and _grouped_kind(op) == "int8")
    if isinstance(op, DotOp) and not grouped and len({*elements}) > 1:
        return f"a dot's operands and accumulator have one type, not {elements}"
    if isinstance(op, MathOp) and op.function in EXPANSIONS:
        return f"{op.function} is expanded"
    if isinstance(op, SortOp):
        return "sorts are expanded"
    if isinstance(op, CastOp) and not is_native_cast(op):
        return f"casts from {op.x.type} to {op.type} are expanded"
    return None


@dataclass(frozen=True)
class Legalize(Pass, name="cpu-legalize"):
    """Leave only what the lowering accepts.

    fma: a * b + c is one instruction of the machine; dots, tiles: kinds of dots of narrow types,
    "bf16" and "int8", with an instruction on vectors and on tiles; avx512: there are instructions
    for the parts of floats; rounds_bf16: there is one that rounds to bf16
    """

    fma: bool = True
    dots: tuple[str, ...] = ()
    tiles: tuple[str, ...] = ()
    avx512: bool = False
    rounds_bf16: bool = False

    def run(self, function: Function) -> bool:
        # in this order: widening makes functions of f32 and casts, and functions make casts
        dot = partial(_expand_dot, dots=self.dots, tiles=self.tiles)
        widened = expand(function, _WIDEN | {DotOp: dot, SortOp: expand_sort})
        functions = partial(expand_math, fma=self.fma, avx512=self.avx512)
        expanded = expand(function, {MathOp: functions})
        casts = partial(expand_cast, rounds_bf16=self.rounds_bf16)
        cast_by_hand = expand(function, {CastOp: casts})
        # First in the `or`, which would skip it after a true operand.
        return store_as_bits(function) or widened or expanded or cast_by_hand
