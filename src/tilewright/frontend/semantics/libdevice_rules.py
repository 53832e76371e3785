"""How the functions of libdevice are implemented: one table of stubs, operands and formulas.

lib.tgamma: (_WIDE, tgamma)      operands to fp64, the formula, rounded to their dtype
lib.erfc: (_OWN, erfc, erfc)     in fp64 by the first formula, else in fp32 by the second
lib.popc: (_integers, popc)      integers of 32 or 64 bits, of one type
lib.float2int_rd: ...            operands to given dtypes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple, cast

from tilewright import language as tl
from tilewright.frontend.dtype_promotion import accumulator_dtype
from tilewright.frontend.semantics import directed_rounding as rounding
from tilewright.frontend.semantics import libdevice_formulas as formulas
from tilewright.frontend.semantics import libdevice_integers as integers
from tilewright.frontend.semantics import special_functions as special
from tilewright.frontend.semantics.bessel_orders import bessel_j, bessel_y
from tilewright.frontend.semantics.broadcasting import broadcast_value
from tilewright.frontend.semantics.composed_functions import evaluate
from tilewright.frontend.semantics.dtype_casts import cast_to
from tilewright.frontend.semantics.literal_constants import describe, materialize
from tilewright.frontend.semantics.math_functions import float_argument, math_function, quotient
from tilewright.frontend.semantics.selection import common_dtype, shape_of_all
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.frontend.semantics.single import (
    arc_functions,
    error_integrals,
    fast_functions,
    gamma_function,
    half_turns,
    hyperbolic_functions,
    log_and_exp,
    power_function,
    root_functions,
)
from tilewright.ir.types import DType, dtype_of, f64
from tilewright.language import dtype, tensor, type_of
from tilewright.support import errors

lib = tl.extra.libdevice

Formula = Callable[..., tensor]
Prepare = Callable[[Context, str, tuple[object, ...]], tuple[list[tensor], dtype | None]]
"""The operands in the dtypes that a formula takes, and the dtype that its result is rounded to."""


class Rule(NamedTuple):
    """Of one function; narrow: the formula for results of less than 64 bits, if it is another."""

    prepare: Prepare
    formula: Formula
    narrow: Formula | None = None


# ---- operands ------------------------------------------------------------------------------------


def _float_dtype(ctx: Context, function: str, operands: tuple[object, ...]) -> DType:
    """The float dtype of one operand, or the common one of several. Errors: InvalidOperation."""
    if len(operands) == 1:
        return dtype_of(float_argument(ctx, function, operands[0]).type)
    # Literals weigh nothing beside a tensor; with none they count by their own dtype.
    if not any(isinstance(operand, tensor) for operand in operands):
        operands = tuple(materialize(ctx, operand) for operand in operands)
    found = common_dtype(ctx, function, operands)
    if not found.is_float:
        ctx.fail(
            errors.InvalidOperation,
            f"compute {function} of {' and '.join(describe(operand) for operand in operands)}",
            "it is defined for floats",
            "convert one of them: x.to(tl.float32)",
        )
    return found


def _together(
    ctx: Context, function: str, operands: Sequence[object], dtypes: Sequence[dtype]
) -> list[tensor]:
    """Operands in dtypes of their own and in one shape."""
    values = [cast_to(ctx, x, kind) for x, kind in zip(operands, dtypes, strict=True)]
    shape = shape_of_all(ctx, function, values)
    return [tensor(broadcast_value(ctx, x.handle, shape, function)) for x in values]


def _floats(
    compute: Callable[[DType], DType], rounds: bool, ctx: Context, function: str,
    operands: tuple[object, ...],
) -> tuple[list[tensor], dtype | None]:  # fmt: skip
    own = _float_dtype(ctx, function, operands)
    kinds = [type_of(compute(own))] * len(operands)
    return _together(ctx, function, operands, kinds), type_of(own) if rounds else None


_WIDE = partial(_floats, lambda own: f64, True)
_OWN = partial(_floats, accumulator_dtype, True)
_BITS = partial(_floats, lambda own: own, False)
_QUESTION = partial(_floats, accumulator_dtype, False)
_TO_INTEGER = partial(_floats, lambda own: f64, False)
"""Floats: computed in fp64, or in fp32 at least, and rounded to their dtype; as they are; computed
and not rounded."""


def _with_exponent(
    ctx: Context, function: str, operands: tuple[object, ...]
) -> tuple[list[tensor], dtype | None]:
    """A float as fp64, rounded to its dtype, and an integer."""
    own = _float_dtype(ctx, function, operands[:1])
    return _together(ctx, function, operands, [tl.float64, tl.int32]), type_of(own)


def _with_order(
    ctx: Context, function: str, operands: tuple[object, ...]
) -> tuple[list[tensor], dtype | None]:
    """An integer, and a float as fp64, rounded to its dtype."""
    own = _float_dtype(ctx, function, operands[1:])
    return _together(ctx, function, operands, [tl.int32, tl.float64]), type_of(own)


def _integers(
    ctx: Context, function: str, operands: tuple[object, ...]
) -> tuple[list[tensor], dtype | None]:
    """Integers of one type, of 32 bits at least."""
    if not any(isinstance(operand, tensor) for operand in operands):
        operands = tuple(materialize(ctx, operand) for operand in operands)
    first, *rest = operands
    common = common_dtype(ctx, function, (first, *(rest or operands)))
    if common.is_float:
        ctx.fail(errors.InvalidValue, function, "x", "an integer", type_of(common))
    kind = type_of(common) if common.bits >= 32 else tl.int32
    return _together(ctx, function, operands, [kind] * len(operands)), None


def _given(
    dtypes: Sequence[dtype], ctx: Context, function: str, operands: tuple[object, ...]
) -> tuple[list[tensor], dtype | None]:
    """Operands of given dtypes; an integer that is no literal is not taken for a float."""
    for operand, kind in zip(operands, dtypes, strict=True):
        number = materialize(ctx, operand)
        if number.dtype.is_floating() != kind.is_floating():
            expected = "a float" if kind.is_floating() else "an integer"
            ctx.fail(errors.InvalidValue, function, "x", expected, number.type)
    return _together(ctx, function, operands, dtypes), None


def _of(*dtypes: dtype) -> Prepare:
    return partial(_given, dtypes)


# ---- conversions ---------------------------------------------------------------------------------


def to_integer(round_: Formula, target: dtype, x: tensor) -> tensor:
    """A float rounded to an integer, which saturates and takes NaNs as conversions do."""
    return round_(x).to(target)


def _from_integer(mode: str, target: dtype, x: tensor) -> tensor:
    return rounding.MODES[mode](rounding.of_integer(x, target))


def _rounded_by(mode: str, operation: Callable[..., rounding.Rounded], *x: tensor) -> tensor:
    return rounding.MODES[mode](operation(*x))


def _bitcast(target: dtype, x: tensor) -> tensor:
    return tl.cast(x, target, bitcast=True)


def _high_word(x: tensor) -> tensor:
    return (formulas.bits_of(x) >> 32).to(tl.int32)


def _low_word(x: tensor) -> tensor:
    return formulas.bits_of(x).to(tl.int32)


def _of_words(high: tensor, low: tensor) -> tensor:
    """A double of its upper and lower half."""
    bits = (high.to(tl.int64) << 32) | (low.to(tl.int64) & 0xFFFFFFFF)
    return tl.cast(bits, tl.float64, bitcast=True)


def _reciprocal_high(x: tensor) -> tensor:
    """1 / x to the upper half of its bits."""
    return _of_words(_high_word(1.0 / x), _low_word(x) & 0)


def _exponent_as_integer(x: tensor) -> tensor:
    """As C's ilogb: the ends of int32 for 0, infinities and NaNs."""
    exponent = formulas.logb(x)
    finite = tl.where(tl.abs(exponent) < formulas.INFINITY, exponent, 0.0).to(tl.int32)
    least, most = -(2**31), 2**31 - 1
    return tl.where(
        (x == 0.0) | (x != x), least, tl.where(tl.abs(x) == formulas.INFINITY, most, finite)
    )


