"""Ops that are single AVX-512 instructions: parts of a float, and tables in registers.

    %k = arith.exponent %x                          vgetexp      10.0 -> 3.0
    %m = arith.significand %x                       vgetmant     10.0 -> 1.25
    %y = arith.scale %m, %k                         vscalef      1.25, 3.0 -> 10.0
    %c = arith.lookup %i {table = [0.5, ...]}       vpermps      16 or 32 numbers of f32
    %b = arith.round_normal_to_bf16 %x              vcvtneps2bf16, of AVX512-BF16

The first three handle subnormal numbers, infinities and NaNs as logarithms and exponentials need,
which would cost selects with other instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from tilewright.ir import Op, Trait, Value, attr, floating, integer, operand, reference
from tilewright.ir.types import Type, dtype_of, f32, f64, i32, u16, with_element
from tilewright.llvm import Code, Val, constant, integer_literal, lowering_rule
from tilewright.ops import UnaryOp
from tilewright.support import import_late

_ELEMENTWISE = (Trait.PURE, Trait.ELEMENTWISE)
_REGISTER_BITS = 512
_CURRENT_ROUNDING = integer_literal(4)
_ONE_TO_TWO, _NAN_IF_NEGATIVE = 0, 0b1100
"""Bits of vgetmant's immediate operand, with which zeros of either sign give 1.0."""
_FURTHEST = 4096
"""Greater than the distance of any two exponents of f64."""


def _register_problem(type_: Type) -> str | None:
    return None if dtype_of(type_) in (f32, f64) else f"registers hold f32 or f64, not {type_}"


class _RegisterOp(UnaryOp):
    """Base class of ops on floats in registers."""

    x: Value = operand(floating)

    def verify(self) -> str | None:
        return _register_problem(self.x.type)


class ExponentOp(_RegisterOp, opcode="arith.exponent", traits=_ELEMENTWISE):
    """result = floor(log2 |x|) as a float; -inf of zeros, inf of infinities"""


class SignificandOp(_RegisterOp, opcode="arith.significand", traits=_ELEMENTWISE):
    """result = x / 2^floor(log2 x), in [1, 2); 1 of zeros and inf, NaN of negative numbers"""


class ScaleOp(_RegisterOp, opcode="arith.scale", traits=_ELEMENTWISE):
    """result = x * 2^floor(n), rounded once, of a finite x"""

    n: Value = operand(floating)

    def verify(self) -> str | None:
        if self.n.type is not self.x.type:
            return f"`n` must be a {self.x.type}"
        return _register_problem(self.x.type)


class LookupOp(Op, opcode="arith.lookup", traits=_ELEMENTWISE):
    """result = table[index modulo its length]; 16 or 32 numbers of f32, of an i32"""

    index: Value = operand(integer)
    table: tuple[float, ...] = attr()

    def infer(self) -> Type:
        return with_element(self.index.type, f32)

    def verify(self) -> str | None:
        if dtype_of(self.index.type) is not i32:
            return "`index` must be of i32"
        return None if len(self.table) in (16, 32) else "`table` must have 16 or 32 numbers"


class RoundNormalToBf16Op(Op, opcode="arith.round_normal_to_bf16", traits=_ELEMENTWISE):
    """result = the bits of x rounded to bf16, ties to even; x with a zero for all bits but the sign
    where x is subnormal; quiet NaNs of NaNs, with the upper bits of their payload"""

    x: Value = operand(floating)

    def infer(self) -> Type:
        return with_element(self.x.type, u16)

    def verify(self) -> str | None:
        return None if dtype_of(self.x.type) is f32 else "`x` must be of f32"


def _numpy() -> Any:
    return import_late("numpy")  # which compiling does not need


@reference(ExponentOp)
def exponent(op: ExponentOp, x: Any) -> Any:
    """Computed by `frexp`, whose fraction is below 1."""
    np = _numpy()
    found = (np.frexp(x)[1] - 1).astype(x.dtype)
    found = np.where(x == 0, -np.inf, np.where(np.isinf(x), np.inf, found))
    return np.where(np.isnan(x), x, found).astype(x.dtype)


@reference(SignificandOp)
def significand(op: SignificandOp, x: Any) -> Any:
    """Computed by `frexp`."""
    np = _numpy()
    found = np.where((x == 0) | np.isinf(x), 1.0, 2 * np.frexp(x)[0])
    return np.where((x < 0) | np.isnan(x), np.nan, found).astype(x.dtype)


@reference(ScaleOp)
def scale(op: ScaleOp, x: Any, n: Any) -> Any:
    """Computed by `ldexp`."""
    np = _numpy()
    steps = np.floor(np.clip(np.nan_to_num(n, posinf=_FURTHEST), -_FURTHEST, _FURTHEST))
    with np.errstate(all="ignore"):
        return np.where(np.isnan(n), n, np.ldexp(x, steps.astype(np.int32))).astype(x.dtype)


