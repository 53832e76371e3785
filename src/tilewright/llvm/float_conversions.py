"""Float conversions that LLVM's x86 code generator calls by name where the CPU lacks them.

With F16C a CPU converts f16 and f32; f64 to f16, and all to bf16 without AVX512-BF16, are calls
of functions of the compiler's runtime library, which a Python process does not have. They are
defined here in integer arithmetic, rounding to nearest even, subnormals included.

Narrowing the bits of a finite |x| from (bias B, s significand bits) to (bias b, t bits):

* normal result:    (bits - ((B - b) << s) + half - 1 + odd) >> (s - t), where odd is the bit that
                    becomes the lowest: carries run into the exponent, and up to infinity
* subnormal result: add 2^(s + 1 - b - t), whose last place is the smallest subnormal: the sum's low
                    bits are the answer, rounded by the hardware
"""

from functools import partial

from tilewright.ir.types import DType, bf16, f16, f32, f64
from tilewright.llvm.ir_emitter import Code, ModuleText, Val, integer_literal, llvm_type

_NARROWING = {
    "__truncdfhf2": (f64, f16),
    "__truncsfhf2": (f32, f16),
    "__truncdfbf2": (f64, bf16),
    "__truncsfbf2": (f32, bf16),
}
_WIDEN_HALF = "__extendhfsf2"


def conversions_ir() -> str:
    """LLVM IR of a module that defines `object_loader.CONVERSION_SYMBOLS`."""
    narrowing = [_narrow(name, *formats) for name, formats in _NARROWING.items()]
    return "\n".join([*narrowing, _widen_half()])


def _power_of_two(format_: DType, exponent: int) -> int:
    """The bits of 2^exponent, a normal number of `format_`."""
    return (exponent + format_.bias) << format_.mantissa


def _function(name: str, source: DType, code: Code, result: Val) -> str:
    """The text of a function of %x with the instructions that `code` has collected."""
    head = f"define {result.type} @{name}({llvm_type(source)} %x) nounwind {{"
    return "\n".join([head, *code.sections[0], f"ret {result.typed}", "}"])


# --- narrowing ------------------------------------------------------------------------------------


def _narrow(name: str, src: DType, dst: DType) -> str:
    code, wide = Code(ModuleText()), f"i{src.bits}"
    literal = partial(integer_literal, type_=wide)
    bits = code.convert("bitcast", Val("%x", llvm_type(src)), wide)
    magnitude = code.binary("and", bits, literal((1 << (src.bits - 1)) - 1))
    moved_sign = code.binary("lshr", bits, literal(src.bits - dst.bits))
    sign = code.binary("and", moved_sign, literal(1 << (dst.bits - 1)))
    normal = _to_normal(code, magnitude, src, dst)
    subnormal = _to_subnormal(code, magnitude, src, dst)
    smallest_normal = literal(_power_of_two(src, 1 - dst.bias))
    is_subnormal = code.compare("icmp ult", magnitude, smallest_normal)
    finite = code.select(is_subnormal, subnormal, normal)
    # Numbers below it that round up to it carry into the bits of infinity by themselves.
    too_large = literal(_power_of_two(src, dst.bias + 1))
    is_large = code.compare("icmp uge", magnitude, too_large)
    number = code.select(is_large, literal(dst.infinity_bits), finite)
    nan = _to_nan(code, magnitude, src, dst)
    is_nan = code.compare("icmp ugt", magnitude, literal(src.infinity_bits))
    signed = code.binary("or", code.select(is_nan, nan, number), sign)
    narrow = code.convert("trunc", signed, f"i{dst.bits}")
    return _function(name, src, code, code.convert("bitcast", narrow, llvm_type(dst)))


def _to_normal(code: Code, magnitude: Val, src: DType, dst: DType) -> Val:
    """The bits of |x| rounded to a normal number; the formula at the head of this module."""
    literal = partial(integer_literal, type_=magnitude.type)
    shift = src.mantissa - dst.mantissa
    rebiased = code.binary("sub", magnitude, literal((src.bias - dst.bias) << src.mantissa))
    odd = code.binary("and", code.binary("lshr", rebiased, literal(shift)), literal(1))
    biased = code.binary("add", rebiased, literal((1 << (shift - 1)) - 1))
    return code.binary("lshr", code.binary("add", biased, odd), literal(shift))


def _to_subnormal(code: Code, magnitude: Val, src: DType, dst: DType) -> Val:
    """The bits of |x| rounded to a multiple of the smallest subnormal."""
    magic = integer_literal(
        _power_of_two(src, src.mantissa + 1 - dst.bias - dst.mantissa), magnitude.type
    )
    number, addend = (code.convert("bitcast", v, llvm_type(src)) for v in (magnitude, magic))
    total = code.convert("bitcast", code.binary("fadd", number, addend), magnitude.type)
    return code.binary("sub", total, magic)


def _to_nan(code: Code, magnitude: Val, src: DType, dst: DType) -> Val:
    """The top of a NaN's payload; the quiet bit keeps the rest from being an infinity."""
    literal = partial(integer_literal, type_=magnitude.type)
    payload = code.binary("lshr", magnitude, literal(src.mantissa - dst.mantissa))
    top = code.binary("and", payload, literal((1 << dst.mantissa) - 1))
    return code.binary("or", top, literal(dst.infinity_bits | 1 << (dst.mantissa - 1)))


# --- widening -------------------------------------------------------------------------------------


def _widen_half() -> str:
    """f16 to f32: its bits as a number of f32, times the ratio of the formats' exponent biases."""
    code, literal = Code(ModuleText()), partial(integer_literal, type_="i32")
    bits = code.convert("zext", code.convert("bitcast", Val("%x", "half"), "i16"), "i32")
    magnitude = code.binary("and", bits, literal(0x7FFF))
    moved = code.binary("shl", magnitude, literal(f32.mantissa - f16.mantissa))
    # 2^112; subnormals of f16 become normal by it.
    ratio = literal(_power_of_two(f32, f32.bias - f16.bias))
    number, factor = (code.convert("bitcast", v, "float") for v in (moved, ratio))
    finite = code.convert("bitcast", code.binary("fmul", number, factor), "i32")
    # Infinity or NaN: the exponent has all its bits, and the payload stays.
    not_finite = code.binary("or", moved, literal(f32.infinity_bits))
    is_not_finite = code.compare("icmp uge", magnitude, literal(f16.infinity_bits))
    widened = code.select(is_not_finite, not_finite, finite)
    sign = code.binary("shl", code.binary("and", bits, literal(0x8000)), literal(16))
    result = code.convert("bitcast", code.binary("or", widened, sign), "float")
    return _function(_WIDEN_HALF, f16, code, result)