ROUNDINGS: Mapping[str, Callable[[tensor], tensor]] = {
    "rn": lib.rint, "rz": lib.trunc, "rd": tl.floor, "ru": tl.ceil,
}  # fmt: skip
_FLOATS = {"float": tl.float32, "double": tl.float64}
_INTEGERS = {"int": tl.int32, "uint": tl.uint32, "ll": tl.int64, "ull": tl.uint64}


# ---- the table -----------------------------------------------------------------------------------


def _table() -> dict[Callable[..., Any], Rule]:
    wide = [
        formulas.remainder, formulas.logb,
        special.tgamma, special.j0, special.j1, special.y0, special.y1, special.cyl_bessel_i0,
        special.cyl_bessel_i1,
    ]  # fmt: skip
    whole = [integers.popc, integers.clz, integers.ffs, integers.brev, integers.mulhi,
             integers.hadd, integers.rhadd]  # fmt: skip
    fast = [fast_functions.fast_logf, fast_functions.fast_log10f, fast_functions.fast_exp10f,
            fast_functions.fast_tanf, fast_functions.fast_powf]  # fmt: skip
    questions = [formulas.isnan, formulas.isinf, formulas.isfinite]
    table = {
        **{getattr(lib, f.__name__): Rule(_WIDE, f) for f in wide},
        **{getattr(lib, f.__name__): Rule(_integers, f) for f in whole},
        **{getattr(lib, f.__name__): Rule(_QUESTION, f) for f in questions},
        **{getattr(lib, f.__name__): Rule(_OWN, f) for f in fast},
        **_with_single_forms(),
        lib.round: Rule(_OWN, formulas.round_away),
        lib.nextafter: Rule(_BITS, formulas.nextafter),
        lib.copysign: Rule(_BITS, formulas.copysign),
        lib.signbit: Rule(_BITS, formulas.signbit),
        lib.fmod: Rule(_OWN, formulas.fmod),
        lib.fdim: Rule(_OWN, formulas.fdim),
        lib.ldexp: Rule(_with_exponent, formulas.scaled),
        lib.ilogb: Rule(_TO_INTEGER, _exponent_as_integer),
        lib.llrint: Rule(_QUESTION, partial(to_integer, ROUNDINGS["rn"], tl.int64)),
        lib.llround: Rule(_QUESTION, partial(to_integer, formulas.round_away, tl.int64)),
        lib.saturatef: Rule(_of(tl.float32), formulas.saturate),
        lib.rcp64h: Rule(_of(tl.float64), _reciprocal_high),
        lib.mul24: Rule(_integers, integers.mul24),
        lib.sad: Rule(_integers, integers.sad),
        lib.byte_perm: Rule(_of(tl.int32, tl.int32, tl.int32), integers.byte_perm),
        lib.hiloint2double: Rule(_of(tl.int32, tl.int32), _of_words),
        lib.double2hiint: Rule(_of(tl.float64), _high_word),
        lib.double2loint: Rule(_of(tl.float64), _low_word),
    }  # fmt: skip
    return table | _directed() | _conversions()


