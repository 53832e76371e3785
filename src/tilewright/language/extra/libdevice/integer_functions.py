"""Functions of the bits of integers, of 32 or 64 bits and all of one type."""

from __future__ import annotations

from tilewright import language as tl
from tilewright.language.library_functions import Operands, library_function
from tilewright.language.tensors import tensor


def _unsigned(x: tensor) -> tensor:
    return tl.cast(x, tl.get_int_dtype(x.dtype.primitive_bitwidth, False), bitcast=True)


def _same_bits(x: tensor, like: tensor) -> tensor:
    return tl.cast(x, like.dtype, bitcast=True)


def _repeated(byte: int, x: tensor) -> int:
    """A byte repeated over the width of x."""
    return int.from_bytes(bytes([byte]) * (x.dtype.primitive_bitwidth // 8), "little")


@library_function(Operands.INTEGERS)
def popc(x: tensor) -> tensor:
    """Bits of x that are set."""
    # Counted in pairs, nibbles and bytes, which a product sums.
    bits = _unsigned(x)
    bits = bits - ((bits >> 1) & _repeated(0x55, x))
    bits = (bits & _repeated(0x33, x)) + ((bits >> 2) & _repeated(0x33, x))
    bits = (bits + (bits >> 4)) & _repeated(0x0F, x)
    return ((bits * _repeated(0x01, x)) >> (x.dtype.primitive_bitwidth - 8)).to(tl.int32)


@library_function(Operands.INTEGERS)
def clz(x: tensor) -> tensor:
    """Zeros before the first bit of x; the width for 0."""
    # All bits after the first one are set; the zeros before it remain.
    bits = _unsigned(x)
    distance = 1
    while distance < x.dtype.primitive_bitwidth:
        bits = bits | (bits >> distance)
        distance *= 2
    return popc(~bits)


@library_function(Operands.INTEGERS)
def ffs(x: tensor) -> tensor:
    """Position of the lowest bit of x, from 1; 0 for 0."""
    bits = _unsigned(x)
    # Below the lowest bit all are set in x - 1, so that x ^ (x - 1) has as many as its position.
    return tl.where(x == 0, 0, popc(bits ^ (bits - 1)))


@library_function(Operands.INTEGERS)
def brev(x: tensor) -> tensor:
    """The bits of x in reverse."""
    # Halves are swapped, then their halves.
    bits, distance = _unsigned(x), x.dtype.primitive_bitwidth // 2
    mask = (1 << distance) - 1
    while distance:
        bits = ((bits >> distance) & mask) | ((bits & mask) << distance)
        distance //= 2
        mask ^= mask << distance
    return _same_bits(bits, x)


@library_function(Operands.INTEGERS)
def mulhi(x: tensor, y: tensor) -> tensor:
    """The high half of the product."""
    high = tl.umulhi(_unsigned(x), _unsigned(y))
    if x.dtype.is_int_signed():
        # As unsigned, a negative factor is 2^width too large.
        high = high - tl.where(x < 0, _unsigned(y), 0) - tl.where(y < 0, _unsigned(x), 0)
    return _same_bits(high, x)


@library_function(Operands.INTEGERS)
def mul24(x: tensor, y: tensor) -> tensor:
    """The product of the low 24 bits."""
    # Those of signed integers keep their sign.
    return ((x << 8) >> 8) * ((y << 8) >> 8)


@library_function(Operands.INTEGERS)
def hadd(x: tensor, y: tensor) -> tensor:
    """(x + y) >> 1 of the exact sum."""
    # x + y = 2 (x & y) + (x ^ y)
    return (x & y) + ((x ^ y) >> 1)


@library_function(Operands.INTEGERS)
def rhadd(x: tensor, y: tensor) -> tensor:
    """(x + y + 1) >> 1 of the exact sum."""
    # x + y = 2 (x | y) - (x ^ y)
    return (x | y) - ((x ^ y) >> 1)


@library_function(Operands.INTEGERS)
def sad(x: tensor, y: tensor, z: tensor) -> tensor:
    """abs(x - y) + z of 32 bits."""
    larger, smaller = _unsigned(tl.maximum(x, y)), _unsigned(tl.minimum(x, y))
    return _same_bits(larger - smaller + _unsigned(z), x)


@library_function((tl.int32, tl.int32, tl.int32))
def byte_perm(x: tensor, y: tensor, z: tensor) -> tensor:
    """Four bytes of the eight of x and y, numbered by nibbles of z; bit 3 of one repeats the
    sign."""
    pair = _unsigned(x).to(tl.uint64) | (_unsigned(y).to(tl.uint64) << 32)
    choices = _unsigned(z)
    total = choices ^ choices
    for number in range(4):
        nibble = choices >> 4 * number
        byte = (pair >> ((nibble & 7) * 8).to(tl.uint64)).to(tl.uint32) & 0xFF
        sign = tl.where(byte >= 0x80, 0xFF, 0)
        total = total | (tl.where((nibble & 8) != 0, sign, byte).to(tl.uint32) << 8 * number)
    return _same_bits(total, x)
