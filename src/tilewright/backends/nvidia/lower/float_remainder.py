"""The remainder of floats, exact: x - q y for the whole number q that x / y has before the point.

Where q has no more bits than the format, one division finds it, or one more than it, and a fused
product and sum the remainder, exactly. Else, rarely, mantissas are subtracted as integers, bit by
bit of q. The result has the sign of x.
"""

from __future__ import annotations

from tilewright.backends.nvidia.lower.gpu_state import BODY, GpuLowering, lowering, register_count
from tilewright.ir import Op
from tilewright.ir.types import DType, dtype_of
from tilewright.llvm import Val, float_text, llvm_type, lower_elementwise
from tilewright.ops import RemOp


@lowering(RemOp)
def _remainder(state: GpuLowering, op: RemOp) -> None:
    element = dtype_of(op.results[0].type)
    results: list[Val] = []
    for i in range(register_count(op.results[0])):
        operands = [state.registers_of(v)[i] for v in op.operands]
        results.append(_one(state, op, element, operands))
    state.set_registers(op.results[0], results)


def _one(state: GpuLowering, op: Op, element: DType, operands: list[Val]) -> Val:
    if not element.is_float:
        result = lower_elementwise(state.code, op, operands)
        return Val(result.text, result.type, BODY) if result.text.startswith("%") else result
    _declare(state, element)
    type_, magnitude = llvm_type(element), (1 << (element.bits - 1)) - 1
    name = state.code.name("rem")
    before, slow, done = (state.code.label(hint) for hint in ("before", "slow", "done"))
    substitutions = {
        "T": type_, "S": element.name, "I": f"i{element.bits}", "n": name, "x": operands[0].text,
        "y": operands[1].text, "inf": float_text(float("inf"), type_),
        "limit": float_text(2.0**element.mantissa, type_), "mantissa": element.mantissa,
        "sign": 1 << (element.bits - 1), "rest": magnitude,
        "fraction": (1 << element.mantissa) - 1, "one": 1 << element.mantissa,
        "top": element.bits - 1 - element.mantissa, "nan": magnitude,
        "infinity": element.infinity_bits,
        "before": before, "slow": slow, "done": done,
    }  # fmt: skip
    for line in (_FAST + _SLOW + _END).format(**substitutions).split("\n"):
        if line:
            state.code.line(line)
    return Val(f"{name}.result", type_, BODY)


def _declare(state: GpuLowering, element: DType) -> None:
    t, s, i = llvm_type(element), element.name, f"i{element.bits}"
    for name, signature in (
        (f"llvm.trunc.{s}", f"{t} @llvm.trunc.{s}({t})"),
        (f"llvm.fabs.{s}", f"{t} @llvm.fabs.{s}({t})"),
        (f"llvm.fma.{s}", f"{t} @llvm.fma.{s}({t}, {t}, {t})"),
        (f"llvm.ctlz.{i}", f"{i} @llvm.ctlz.{i}({i}, i1)"),
    ):
        state.module.declare(name, f"declare {signature}")


# x - trunc(x / y) y by a fused product and sum. A quotient rounded up is one too large: then the
# remainder has the other sign (`beyond`), and |y| with the sign of x is added. A finite x stays as
# it is for an infinite y (`keeps`), where 0 * inf is NaN. Else q must be below 2^mantissa.
_FAST = """
br label %{before}
{before}:
{n}.exact = fdiv {T} {x}, {y}
{n}.q = call {T} @llvm.trunc.{S}({T} {n}.exact)
{n}.minus = fneg {T} {n}.q
{n}.first = call {T} @llvm.fma.{S}({T} {n}.minus, {T} {y}, {T} {x})
{n}.x = bitcast {T} {x} to {I}
{n}.y = bitcast {T} {y} to {I}
{n}.sign = and {I} {n}.x, {sign}
{n}.ay = and {I} {n}.y, {rest}
{n}.ax = and {I} {n}.x, {rest}
{n}.bits = bitcast {T} {n}.first to {I}
{n}.differs = xor {I} {n}.bits, {n}.x
{n}.other = icmp slt {I} {n}.differs, 0
{n}.some = fcmp une {T} {n}.first, 0.0
{n}.beyond = and i1 {n}.other, {n}.some
{n}.step.bits = or {I} {n}.ay, {n}.sign
{n}.step = bitcast {I} {n}.step.bits to {T}
{n}.second = fadd {T} {n}.first, {n}.step
{n}.inside = select i1 {n}.beyond, {T} {n}.second, {T} {n}.first
{n}.endless = icmp eq {I} {n}.ay, {infinity}
{n}.finite = icmp ult {I} {n}.ax, {infinity}
{n}.keeps = and i1 {n}.endless, {n}.finite
{n}.usual = select i1 {n}.keeps, {T} {x}, {T} {n}.inside
{n}.usual.bits = bitcast {T} {n}.usual to {I}
{n}.size = call {T} @llvm.fabs.{S}({T} {n}.q)
{n}.short = fcmp olt {T} {n}.size, {limit}
{n}.fast = or i1 {n}.short, {n}.keeps
br i1 {n}.fast, label %{done}, label %{slow}
"""