@reference(LookupOp)
def lookup(op: LookupOp, index: Any) -> Any:
    """Computed by indexing."""
    np = _numpy()
    return np.array(op.table, np.float32)[index & (len(op.table) - 1)]


@reference(RoundNormalToBf16Op)
def round_normal_to_bf16(op: RoundNormalToBf16Op, x: Any) -> Any:
    """Computed with integers, as Intel's manual defines the instruction."""
    np = _numpy()
    # `ascontiguousarray` gives a scalar a dimension
    bits = np.ascontiguousarray(x).view(np.uint32).reshape(x.shape)
    rounded = (bits + (0x7FFF + (bits >> 16 & 1)).astype(np.uint32)) >> 16
    kept = np.where(np.isnan(x), bits >> 16 | 0x40, rounded)
    return np.where(bits & 0x7F800000 == 0, bits >> 16 & 0x8000, kept).astype(np.uint16)


@lowering_rule("arith.exponent")
def _lower_exponent(code: Code, op: Op, operands: list[Val]) -> Val:
    def emit(x: Val, suffix: str, mask: Val) -> Val:
        name = f"llvm.x86.avx512.mask.getexp.{suffix}"
        return code.call(name, x.type, x, x, mask, _CURRENT_ROUNDING)

    return _by_registers(code, emit, operands)


@lowering_rule("arith.significand")
def _lower_significand(code: Code, op: Op, operands: list[Val]) -> Val:
    form = integer_literal(_ONE_TO_TWO | _NAN_IF_NEGATIVE)

    def emit(x: Val, suffix: str, mask: Val) -> Val:
        name = f"llvm.x86.avx512.mask.getmant.{suffix}"
        return code.call(name, x.type, x, form, x, mask, _CURRENT_ROUNDING)

    return _by_registers(code, emit, operands)


@lowering_rule("arith.scale")
def _lower_scale(code: Code, op: Op, operands: list[Val]) -> Val:
    def emit(x: Val, n: Val, suffix: str, mask: Val) -> Val:
        name = f"llvm.x86.avx512.mask.scalef.{suffix}"
        return code.call(name, x.type, x, n, x, mask, _CURRENT_ROUNDING)

    return _by_registers(code, emit, operands)


@lowering_rule("arith.lookup")
def _lower_lookup(code: Code, op: Op, operands: list[Val]) -> Val:
    numbers = cast("LookupOp", op).table
    texts = [constant(number, f32).typed for number in numbers]
    parts = [Val(f"<{', '.join(texts[i : i + 16])}>", "<16 x float>") for i in (0, 16)]

    def emit(index: Val, suffix: str, mask: Val) -> Val:
        if len(numbers) == 16:
            return code.call("llvm.x86.avx512.permvar.sf.512", parts[0].type, parts[0], index)
        name = "llvm.x86.avx512.vpermi2var.ps.512"
        return code.call(name, parts[0].type, parts[0], index, parts[1])

    return _by_registers(code, emit, operands)


@lowering_rule("arith.round_normal_to_bf16")
def _lower_round_normal_to_bf16(code: Code, op: Op, operands: list[Val]) -> Val:
    def emit(x: Val, suffix: str, mask: Val) -> Val:
        name = "llvm.x86.avx512bf16.cvtneps2bf16.512"
        return code.convert("bitcast", code.call(name, "<16 x bfloat>", x), "i16")

    return _by_registers(code, emit, operands)


def _by_registers(code: Code, emit: Callable[..., Val], operands: list[Val]) -> Val:
    """Concatenate `emit(*registers, suffix, mask)` of each register that the operands fill."""
    width, element = operands[0].width, operands[0].element
    lanes = 8 if element == "double" else 16
    suffix = "pd.512" if element == "double" else "ps.512"
    mask = integer_literal(-1, f"i{lanes}")
    if width == 1:
        wide = [code.splat(x, lanes) for x in operands]
        return code.extract(emit(*wide, suffix, mask), 0)
    if width < lanes:
        rest = [-1] * (lanes - width)
        wide = [code.shuffle(x, [*range(width), *rest]) for x in operands]
        return code.shuffle(emit(*wide, suffix, mask), list(range(width)))
    pieces: list[Val] = []
    for first in range(0, width, lanes):
        part = list(range(first, first + lanes))
        pieces.append(emit(*(code.shuffle(x, part) for x in operands), suffix, mask))
    while len(pieces) > 1:  # widths are powers of two
        both = list(range(2 * pieces[0].width))
        pieces = [code.shuffle(a, both, b) for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
    return pieces[0]
