"""Philox: counter-based random numbers, and the distributions made from them.

One round maps the counter (c0, c1, c2, c3) under the key (k0, k1) to

    (hi(M1 * c2) ^ c1 ^ k0,  lo(M1 * c2),  hi(M0 * c0) ^ c3 ^ k1,  lo(M0 * c0))

and adds (W0, W1) to the key. The key stays scalar until it is combined with the counter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright import language as tl
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.broadcasting import broadcast_value
from tilewright.frontend.semantics.dtype_casts import cast_value
from tilewright.frontend.semantics.literal_constants import constant, materialize
from tilewright.frontend.semantics.math_functions import math_function
from tilewright.frontend.semantics.numeric_operators import binary
from tilewright.frontend.semantics.selection import extremum, shape_of_all
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir import Value
from tilewright.ir.types import (
    DType,
    dtype_of,
    f32,
    i32,
    i64,
    shape_of,
    u32,
    u64,
)
from tilewright.language import tensor
from tilewright.support import errors

Words = tuple[Value, Value, Value, Value]


class Constants(NamedTuple):
    """Multipliers and key increments for one word size (Salmon et al., 2011, section 4.3)."""

    m0: int
    m1: int
    w0: int
    w1: int


CONSTANTS: dict[DType, Constants] = {
    u32: Constants(0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85),
    u64: Constants(0xD2E7470EE14C6C93, 0xCA5A826395121157, 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
}

# fp32 values just below 2^-31 and 2^-63, as in Triton, so that sequences agree.
UNIFORM_SCALES = {i32: 4.6566127342e-10, i64: 1.0842020432385337e-19}
"""The largest fp32 factor that maps every non-negative integer below 1."""


def philox_rounds(ctx: Context, counter: Words, key: tuple[Value, Value], rounds: int) -> Words:
    """The counter after `rounds` rounds; the words are tiles or scalars of one unsigned type."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    numbers = CONSTANTS[dtype_of(c0.type)]
    m0, m1 = constant(ctx, numbers.m0, c0.type), constant(ctx, numbers.m1, c0.type)
    w0, w1 = constant(ctx, numbers.w0, k0.type), constant(ctx, numbers.w1, k1.type)
    shape = shape_of(c0.type)
    for _ in range(rounds):
        low0, low2 = ctx.mul(m0, c0), ctx.mul(m1, c2)
        high0, high2 = ctx.mul_high(m0, c0), ctx.mul_high(m1, c2)
        c0 = ctx.bit_xor(ctx.bit_xor(high2, c1), broadcast_value(ctx, k0, shape))
        c2 = ctx.bit_xor(ctx.bit_xor(high0, c3), broadcast_value(ctx, k1, shape))
        c1, c3 = low2, low0
        k0, k1 = ctx.add(k0, w0), ctx.add(k1, w1)
    return c0, c1, c2, c3


def _integer(ctx: Context, function: str, name: str, value: object) -> tensor:
    number = materialize(ctx, value)
    if not number.dtype.is_int():
        ctx.fail(errors.InvalidValue, function, name, "an integer", number.type)
    return number


def _rounds(ctx: Context, function: str, value: object) -> int:
    rounds = constant_arguments.integer(ctx, function, "n_rounds", value)
    if rounds < 1:
        ctx.fail(errors.InvalidValue, function, "n_rounds", "positive", rounds)
    return rounds


def _counter(ctx: Context, words: tuple[Any, ...], dtype: DType) -> Words:
    """Four counter words in one dtype and shape."""
    shape = shape_of_all(ctx, "combine", words)
    c0, c1, c2, c3 = (
        broadcast_value(ctx, cast_value(ctx, word.handle, dtype), shape) for word in words
    )
    return c0, c1, c2, c3


@implements(tl.philox)
def philox(
    ctx: Context,
    seed: object,
    c0: object,
    c1: object,
    c2: object,
    c3: object,
    n_rounds: object = 10,
) -> tl.tuple:
    words = tuple(_integer(ctx, "philox", f"c{i}", c) for i, c in enumerate((c0, c1, c2, c3)))
    wide = cast_value(ctx, _integer(ctx, "philox", "seed", seed).handle, u64)
    # Triton decides by the first counter word: 64-bit words take the seed as one key word.
    if words[0].dtype.primitive_bitwidth > 32:
        dtype, key = u64, (wide, constant(ctx, 0, wide.type))
    else:
        dtype = u32
        # The 64-bit seed becomes the two 32-bit words of the key.
        high = ctx.shr(wide, 32)
        key = (cast_value(ctx, wide, u32), cast_value(ctx, high, u32))
    rounds = _rounds(ctx, "philox", n_rounds)
    results = philox_rounds(ctx, _counter(ctx, words, dtype), key, rounds)
    return tl.tuple(tensor(word) for word in results)


