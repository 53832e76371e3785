"""The table from element-wise tile ops to LLVM instructions, for scalars and vectors.

A rule takes (code, op, operands, element types of the operands) with operands of one width, and
returns the result. Both backends use the table; ops that an architecture lacks are expanded
before, so that a rule never depends on the target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from tilewright.ir import Op
from tilewright.ir.types import DType, PointerType, dtype_of, element_of, f32, nan_as_integer
from tilewright.llvm.ir_emitter import (
    Code,
    Val,
    float_text,
    integer_literal,
    llvm_type,
    splat_constant,
)
from tilewright.support.registration import Registration

Rule = Callable[[Code, "Op", list[Val]], Val]


def constant(value: float | bool, element: DType, width: int = 1) -> Val:
    """A literal of an element type, splat over `width` lanes."""
    type_ = llvm_type(element)
    if element.is_fp8:
        raise AssertionError("fp8 constants are expanded to bits before")
    if element.is_float:
        return splat_constant(Val(float_text(float(value), type_), type_), width)
    number = int(value)
    if element.is_bool:
        return splat_constant(integer_literal(int(bool(number)), "i1"), width)
    if number > element.max_int:
        number -= 1 << element.bits
    return splat_constant(integer_literal(number, type_), width)


_RULES: dict[str, Rule] = {}


rule = Registration(_RULES)


def lower_elementwise(code: Code, op: Op, operands: list[Val]) -> Val:
    """Emit one element-wise op; KeyError if the table lacks it."""
    return _RULES[op.opcode](code, op, operands)


def _kind(op: Op) -> DType:
    """Element type of the first operand."""
    return dtype_of(op.operands[0].type)


def _simple(integer_form: str, float_form: str) -> Rule:
    def emit(code: Code, op: Op, operands: list[Val]) -> Val:
        form = f"{float_form} {code.float_flags}" if _kind(op).is_float else integer_form
        return code.binary(form, operands[0], operands[1])

    return emit


_RULES["arith.add"] = _simple("add", "fadd")
_RULES["arith.sub"] = _simple("sub", "fsub")
_RULES["arith.mul"] = _simple("mul", "fmul")
_RULES["arith.and"] = _simple("and", "")
_RULES["arith.or"] = _simple("or", "")
_RULES["arith.xor"] = _simple("xor", "")
_RULES["arith.shl"] = _simple("shl", "")


@rule("arith.shr")
def _shr(code: Code, op: Op, operands: list[Val]) -> Val:
    return code.binary("ashr" if _kind(op).is_signed else "lshr", operands[0], operands[1])


@rule("arith.div", "arith.rem")
def _divide(code: Code, op: Op, operands: list[Val]) -> Val:
    kind, what = _kind(op), "div" if op.opcode == "arith.div" else "rem"
    lhs, rhs = operands
    if kind.is_float:
        return code.binary(f"f{what}", lhs, rhs)
    return divide_integers(code, kind, what, lhs, rhs)


_EXACT_BITS = 32
"""The most bits of integers whose quotients are exact in doubles."""


def divide_integers(
    code: Code, kind: DType, what: str, lhs: Val, rhs: Val, *, natural: bool = False
) -> Val:
    """A "div" or "rem" that never traps: by 0 the result is any value, and min / -1 wraps.

    natural: whether the divisor is known not to be negative
    """
    # Division by any other literal cannot trap.
    if _literal(rhs) not in (None, 0, -1):
        return code.binary(f"{'s' if kind.is_signed else 'u'}{what}", lhs, rhs)
    return _guarded_division(code, kind, what, lhs, rhs, natural)


def _literal(value: Val) -> int | None:
    text = value.text
    if text.startswith("splat ("):
        text = text[7:-1].split(" ", 1)[1]
    return int(text) if text.lstrip("-").isdigit() else None


def _guarded_division(code: Code, kind: DType, what: str, lhs: Val, rhs: Val, natural: bool) -> Val:
    one = constant(1, kind, lhs.width)
    is_zero = code.compare("icmp eq", rhs, constant(0, kind, lhs.width))
    if natural or not kind.is_signed:
        return _safe_division(code, kind, what, lhs, code.select(is_zero, one, rhs))
    is_minus = code.compare("icmp eq", rhs, constant(-1, kind, lhs.width))
    unsafe = code.binary("or", is_zero, is_minus)
    quotient = _safe_division(code, kind, what, lhs, code.select(unsafe, one, rhs))
    # The remainder by 1, which replaced it, is 0 as that by -1 is.
    if what == "rem":
        return quotient
    negated = code.binary("sub", constant(0, kind, lhs.width), lhs)
    return code.select(is_minus, negated, quotient)


def _safe_division(code: Code, kind: DType, what: str, lhs: Val, rhs: Val) -> Val:
    """A "div" or "rem" that cannot trap.

    x86 and NEON divide no vectors of integers, but those of doubles, whose quotients of 32-bit
    integers are exact after truncation: 1 / rhs, the least distance of a quotient that is no
    integer from the next one, is greater than its rounding error.
    """
    sign = "s" if kind.is_signed else "u"
    if lhs.width == 1 or kind.bits > _EXACT_BITS:
        return code.binary(f"{sign}{what}", lhs, rhs)
    wide = [code.convert(f"{sign}itofp", value, "double") for value in (lhs, rhs)]
    quotient = code.convert(f"fpto{sign}i", code.binary("fdiv", *wide), llvm_type(kind))
    if what == "div":
        return quotient
    return code.binary("sub", lhs, code.binary("mul", quotient, rhs))


@rule("arith.min", "arith.max")
def _extremum(code: Code, op: Op, operands: list[Val]) -> Val:
    kind, what = _kind(op), op.opcode[-3:]
    lhs, rhs = operands
    if kind.is_float:
        name = f"{what}imum" if op.attrs["nan"] else f"{what}{code.extrema}"
        return code.intrinsic(name, lhs.type, lhs, rhs)
    return code.intrinsic(f"{'s' if kind.is_signed else 'u'}{what}", lhs.type, lhs, rhs)


@rule("arith.mul_high")
def _mul_high(code: Code, op: Op, operands: list[Val]) -> Val:
    kind = _kind(op)
    wide = f"i{2 * kind.bits}"
    extend = "sext" if kind.is_signed else "zext"
    # LLVM 22 treats the upper half of a product of widened 16-bit vectors as undefined.
    hidden = [_hidden(code, v) if kind.bits == 32 else v for v in operands]
    lhs, rhs = (code.convert(extend, v, wide) for v in hidden)
    shift = splat_constant(integer_literal(kind.bits, wide), lhs.width)
    high = code.binary("lshr", code.binary("mul", lhs, rhs), shift)
    result = code.convert("trunc", high, llvm_type(kind))
    # All lanes are extended: LLVM 22 cannot select the extension of half of a hidden vector.
    return _hidden(code, result) if kind.bits == 32 else result


def _hidden(code: Code, value: Val) -> Val:
    """A vector of i32 whose computation is hidden from LLVM; other values are returned."""
    is_vector = value.width > 1 and value.text[0] == "%"
    return code.fenced(value, 32 * value.width) if is_vector else value


@rule("arith.fma")
def _fma(code: Code, op: Op, operands: list[Val]) -> Val:
    return code.intrinsic("fma", operands[0].type, *operands)


@rule("arith.neg")
def _neg(code: Code, op: Op, operands: list[Val]) -> Val:
    x = operands[0]
    if _kind(op).is_float:
        return code.let(f"fneg {x.typed}", x.type, x)
    return code.binary("sub", constant(0, _kind(op), x.width), x)


@rule("arith.abs")
def _abs(code: Code, op: Op, operands: list[Val]) -> Val:
    x, kind = operands[0], _kind(op)
    if kind.is_float:
        return code.intrinsic("fabs", x.type, x)
    if not kind.is_signed:
        return x
    # 0: the result for the least number is that number, not poison.
    return code.intrinsic("abs", x.type, x, integer_literal(0, "i1"))


# NaN compares as in Python: only `ne` is true of it.
_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


@rule("arith.compare")
def _compare(code: Code, op: Op, operands: list[Val]) -> Val:
    element, predicate = element_of(op.operands[0].type), cast("str", op.attrs["predicate"])
    if isinstance(element, DType) and element.is_float:
        return code.compare(f"fcmp {_PREDICATES[predicate]}", operands[0], operands[1])
    signed = isinstance(element, DType) and element.is_signed
    sign = "" if predicate in ("eq", "ne") else "s" if signed else "u"
    return code.compare(f"icmp {sign}{predicate}", operands[0], operands[1])


@rule("arith.select")
def _select(code: Code, op: Op, operands: list[Val]) -> Val:
    return code.select(*operands)


_MATH_INTRINSICS = {
    "sqrt": "sqrt", "sqrt_rn": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
    "round_even": "roundeven",
}  # fmt: skip


@rule("arith.math")
def _math(code: Code, op: Op, operands: list[Val]) -> Val:
    intrinsic = _MATH_INTRINSICS[op.attrs["function"]]
    return code.intrinsic(intrinsic, operands[0].type, operands[0])


@rule("arith.bitcast")
def _bitcast(code: Code, op: Op, operands: list[Val]) -> Val:
    target = element_of(op.results[0].type)
    return code.convert("bitcast", operands[0], llvm_type(target))


@rule("arith.cast")
def _cast(code: Code, op: Op, operands: list[Val]) -> Val:
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    if is_saturating(op):
        return _saturated(code, operands[0], dtype_of(op.operands[0].type), dtype_of(op.type))
    return convert_element(code, operands[0], source, target)


def is_saturating(op: Op) -> bool:
    """Whether a cast is from floats to integers that may not hold them."""
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    if not (isinstance(source, DType) and isinstance(target, DType)):
        return False
    return source.is_float and target.is_integer and not op.attrs["in_range"]


def _saturated(code: Code, x: Val, source: DType, target: DType) -> Val:
    """A float as an integer, by the table of `arith.cast`. LLVM's plain conversion is undefined out
    of range, and its saturating ones are scalarized on x86."""
    if source.bits < 32:
        x, source = code.convert("fpext", x, "float"), f32
    low, beyond = target.min_int, target.max_int + 1
    # The largest float below `beyond`, a power of two.
    most = min(float(beyond - 1), float(beyond) * (1 - 2.0 ** -(source.mantissa + 1)))
    least, largest, end = (constant(float(n), source, x.width) for n in (low, most, beyond))
    # A NaN is not greater, so it becomes the least number: one instruction on x86.
    inside = code.select(code.compare("fcmp ogt", x, least), x, least)
    inside = code.select(code.compare("fcmp olt", inside, largest), inside, largest)
    found = convert_element(code, inside, source, target)
    if most < beyond - 1:
        above = code.compare("fcmp oge", x, end)
        found = code.select(above, constant(target.max_int, target, x.width), found)
    number = nan_as_integer(source, target)
    if number == low:
        return found
    is_nan = code.compare("fcmp uno", x, x)
    return code.select(is_nan, constant(number, target, x.width), found)


def convert_element(
    code: Code, x: Val, source: DType | PointerType, target: DType | PointerType
) -> Val:
    """`arith.cast` of one operand, rounding to nearest even; fp8 is expanded before, and floats
    are in the integer's range."""
    if isinstance(source, PointerType):
        return x if isinstance(target, PointerType) else code.convert("ptrtoint", x, "i64")
    if isinstance(target, PointerType):
        return code.convert("inttoptr", x, "ptr")
    if target.is_bool:
        return _to_bool(code, x, source)
    if source.is_float:
        return _from_float(code, x, source, target)
    if target.is_float:
        signed = source.is_signed
        return code.convert("sitofp" if signed else "uitofp", x, llvm_type(target))
    if target.bits < source.bits:
        return code.convert("trunc", x, llvm_type(target))
    return code.convert("sext" if source.is_signed else "zext", x, llvm_type(target))


def _to_bool(code: Code, x: Val, source: DType) -> Val:
    if source.is_bool:
        return x
    # Unordered: a NaN is true, as in Python.
    form = "fcmp une" if source.is_float else "icmp ne"
    return code.compare(form, x, constant(0, source, x.width))


def _from_float(code: Code, x: Val, source: DType, target: DType) -> Val:
    if not target.is_float:
        return code.convert("fptosi" if target.is_signed else "fptoui", x, llvm_type(target))
    # Equally wide, so LLVM has no cast; f32 holds both exactly, so only one rounding is left.
    if {source.name, target.name} == {"f16", "bf16"}:
        return code.convert("fptrunc", code.convert("fpext", x, "float"), llvm_type(target))
    return code.convert("fpext" if target.bits > source.bits else "fptrunc", x, llvm_type(target))