def _with_single_forms() -> dict[Callable[..., Any], Rule]:
    """Functions with a formula of fp32 beside that of fp64."""
    modules = {
        log_and_exp: ("log1p", "log10", "expm1", "exp10"),
        hyperbolic_functions: ("sinh", "cosh", "asinh", "acosh", "atanh"),
        arc_functions: ("asin", "acos", "atan", "atan2"),
        half_turns: ("sinpi", "cospi"),
        root_functions: ("cbrt", "rcbrt"),
    }
    integrals = ("erfc", "erfcx", "erfinv", "erfcinv", "normcdf", "normcdfinv")
    table = {
        getattr(lib, name): Rule(_OWN, getattr(formulas, name), getattr(module, name))
        for module, names in modules.items()
        for name in names
    }
    table[lib.lgamma] = Rule(_OWN, special.lgamma, gamma_function.lgamma)
    for name in integrals:
        wide, narrow = getattr(special, name), getattr(error_integrals, name)
        table[getattr(lib, name)] = Rule(_OWN, wide, narrow)
    for name in ("hypot", "norm3d", "norm4d"):
        table[getattr(lib, name)] = Rule(_OWN, formulas.norm, root_functions.norm)
        table[getattr(lib, f"r{name}")] = Rule(
            _OWN, formulas.reciprocal_norm, root_functions.reciprocal_norm
        )
    return table


def _directed() -> dict[Callable[..., Any], Rule]:
    operations = (rounding.add, rounding.sub, rounding.mul, rounding.fma, rounding.div,
                  rounding.rcp, rounding.sqrt)  # fmt: skip
    names = [(f, f"{f.__name__}_{mode}", mode) for f in operations for mode in ("rz", "rd", "ru")]
    names.append((rounding.rcp, "rcp_rn", "rn"))
    return {
        getattr(lib, name): Rule(_OWN, partial(_rounded_by, mode, function))
        for function, name, mode in names
    }


def _conversions() -> dict[Callable[..., Any], Rule]:
    table: dict[Callable[..., Any], Rule] = {}
    for mode, whole in ROUNDINGS.items():
        narrowed = Rule(_of(tl.float64), partial(_rounded_by, mode, rounding.narrowed))
        table[getattr(lib, f"double2float_{mode}")] = narrowed
        for (word, real), (short, kind) in (
            (f, i) for f in _FLOATS.items() for i in _INTEGERS.items()
        ):
            out = Rule(_of(real), partial(to_integer, whole, kind))
            table[getattr(lib, f"{word}2{short}_{mode}")] = out
            name = f"{short}2{word}_{mode}"
            # 32 bits are a double as they are: there is one way to convert them.
            if hasattr(lib, name):
                table[getattr(lib, name)] = Rule(_of(kind), partial(_from_integer, mode, real))
    pairs = {
        "int_as_float": (tl.int32, tl.float32), "float_as_int": (tl.float32, tl.int32),
        "uint_as_float": (tl.uint32, tl.float32), "float_as_uint": (tl.float32, tl.uint32),
        "longlong_as_double": (tl.int64, tl.float64), "double_as_longlong": (tl.float64, tl.int64),
    }  # fmt: skip
    for name, (source, target) in pairs.items():
        table[getattr(lib, name)] = Rule(_of(source), partial(_bitcast, target))
    return table


