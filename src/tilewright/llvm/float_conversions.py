"""Float conversions that LLVM's x86 code generator calls by name where the CPU cannot do them.

With F16C a CPU converts f16 and f32; f64 to f16, and all to bf16 without AVX512-BF16, are calls
of functions of the compiler's runtime library, which a Python process does not have. They are
written here with integers, rounding to nearest even, subnormals included.

Narrowing the bits of a finite |x| from (bias B, s significand bits) to (bias b, t bits):

* normal result:    (bits - ((B - b) << s) + half - 1 + odd) >> (s - t), where odd is the bit that
                    becomes the lowest: carries run into the exponent, and up to infinity
* subnormal result: add 2^(s + 1 - b - t), whose last place is the smallest subnormal: the sum's low
                    bits are the answer, rounded by the hardware
"""

from tilewright.ir.types import DType, bf16, f16, f32, f64
from tilewright.llvm.ir_emitter import llvm_type

__all__ = ["CONVERSION_SYMBOLS", "conversions_ir"]


_NARROWING = {
    "__truncdfhf2": (f64, f16),
    "__truncsfhf2": (f32, f16),
    "__truncdfbf2": (f64, bf16),
    "__truncsfbf2": (f32, bf16),
}
CONVERSION_SYMBOLS = (*_NARROWING, "__extendhfsf2")


def conversions_ir() -> str:
    """LLVM IR of a module that defines CONVERSION_SYMBOLS."""
    narrowing = [_narrow(name, *formats) for name, formats in _NARROWING.items()]
    return "\n".join([*narrowing, _EXTEND_HALF])


def _power_of_two(format_: DType, exponent: int) -> int:
    """The bits of 2^exponent, a normal number of `format_`."""
    return (exponent + format_.bias) << format_.mantissa


def _narrow(name: str, src: DType, dst: DType) -> str:
    shift = src.mantissa - dst.mantissa
    rebias = (src.bias - dst.bias) << src.mantissa
    smallest_normal = _power_of_two(src, 1 - dst.bias)
    # Numbers below it that round up to it carry into the bits of infinity by themselves.
    too_large = _power_of_two(src, dst.bias + 1)
    magic = _power_of_two(src, src.mantissa + 1 - dst.bias - dst.mantissa)
    wide, source, target = f"i{src.bits}", llvm_type(src), llvm_type(dst)
    # A NaN keeps the top of its payload; the quiet bit keeps the rest from being an infinity.
    return f"""
define {target} @{name}({source} %x) nounwind {{
  %bits = bitcast {source} %x to {wide}
  %abs = and {wide} %bits, {(1 << (src.bits - 1)) - 1}
  %sign.low = lshr {wide} %bits, {src.bits - dst.bits}
  %sign.only = and {wide} %sign.low, {1 << (dst.bits - 1)}
  %rebiased = sub {wide} %abs, {rebias}
  %last.low = lshr {wide} %rebiased, {shift}
  %last = and {wide} %last.low, 1
  %biased = add {wide} %rebiased, {(1 << (shift - 1)) - 1}
  %rounded = add {wide} %biased, %last
  %normal = lshr {wide} %rounded, {shift}
  %abs.float = bitcast {wide} %abs to {source}
  %magic = bitcast {wide} {magic} to {source}
  %sum = fadd {source} %abs.float, %magic
  %sum.bits = bitcast {source} %sum to {wide}
  %subnormal = sub {wide} %sum.bits, {magic}
  %is.subnormal = icmp ult {wide} %abs, {smallest_normal}
  %finite = select i1 %is.subnormal, {wide} %subnormal, {wide} %normal
  %is.large = icmp uge {wide} %abs, {too_large}
  %number = select i1 %is.large, {wide} {dst.infinity_bits}, {wide} %finite
  %payload = lshr {wide} %abs, {shift}
  %payload.cut = and {wide} %payload, {(1 << dst.mantissa) - 1}
  %nan = or {wide} %payload.cut, {dst.infinity_bits | 1 << (dst.mantissa - 1)}
  %is.nan = icmp ugt {wide} %abs, {src.infinity_bits}
  %magnitude = select i1 %is.nan, {wide} %nan, {wide} %number
  %signed = or {wide} %magnitude, %sign.only
  %narrow = trunc {wide} %signed to i{dst.bits}
  %result = bitcast i{dst.bits} %narrow to {target}
  ret {target} %result
}}"""


# 0x77800000 is 2^112, the ratio of the two formats' exponents of equal bits.
_EXTEND_HALF = f"""
define float @__extendhfsf2(half %x) nounwind {{
  %short = bitcast half %x to i16
  %bits = zext i16 %short to i32
  %abs = and i32 %bits, 32767
  %moved = shl i32 %abs, {f32.mantissa - f16.mantissa}
  %moved.float = bitcast i32 %moved to float
  %ratio = bitcast i32 {_power_of_two(f32, f32.bias - f16.bias)} to float
  %scaled = fmul float %moved.float, %ratio
  %finite = bitcast float %scaled to i32
  %special = or i32 %moved, {f32.infinity_bits}
  %is.special = icmp uge i32 %abs, {f16.infinity_bits}
  %magnitude = select i1 %is.special, i32 %special, i32 %finite
  %sign = and i32 %bits, 32768
  %sign.moved = shl i32 %sign, 16
  %all = or i32 %magnitude, %sign.moved
  %result = bitcast i32 %all to float
  ret float %result
}}
"""