# Long division. Mantissas have their leading bit at the same place, subnormals shifted up to it
# (`top`: leading zeros of a normal one); the difference of exponents counts the doublings. `bad`: x
# is infinite or NaN, or y is 0 or NaN; for these the loop ends at once, and the result is NaN.
_SLOW = """
{slow}:
{n}.zero = icmp eq {I} {n}.ay, 0
{n}.large = icmp uge {I} {n}.ax, {infinity}
{n}.none = icmp ugt {I} {n}.ay, {infinity}
{n}.bad0 = or i1 {n}.zero, {n}.large
{n}.bad = or i1 {n}.bad0, {n}.none
{n}.xe0 = lshr {I} {n}.ax, {mantissa}
{n}.xf = and {I} {n}.ax, {fraction}
{n}.xs0 = call {I} @llvm.ctlz.{I}({I} {n}.ax, i1 false)
{n}.xs = sub {I} {n}.xs0, {top}
{n}.xtiny = icmp eq {I} {n}.xe0, 0
{n}.xshift = select i1 {n}.xtiny, {I} {n}.xs, {I} 0
{n}.xbit = select i1 {n}.xtiny, {I} 0, {I} {one}
{n}.xm0 = or {I} {n}.xf, {n}.xbit
{n}.xm = shl {I} {n}.xm0, {n}.xshift
{n}.xe1 = sub {I} 1, {n}.xs
{n}.xe = select i1 {n}.xtiny, {I} {n}.xe1, {I} {n}.xe0
{n}.ye0 = lshr {I} {n}.ay, {mantissa}
{n}.yf = and {I} {n}.ay, {fraction}
{n}.ys0 = call {I} @llvm.ctlz.{I}({I} {n}.ay, i1 false)
{n}.ys = sub {I} {n}.ys0, {top}
{n}.ytiny = icmp eq {I} {n}.ye0, 0
{n}.yshift0 = select i1 {n}.ytiny, {I} {n}.ys, {I} 0
{n}.yshift = select i1 {n}.zero, {I} 0, {I} {n}.yshift0
{n}.ybit = select i1 {n}.ytiny, {I} 0, {I} {one}
{n}.ym0 = or {I} {n}.yf, {n}.ybit
{n}.ym = shl {I} {n}.ym0, {n}.yshift
{n}.ye1 = sub {I} 1, {n}.ys
{n}.ye = select i1 {n}.ytiny, {I} {n}.ye1, {I} {n}.ye0
{n}.count0 = sub {I} {n}.xe, {n}.ye
{n}.count = select i1 {n}.bad, {I} 0, {I} {n}.count0
br label %{slow}.loop
{slow}.loop:
{n}.left = phi {I} [ {n}.count, %{slow} ], [ {n}.next, %{slow}.loop ]
{n}.m = phi {I} [ {n}.xm, %{slow} ], [ {n}.doubled, %{slow}.loop ]
{n}.fits = icmp uge {I} {n}.m, {n}.ym
{n}.part = select i1 {n}.fits, {I} {n}.ym, {I} 0
{n}.less = sub {I} {n}.m, {n}.part
{n}.doubled = shl {I} {n}.less, 1
{n}.next = sub {I} {n}.left, 1
{n}.more = icmp sgt {I} {n}.left, 0
br i1 {n}.more, label %{slow}.loop, label %{slow}.end
{slow}.end:
{n}.ms0 = call {I} @llvm.ctlz.{I}({I} {n}.less, i1 false)
{n}.ms = sub {I} {n}.ms0, {top}
{n}.me = sub {I} {n}.ye, {n}.ms
{n}.normal = icmp sgt {I} {n}.me, 0
{n}.nothing = icmp eq {I} {n}.less, 0
{n}.up = select i1 {n}.nothing, {I} 0, {I} {n}.ms
{n}.whole = shl {I} {n}.less, {n}.up
{n}.high = and {I} {n}.whole, {fraction}
{n}.field = shl {I} {n}.me, {mantissa}
{n}.number = or {I} {n}.high, {n}.field
{n}.under0 = sub {I} 1, {n}.me
{n}.under1 = select i1 {n}.nothing, {I} 0, {I} {n}.under0
{n}.under = select i1 {n}.normal, {I} 0, {I} {n}.under1
{n}.small = lshr {I} {n}.whole, {n}.under
{n}.found0 = select i1 {n}.normal, {I} {n}.number, {I} {n}.small
{n}.found1 = select i1 {n}.nothing, {I} 0, {I} {n}.found0
{n}.found = select i1 {n}.bad, {I} {nan}, {I} {n}.found1
br label %{done}
"""

# The sign of x, also where the remainder is 0.
_END = """
{done}:
{n}.all = phi {I} [ {n}.usual.bits, %{before} ], [ {n}.found, %{slow}.end ]
{n}.magnitude = and {I} {n}.all, {rest}
{n}.signed = or {I} {n}.magnitude, {n}.sign
{n}.result = bitcast {I} {n}.signed to {T}
"""