def _apply(ctx: Context, name: str, rule: Rule, operands: tuple[object, ...]) -> tensor:
    values, result = rule.prepare(ctx, name, operands)
    is_narrow = result is not None and result.primitive_bitwidth < tl.float64.primitive_bitwidth
    formula = (rule.narrow if is_narrow else None) or rule.formula
    found = evaluate(ctx, lambda: formula(*values))
    return found if result is None else cast_to(ctx, found, result)


def _register(stub: Callable[..., Any], rule: Rule) -> None:
    """Under a function with as many parameters as the stub has."""
    name = stub.__name__

    def unary(ctx: Context, x: object) -> tensor:
        return _apply(ctx, name, rule, (x,))

    def binary(ctx: Context, x: object, y: object) -> tensor:
        return _apply(ctx, name, rule, (x, y))

    def ternary(ctx: Context, x: object, y: object, z: object) -> tensor:
        return _apply(ctx, name, rule, (x, y, z))

    def quaternary(ctx: Context, x: object, y: object, z: object, w: object) -> tensor:
        return _apply(ctx, name, rule, (x, y, z, w))

    # The stub is wrapped by its decorator: the inner function has the declared parameters.
    declared = cast("FunctionType", cast("Any", stub).__wrapped__)
    implements(stub)((unary, binary, ternary, quaternary)[declared.__code__.co_argcount - 1])


for _stub, _rule in _table().items():
    _register(_stub, _rule)


def _of_order(ctx: Context, name: str, function: Any, x: object, y: object) -> tensor:
    (order, argument), result = _with_order(ctx, name, (x, y))
    found = ctx.functions.call(ctx, function, (order, argument), {})
    assert result is not None
    return cast_to(ctx, found, result)


@implements(lib.jn)
def jn(ctx: Context, x: object, y: object) -> tensor:
    return _of_order(ctx, "jn", bessel_j, x, y)


@implements(lib.yn)
def yn(ctx: Context, x: object, y: object) -> tensor:
    return _of_order(ctx, "yn", bessel_y, x, y)


@implements(lib.fast_dividef)
def fast_dividef(ctx: Context, x: object, y: object) -> tensor:
    return quotient(ctx, "fast_dividef", x, y, "fast")


_POWER = Rule(_OWN, formulas.power, power_function.pow)
_PRODUCTS, _NARROW_PRODUCTS = 8, 64
"""Greatest size of a known exponent that is computed by products: within 4 ulp of fp32, and an ulp
of floats of 16 bits."""


@implements(lib.pow)
def pow(ctx: Context, x: object, y: object) -> tensor:
    """By the type of y: an integer, or a literal that is whole, is a power of products."""
    own = _float_dtype(ctx, "pow", (x, y))
    wide = accumulator_dtype(own)
    if not isinstance(y, tensor) and isinstance(x, tensor):
        n, most = float(cast("float", y)), _NARROW_PRODUCTS if own.bits < 32 else _PRODUCTS
        if n.is_integer() and 0 < abs(n) <= most:
            base = cast_to(ctx, x, type_of(wide))
            power = evaluate(ctx, lambda: power_function.repeated_product(base, int(n)))
            return cast_to(ctx, power, type_of(own))
    if isinstance(y, tensor) and y.dtype.is_int() and wide is not f64:
        exponent = evaluate(ctx, lambda: power_function.within_int32(y))
        values = _together(ctx, "pow", (x, exponent), [type_of(wide), tl.int32])
        power = evaluate(ctx, lambda: power_function.integer_power(*values))
        return cast_to(ctx, power, type_of(own))
    return _apply(ctx, "pow", _POWER, (x, y))


_MATH = {
    lib.exp: "accurate_exp", lib.rint: "round_even", lib.trunc: "trunc", lib.tan: "tan",
    lib.fast_log2f: "fast_log2", lib.fast_sinf: "fast_sin", lib.fast_cosf: "fast_cos",
    lib.fast_tanhf: "fast_tanh",
}  # fmt: skip
"""Functions that are ops: those of `arith.math`, by stub."""


def _register_math(stub: Callable[..., Any], name: str) -> None:
    @implements(stub)
    def function(ctx: Context, x: object) -> tensor:  # pyright: ignore[reportUnusedFunction]
        return math_function(ctx, name, x)


for _stub, _name in _MATH.items():
    _register_math(_stub, _name)
