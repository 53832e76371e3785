"""`libdevice`: the wider mathematical library, on every backend.

Functions of floats take tensors and literals as those of `tl.math` do, and those that are in both
are the same, but for `exp`. docs/libdevice.md lists the worst errors. `_rn`, `_rz`, `_rd` and
`_ru` round to nearest, toward zero, down and up; conversions to integers give the nearest one
beyond their range, and for a NaN what a GPU's instruction gives. The `fast_` functions are a GPU's
own instructions.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.language.core import Operand
from tilewright.language.math import (
    abs,
    add,
    ceil,
    cos,
    div_rn,
    erf,
    exp2,
    floor,
    fma,
    log,
    log2,
    mul,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    sub,
    tanh,
)
from tilewright.language.math import exp as fast_expf
from tilewright.language.stub_dispatch import builtin
from tilewright.language.tensors import tensor

Unary = Callable[[Operand], tensor]
Binary = Callable[[Operand, Operand], tensor]
Ternary = Callable[[Operand, Operand, Operand], tensor]
Quaternary = Callable[[Operand, Operand, Operand, Operand], tensor]


def _unary(name: str, meaning: str) -> Unary:
    def function(x: Operand) -> tensor: ...

    function.__name__, function.__doc__ = name, meaning
    return builtin(function)


def _binary(name: str, meaning: str) -> Binary:
    def function(x: Operand, y: Operand) -> tensor: ...

    function.__name__, function.__doc__ = name, meaning
    return builtin(function)


def _ternary(name: str, meaning: str) -> Ternary:
    def function(x: Operand, y: Operand, z: Operand) -> tensor: ...

    function.__name__, function.__doc__ = name, meaning
    return builtin(function)


def _quaternary(name: str, meaning: str) -> Quaternary:
    def function(x: Operand, y: Operand, z: Operand, w: Operand) -> tensor: ...

    function.__name__, function.__doc__ = name, meaning
    return builtin(function)


# ---- questions and parts of floats ---------------------------------------------------------------

isnan = _unary("isnan", "int1: x is a NaN.")
isinf = _unary("isinf", "int1: x is infinite.")
isfinite = _unary("isfinite", "int1: x is neither infinite nor a NaN.")
signbit = _unary("signbit", "int1: the sign bit of x is set.")
copysign = _binary("copysign", "abs(x) with the sign of y.")
nextafter = _binary("nextafter", "The float next to x on the side of y.")
fdim = _binary("fdim", "x - y where that is positive, else 0.")
logb = _unary("logb", "The exponent of x as a float: floor(log2(abs(x))); -infinity of 0.")
ilogb = _unary(
    "ilogb",
    "The exponent of x as int32; the least int32 of 0 and of a NaN, the largest of an infinity.",
)
ldexp = _binary("ldexp", "x times 2 to the power of the integer y, rounded once.")
saturatef = _unary("saturatef", "x within [0, 1] as fp32; 0 for a NaN.")

# ---- whole numbers -------------------------------------------------------------------------------

rint = _unary("rint", "x rounded to an integer, halves to even.")
round = _unary("round", "x rounded to an integer, halves away from zero.")
trunc = _unary("trunc", "x rounded to an integer, toward zero.")
llrint = _unary("llrint", "As `rint`, as int64; the nearest of these beyond them.")
llround = _unary("llround", "As `round`, as int64.")
fmod = _binary("fmod", "Remainder of x / y with the sign of x.")
remainder = _binary(
    "remainder",
    "x less the multiple of y that is nearest to it, the even one of two.",
)

# ---- elementary functions ------------------------------------------------------------------------

exp = _unary("exp", "e^x, within 4 ulp in fp32 where `tl.exp` on a GPU is off by |x| ulp.")
exp10 = _unary("exp10", "10 to the power of x.")
expm1 = _unary("expm1", "exp(x) - 1, exact near 0.")
log1p = _unary("log1p", "log(1 + x), exact near 0.")
log10 = _unary("log10", "Logarithm to base 10.")
tan = _unary("tan", "Tangent of x radians.")
atan = _unary("atan", "Arc tangent.")
asin = _unary("asin", "Arc sine; NaN outside [-1, 1].")
acos = _unary("acos", "Arc cosine; NaN outside [-1, 1].")
atan2 = _binary(
    "atan2",
    "C's atan2(x, y): the angle of the point whose ordinate is x and whose abscissa is y.",
)
sinpi = _unary("sinpi", "sin(pi x), 0 at all integers.")
cospi = _unary("cospi", "cos(pi x).")
sinh = _unary("sinh", "Hyperbolic sine.")
cosh = _unary("cosh", "Hyperbolic cosine.")
asinh = _unary("asinh", "Inverse hyperbolic sine.")
acosh = _unary("acosh", "Inverse hyperbolic cosine; NaN below 1.")
atanh = _unary("atanh", "Inverse hyperbolic tangent; NaN outside [-1, 1].")
pow = _binary("pow", "x to the power of y, as C's pow: NaN for x < 0 unless y is an integer.")
cbrt = _unary("cbrt", "Cube root.")
rcbrt = _unary("rcbrt", "1 / cbrt(x).")
hypot = _binary("hypot", "sqrt(x^2 + y^2) without overflow on the way.")
rhypot = _binary("rhypot", "1 / hypot(x, y).")
norm3d = _ternary("norm3d", "sqrt(x^2 + y^2 + z^2).")
rnorm3d = _ternary("rnorm3d", "1 / norm3d(x, y, z).")
norm4d = _quaternary("norm4d", "sqrt(x^2 + y^2 + z^2 + w^2).")
rnorm4d = _quaternary("rnorm4d", "1 / norm4d(x, y, z, w).")

# ---- special functions ---------------------------------------------------------------------------

erfc = _unary("erfc", "1 - erf(x), exact where it is small.")
erfcx = _unary("erfcx", "exp(x^2) erfc(x).")
erfinv = _unary("erfinv", "The y with erf(y) = x.")
erfcinv = _unary("erfcinv", "The y with erfc(y) = x.")
normcdf = _unary("normcdf", "The normal distribution up to x.")
normcdfinv = _unary("normcdfinv", "The y with normcdf(y) = x.")
lgamma = _unary("lgamma", "log(abs(gamma(x))); infinite at 0, -1, -2 ...")
tgamma = _unary("tgamma", "gamma(x); NaN at -1, -2 ...")
j0 = _unary("j0", "Bessel function of the first kind, order 0.")
j1 = _unary("j1", "Of order 1.")
jn = _binary("jn", "Of order x, an integer, at y.")
y0 = _unary("y0", "Bessel function of the second kind, order 0.")
y1 = _unary("y1", "Of order 1.")
yn = _binary("yn", "Of order x, an integer, at y.")
cyl_bessel_i0 = _unary("cyl_bessel_i0", "Modified Bessel function of order 0.")
cyl_bessel_i1 = _unary("cyl_bessel_i1", "Of order 1.")

# ---- integers of 32 or 64 bits -------------------------------------------------------------------

popc = _unary("popc", "Bits of x that are set.")
clz = _unary("clz", "Zeros before the first bit of x; the width for 0.")
ffs = _unary("ffs", "Position of the lowest bit of x, from 1; 0 for 0.")
brev = _unary("brev", "The bits of x in reverse.")
mulhi = _binary("mulhi", "The high half of the product.")
mul24 = _binary("mul24", "The product of the low 24 bits.")
hadd = _binary("hadd", "(x + y) >> 1 of the exact sum.")
rhadd = _binary("rhadd", "(x + y + 1) >> 1 of the exact sum.")
sad = _ternary("sad", "abs(x - y) + z of 32 bits.")
byte_perm = _ternary(
    "byte_perm",
    "Four bytes of the eight of x and y, numbered by nibbles of z; bit 3 of one repeats the sign.",
)

# ---- directed rounding ---------------------------------------------------------------------------

add_rn, sub_rn, mul_rn, fma_rn = add, sub, mul, fma
add_rz = _binary("add_rz", "x + y, rounded toward zero.")
add_rd = _binary("add_rd", "x + y, rounded down.")
add_ru = _binary("add_ru", "x + y, rounded up.")
sub_rz = _binary("sub_rz", "x - y, rounded toward zero.")
sub_rd = _binary("sub_rd", "x - y, rounded down.")
sub_ru = _binary("sub_ru", "x - y, rounded up.")
mul_rz = _binary("mul_rz", "x y, rounded toward zero.")
mul_rd = _binary("mul_rd", "x y, rounded down.")
mul_ru = _binary("mul_ru", "x y, rounded up.")
fma_rz = _ternary("fma_rz", "x y + z, rounded toward zero.")
fma_rd = _ternary("fma_rd", "x y + z, rounded down.")
fma_ru = _ternary("fma_ru", "x y + z, rounded up.")
div_rz = _binary("div_rz", "x / y, rounded toward zero.")
div_rd = _binary("div_rd", "x / y, rounded down.")
div_ru = _binary("div_ru", "x / y, rounded up.")
rcp_rn = _unary("rcp_rn", "1 / x, rounded to nearest.")
rcp_rz = _unary("rcp_rz", "1 / x, rounded toward zero.")
rcp_rd = _unary("rcp_rd", "1 / x, rounded down.")
rcp_ru = _unary("rcp_ru", "1 / x, rounded up.")
sqrt_rz = _unary("sqrt_rz", "The root of x, rounded toward zero.")
sqrt_rd = _unary("sqrt_rd", "The root of x, rounded down.")
sqrt_ru = _unary("sqrt_ru", "The root of x, rounded up.")

# ---- conversions ---------------------------------------------------------------------------------

double2float_rn = _unary("double2float_rn", "fp64 to fp32, rounded to nearest.")
double2float_rz = _unary("double2float_rz", "fp64 to fp32, rounded toward zero.")
double2float_rd = _unary("double2float_rd", "fp64 to fp32, rounded down.")
double2float_ru = _unary("double2float_ru", "fp64 to fp32, rounded up.")
float2int_rn = _unary("float2int_rn", "fp32 to int32, rounded to nearest.")
float2int_rz = _unary("float2int_rz", "fp32 to int32, rounded toward zero.")
float2int_rd = _unary("float2int_rd", "fp32 to int32, rounded down.")
float2int_ru = _unary("float2int_ru", "fp32 to int32, rounded up.")
float2uint_rn = _unary("float2uint_rn", "fp32 to uint32, rounded to nearest.")
float2uint_rz = _unary("float2uint_rz", "fp32 to uint32, rounded toward zero.")
float2uint_rd = _unary("float2uint_rd", "fp32 to uint32, rounded down.")
float2uint_ru = _unary("float2uint_ru", "fp32 to uint32, rounded up.")
float2ll_rn = _unary("float2ll_rn", "fp32 to int64, rounded to nearest.")
float2ll_rz = _unary("float2ll_rz", "fp32 to int64, rounded toward zero.")
float2ll_rd = _unary("float2ll_rd", "fp32 to int64, rounded down.")
float2ll_ru = _unary("float2ll_ru", "fp32 to int64, rounded up.")
float2ull_rn = _unary("float2ull_rn", "fp32 to uint64, rounded to nearest.")
float2ull_rz = _unary("float2ull_rz", "fp32 to uint64, rounded toward zero.")
float2ull_rd = _unary("float2ull_rd", "fp32 to uint64, rounded down.")
float2ull_ru = _unary("float2ull_ru", "fp32 to uint64, rounded up.")
double2int_rn = _unary("double2int_rn", "fp64 to int32, rounded to nearest.")
double2int_rz = _unary("double2int_rz", "fp64 to int32, rounded toward zero.")
double2int_rd = _unary("double2int_rd", "fp64 to int32, rounded down.")
double2int_ru = _unary("double2int_ru", "fp64 to int32, rounded up.")
double2uint_rn = _unary("double2uint_rn", "fp64 to uint32, rounded to nearest.")
double2uint_rz = _unary("double2uint_rz", "fp64 to uint32, rounded toward zero.")
double2uint_rd = _unary("double2uint_rd", "fp64 to uint32, rounded down.")
double2uint_ru = _unary("double2uint_ru", "fp64 to uint32, rounded up.")
double2ll_rn = _unary("double2ll_rn", "fp64 to int64, rounded to nearest.")
double2ll_rz = _unary("double2ll_rz", "fp64 to int64, rounded toward zero.")
double2ll_rd = _unary("double2ll_rd", "fp64 to int64, rounded down.")
double2ll_ru = _unary("double2ll_ru", "fp64 to int64, rounded up.")
double2ull_rn = _unary("double2ull_rn", "fp64 to uint64, rounded to nearest.")
double2ull_rz = _unary("double2ull_rz", "fp64 to uint64, rounded toward zero.")
double2ull_rd = _unary("double2ull_rd", "fp64 to uint64, rounded down.")
double2ull_ru = _unary("double2ull_ru", "fp64 to uint64, rounded up.")
int2float_rn = _unary("int2float_rn", "int32 to fp32, rounded to nearest.")
int2float_rz = _unary("int2float_rz", "int32 to fp32, rounded toward zero.")
int2float_rd = _unary("int2float_rd", "int32 to fp32, rounded down.")
int2float_ru = _unary("int2float_ru", "int32 to fp32, rounded up.")
int2double_rn = _unary("int2double_rn", "int32 to fp64, rounded to nearest.")
uint2float_rn = _unary("uint2float_rn", "uint32 to fp32, rounded to nearest.")
uint2float_rz = _unary("uint2float_rz", "uint32 to fp32, rounded toward zero.")
uint2float_rd = _unary("uint2float_rd", "uint32 to fp32, rounded down.")
uint2float_ru = _unary("uint2float_ru", "uint32 to fp32, rounded up.")
uint2double_rn = _unary("uint2double_rn", "uint32 to fp64, rounded to nearest.")
ll2float_rn = _unary("ll2float_rn", "int64 to fp32, rounded to nearest.")
ll2float_rz = _unary("ll2float_rz", "int64 to fp32, rounded toward zero.")
ll2float_rd = _unary("ll2float_rd", "int64 to fp32, rounded down.")
ll2float_ru = _unary("ll2float_ru", "int64 to fp32, rounded up.")
ll2double_rn = _unary("ll2double_rn", "int64 to fp64, rounded to nearest.")
ll2double_rz = _unary("ll2double_rz", "int64 to fp64, rounded toward zero.")
ll2double_rd = _unary("ll2double_rd", "int64 to fp64, rounded down.")
ll2double_ru = _unary("ll2double_ru", "int64 to fp64, rounded up.")
ull2float_rn = _unary("ull2float_rn", "uint64 to fp32, rounded to nearest.")
ull2float_rz = _unary("ull2float_rz", "uint64 to fp32, rounded toward zero.")
ull2float_rd = _unary("ull2float_rd", "uint64 to fp32, rounded down.")
ull2float_ru = _unary("ull2float_ru", "uint64 to fp32, rounded up.")
ull2double_rn = _unary("ull2double_rn", "uint64 to fp64, rounded to nearest.")
ull2double_rz = _unary("ull2double_rz", "uint64 to fp64, rounded toward zero.")
ull2double_rd = _unary("ull2double_rd", "uint64 to fp64, rounded down.")
ull2double_ru = _unary("ull2double_ru", "uint64 to fp64, rounded up.")
int_as_float = _unary("int_as_float", "The float with the bits of an int32.")
float_as_int = _unary("float_as_int", "The bits of a float as int32.")
uint_as_float = _unary("uint_as_float", "The float with the bits of a uint32.")
float_as_uint = _unary("float_as_uint", "The bits of a float as uint32.")
longlong_as_double = _unary("longlong_as_double", "The double with the bits of an int64.")
double_as_longlong = _unary("double_as_longlong", "The bits of a double as int64.")
double2hiint = _unary("double2hiint", "The upper half of the bits of a double, int32.")
double2loint = _unary("double2loint", "The lower half of the bits of a double, int32.")
rcp64h = _unary("rcp64h", "1 / x of doubles, the lower half of its bits 0.")
hiloint2double = _binary(
    "hiloint2double", "The double whose halves are two int32, the upper first."
)

# ---- fast functions ------------------------------------------------------------------------------

fast_logf = _unary("fast_logf", "log(x); off by up to 2^-22 for x near 1.")
fast_log2f = _unary("fast_log2f", "log2(x); off by up to 2^-22 for x near 1.")
fast_log10f = _unary("fast_log10f", "log10(x); off by up to 2^-23 for x near 1.")
fast_exp10f = _unary("fast_exp10f", "10 to the power of x, off by up to 3 |x| ulp.")
fast_sinf = _unary("fast_sinf", "sin(x), off by up to 2^-20 within [-pi, pi].")
fast_cosf = _unary("fast_cosf", "cos(x), off by up to 2^-20 within [-pi, pi].")
fast_tanf = _unary("fast_tanf", "fast_sinf(x) / fast_cosf(x).")
fast_tanhf = _unary("fast_tanhf", "tanh(x), off by up to 2^-10.")
fast_powf = _binary("fast_powf", "2 to the power of y log2(x), for x >= 0, by the fast functions.")
fast_dividef = _binary(
    "fast_dividef", "x / y; on a GPU 0 or NaN for |y| above 2^126 or below 2^-126."
)

# ---- other names ---------------------------------------------------------------------------------

finitef = isfinited = isfinite
nearbyint, scalbn, rsqrt_rn = rint, ldexp, rsqrt

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add_rd",
    "add_rn",
    "add_ru",
    "add_rz",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "brev",
    "byte_perm",
    "cbrt",
    "ceil",
    "clz",
    "copysign",
    "cos",
    "cosh",
    "cospi",
    "cyl_bessel_i0",
    "cyl_bessel_i1",
    "div_rd",
    "div_rn",
    "div_ru",
    "div_rz",
    "double2float_rd",
    "double2float_rn",
    "double2float_ru",
    "double2float_rz",
    "double2hiint",
    "double2int_rd",
    "double2int_rn",
    "double2int_ru",
    "double2int_rz",
    "double2ll_rd",
    "double2ll_rn",
    "double2ll_ru",
    "double2ll_rz",
    "double2loint",
    "double2uint_rd",
    "double2uint_rn",
    "double2uint_ru",
    "double2uint_rz",
    "double2ull_rd",
    "double2ull_rn",
    "double2ull_ru",
    "double2ull_rz",
    "double_as_longlong",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "fast_cosf",
    "fast_dividef",
    "fast_exp10f",
    "fast_expf",
    "fast_log10f",
    "fast_log2f",
    "fast_logf",
    "fast_powf",
    "fast_sinf",
    "fast_tanf",
    "fast_tanhf",
    "fdim",
    "ffs",
    "finitef",
    "float2int_rd",
    "float2int_rn",
    "float2int_ru",
    "float2int_rz",
    "float2ll_rd",
    "float2ll_rn",
    "float2ll_ru",
    "float2ll_rz",
    "float2uint_rd",
    "float2uint_rn",
    "float2uint_ru",
    "float2uint_rz",
    "float2ull_rd",
    "float2ull_rn",
    "float2ull_ru",
    "float2ull_rz",
    "float_as_int",
    "float_as_uint",
    "floor",
    "fma",
    "fma_rd",
    "fma_rn",
    "fma_ru",
    "fma_rz",
    "fmod",
    "hadd",
    "hiloint2double",
    "hypot",
    "ilogb",
    "int2double_rn",
    "int2float_rd",
    "int2float_rn",
    "int2float_ru",
    "int2float_rz",
    "int_as_float",
    "isfinite",
    "isfinited",
    "isinf",
    "isnan",
    "j0",
    "j1",
    "jn",
    "ldexp",
    "lgamma",
    "ll2double_rd",
    "ll2double_rn",
    "ll2double_ru",
    "ll2double_rz",
    "ll2float_rd",
    "ll2float_rn",
    "ll2float_ru",
    "ll2float_rz",
    "llrint",
    "llround",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "longlong_as_double",
    "mul24",
    "mul_rd",
    "mul_rn",
    "mul_ru",
    "mul_rz",
    "mulhi",
    "nearbyint",
    "nextafter",
    "norm3d",
    "norm4d",
    "normcdf",
    "normcdfinv",
    "popc",
    "pow",
    "rcbrt",
    "rcp64h",
    "rcp_rd",
    "rcp_rn",
    "rcp_ru",
    "rcp_rz",
    "remainder",
    "rhadd",
    "rhypot",
    "rint",
    "rnorm3d",
    "rnorm4d",
    "round",
    "rsqrt",
    "rsqrt_rn",
    "sad",
    "saturatef",
    "scalbn",
    "signbit",
    "sin",
    "sinh",
    "sinpi",
    "sqrt",
    "sqrt_rd",
    "sqrt_rn",
    "sqrt_ru",
    "sqrt_rz",
    "sub_rd",
    "sub_rn",
    "sub_ru",
    "sub_rz",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
    "uint2double_rn",
    "uint2float_rd",
    "uint2float_rn",
    "uint2float_ru",
    "uint2float_rz",
    "uint_as_float",
    "ull2double_rd",
    "ull2double_rn",
    "ull2double_ru",
    "ull2double_rz",
    "ull2float_rd",
    "ull2float_rn",
    "ull2float_ru",
    "ull2float_rz",
    "y0",
    "y1",
    "yn",
]
