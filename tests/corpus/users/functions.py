"""Mathematical functions of each element, powers and quotients."""

# ruff: noqa: N803 -- names as users write them

import tilewright.language as tl
from tests.corpus.users.case import case
from tilewright import jit
from tilewright.language.extra import libdevice


@jit
def atan2_of_half(a):
    return libdevice.atan2(a, 0.5)


@jit
def hypot_of_next(a):
    return libdevice.hypot(a, a + 1.0)


@jit
def own_power(a):
    return libdevice.pow(a, a)


@jit
def gelu_by_tanh(a):
    return 0.5 * a * (1 + libdevice.tanh(0.79788456 * (a + 0.044715 * a * a * a)))


@jit
def fmod_of_three(a):
    return libdevice.fmod(a, 3.0)


@jit
def remainder_of_three(a):
    return a % 3.0


@jit
def third(a):
    return a / 3.0


@jit
def fast_quotient(a):
    return libdevice.fast_dividef(a, a + 1.0)


@jit
def sine_and_cosine(a):
    return tl.sin(a) + 2.0 * tl.cos(a)


@jit
def apply(source, target, n, F: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(source + i, mask=i < n, other=1.0).to(tl.float32)
    tl.store(target + i, F(a), mask=i < n)


@jit
def power(source, target, n, E: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(source + i, mask=i < n, other=0.0)
    tl.store(target + i, libdevice.pow(v, E), mask=i < n)


@jit
def power_of_argument(source, target, n, e, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(source + i, mask=i < n, other=0.0)
    tl.store(target + i, libdevice.pow(v, e), mask=i < n)


@jit
def quotient(x, y, target, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    a, b = tl.load(x + i, mask=i < n, other=1.0), tl.load(y + i, mask=i < n, other=1.0)
    tl.store(target + i, a / b, mask=i < n)


@jit
def quotient_by_row(x, target, n, B: tl.constexpr, SCALE: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0).to(tl.float32)
    q = v / tl.max(tl.abs(v), 0)
    if SCALE:
        q = q * 127.0
    tl.store(target + tl.program_id(0) * n + i, q, mask=i < n)


_PAIR = "*fp32 *fp32 i32/16"
_LIBDEVICE = (
    "tan sinh cosh asin acos atan exp10 log10 cbrt asinh erfc erfinv lgamma sinpi tanh fast_sinf"
)
_OWN = {
    "atan2": atan2_of_half, "hypot": hypot_of_next, "pow(x, x)": own_power,
    "gelu by tanh": gelu_by_tanh, "fmod": fmod_of_three, "% 3": remainder_of_three, "/ 3": third,
    "fast_dividef": fast_quotient, "erf": tl.erf, "sqrt": tl.sqrt, "rsqrt": tl.rsqrt,
    "sin": tl.sin, "log": tl.log, "log2": tl.log2, "exp": tl.exp,
}  # fmt: skip
_RARE = (
    ("sin", tl.sin, "fp32", (128, 4096, 16384)), ("sin", tl.sin, "bf16", (4096,)),
    ("cos", tl.cos, "fp32", (4096,)), ("sin and cos", sine_and_cosine, "fp32", (4096,)),
    ("% 3", remainder_of_three, "fp32", (4096,)), ("tanh", libdevice.tanh, "fp32", (4096,)),
    ("log", tl.log, "fp32", (4096,)),
)  # fmt: skip
"""Functions with a rare slow form, of several elements for each thread."""
CASES = (
    *(case(n, apply, _PAIR, F=getattr(libdevice, n), B=1024) for n in _LIBDEVICE.split()),
    *(case(name, apply, _PAIR, F=function, B=1024) for name, function in _OWN.items()),
    *(
        case(f"{name} {dtype} {size}", apply, f"*{dtype} *{dtype} i32/16", F=function, B=size)
        for name, function, dtype, sizes in _RARE
        for size in sizes
    ),
    *(case(f"pow(x, {e})", power, _PAIR, E=e, B=1024) for e in (2, 3, 2.0, 0.5, -1, 2.5)),
    case("pow(x, int32)", power_of_argument, f"{_PAIR} i32", B=1024),
    case("pow(x, fp32)", power_of_argument, f"{_PAIR} fp32", B=1024),
    case("x / y", quotient, "*fp32 *fp32 *fp32 i32/16", B=1024),
    case("x / max", quotient_by_row, _PAIR, B=1024, SCALE=False),
    case("x / max * 127", quotient_by_row, "*fp16 *fp16 i32/16", B=1024, SCALE=True),
)