@implements(tl.philox_impl)
def philox_impl(
    ctx: Context,
    c0: object,
    c1: object,
    c2: object,
    c3: object,
    k0: object,
    k1: object,
    n_rounds: object = 10,
) -> tl.tuple:
    words = tuple(_integer(ctx, "philox_impl", f"c{i}", c) for i, c in enumerate((c0, c1, c2, c3)))
    dtype = u64 if words[0].dtype.primitive_bitwidth > 32 else u32
    # Keys are truncated to the words of the counter: Philox has one word size.
    key0, key1 = (
        cast_value(ctx, _integer(ctx, "philox_impl", name, k).handle, dtype)
        for name, k in (("k0", k0), ("k1", k1))
    )
    rounds = _rounds(ctx, "philox_impl", n_rounds)
    results = philox_rounds(ctx, _counter(ctx, words, dtype), (key0, key1), rounds)
    return tl.tuple(tensor(word) for word in results)


@implements(tl.randint4x)
def randint4x(ctx: Context, seed: object, offset: object, n_rounds: object = 10) -> tl.tuple:
    position = _integer(ctx, "randint4x", "offset", offset)
    zero = tensor(constant(ctx, 0, u32))
    low = tensor(cast_value(ctx, position.handle, u32))
    high: Any = zero
    # A 64-bit offset fills two counter words, so that long streams do not repeat.
    if position.dtype.primitive_bitwidth > 32:
        shifted = binary(ctx, "rshift", position, 32)
        high = tensor(cast_value(ctx, shifted.handle, u32))
    return philox(ctx, seed, low, high, zero, zero, n_rounds)


@implements(tl.randint)
def randint(ctx: Context, seed: object, offset: object, n_rounds: object = 10) -> tensor:
    return randint4x(ctx, seed, offset, n_rounds)[0]


@implements(tl.uint_to_uniform_float)
def uint_to_uniform_float(ctx: Context, x: object) -> tensor:
    words = _integer(ctx, "uint_to_uniform_float", "x", x)
    signed = {32: i32, 64: i64}.get(words.dtype.primitive_bitwidth)
    if signed is None:
        ctx.fail(errors.InvalidValue, "uint_to_uniform_float", "x", "of 32 or 64 bits", words.type)
    value = words.handle
    if dtype_of(value.type) is not signed:
        value = ctx.bitcast(value, signed)
    # x if x >= 0 else ~x, which is -x - 1
    # An arithmetic shift: all ones for negative words, else 0; XOR then gives ~x or x.
    sign = ctx.shr(value, constant(ctx, signed.bits - 1, value.type))
    positive = ctx.bit_xor(value, sign)
    number = cast_value(ctx, positive, f32)
    return tensor(ctx.mul(number, constant(ctx, UNIFORM_SCALES[signed], number.type)))


@implements(tl.rand)
def rand(ctx: Context, seed: object, offset: object, n_rounds: object = 10) -> tensor:
    return uint_to_uniform_float(ctx, randint(ctx, seed, offset, n_rounds))


@implements(tl.rand4x)
def rand4x(ctx: Context, seed: object, offsets: object, n_rounds: object = 10) -> tl.tuple:
    words = randint4x(ctx, seed, offsets, n_rounds)
    return tl.tuple(uint_to_uniform_float(ctx, word) for word in words)


@implements(tl.pair_uniform_to_normal)
def pair_uniform_to_normal(ctx: Context, u1: object, u2: object) -> tl.tuple:
    """radius = sqrt(-2 log u1), angle = 2 pi u2; u1 is kept away from zero."""
    # log(0) is infinite; 1.0e-7 is the bound of Triton.
    safe = extremum(ctx, "maximum", 1.0e-7, u1, False)
    angle = binary(ctx, "mul", 6.283185307179586, u2)
    logarithm = math_function(ctx, "log", safe)
    radius = math_function(ctx, "sqrt", binary(ctx, "mul", -2.0, logarithm))
    return tl.tuple(
        binary(ctx, "mul", radius, math_function(ctx, function, angle))
        for function in ("cos", "sin")
    )


@implements(tl.randn)
def randn(ctx: Context, seed: object, offset: object, n_rounds: object = 10) -> tensor:
    words = randint4x(ctx, seed, offset, n_rounds)
    # One call of Philox gives four words, of which a pair is enough for one normal number.
    u1, u2 = (uint_to_uniform_float(ctx, word) for word in words[:2])
    return pair_uniform_to_normal(ctx, u1, u2)[0]


@implements(tl.randn4x)
def randn4x(ctx: Context, seed: object, offset: object, n_rounds: object = 10) -> tl.tuple:
    u1, u2, u3, u4 = rand4x(ctx, seed, offset, n_rounds)
    return pair_uniform_to_normal(ctx, u1, u2) + pair_uniform_to_normal(ctx, u3, u4)
