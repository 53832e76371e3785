"""Matrix descriptors of wgmma: where the elements of an operand lie in shared memory.

bits 0-13 start >> 4, 16-29 leading byte offset >> 4, 32-45 stride byte offset >> 4,
49-51 base offset (taken to be 0), 62-63 swizzle: none, 128, 64 or 32 bytes
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from tests.emulator.memory import Array, EmulationError

_SWIZZLES = [0, 128, 64, 32]
_FIELDS = 0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 3 << 62


def swizzled(addresses: Array, width: int) -> Array:
    """Bits 4, 5, 6 (as many as a row of `width` bytes has) ^= bits 7, 8, 9."""
    return addresses ^ ((addresses >> 3) & (max(width, 16) - 16))


@dataclass(frozen=True)
class Operand:
    """Of one instruction. rows: along M or N; depth: along K; size: bytes of an element.

    is_transposed: contiguous along M or N instead of K.
    """

    rows: int
    depth: int
    size: int
    is_transposed: bool


@functools.lru_cache(128)
def addresses(descriptor: int, operand: Operand) -> Array:
    """(rows, depth) byte addresses of the elements."""
    if descriptor & ~_FIELDS:
        raise EmulationError(f"a matrix descriptor with other bits set: {descriptor:#018x}")
    start, leading, stride = (((descriptor >> bit) & 0x3FFF) << 4 for bit in (0, 16, 32))
    width = _SWIZZLES[descriptor >> 62]
    if width and (start // width * width) % (8 * width):
        raise EmulationError(f"a swizzled operand whose rows start at {start:#x}")
    if width and stride % (8 * width):
        raise EmulationError(f"a swizzled operand whose groups of 8 rows are {stride} bytes apart")
    return swizzled(start + _offsets(operand, width, leading, stride), width)


@functools.lru_cache(64)
def _offsets(operand: Operand, width: int, leading: int, stride: int) -> Array:
    """Byte offsets before the swizzle."""
    row = np.arange(operand.rows, dtype=np.int64)[:, None]
    k = np.arange(operand.depth, dtype=np.int64)[None]
    if operand.is_transposed:
        row, k = row * operand.size, k
        unit = width or 16
        panel = (row // unit) * (leading if width else stride)
        return panel + row % unit + (k // 8) * (stride if width else leading) + k % 8 * unit
    k = k * operand.size
    if width:
        return (row // 8) * stride + row % 8 * width + k
    return (row // 8) * stride + row % 8 * 16 + (k // 16) * leading + k % 16


@functools.lru_cache(512)
def pieces(descriptor: int, operand: Operand, first: int, last: int) -> Array:
    """Numbers of the pieces of 16 bytes that hold these rows."""
    return np.unique(addresses(descriptor, operand)[first:last] >> 4)
