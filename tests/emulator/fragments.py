"""Which elements of wgmma's operands and accumulators lie in which registers of which threads."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32,
    "s8": np.int8, "u8": np.uint8, "s32": np.int32,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def truncated_to_tf32(x: Array) -> Array:
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


@dataclass(frozen=True)
class Shape:
    """m64nNkK with the types of D, A and B. signs: factors of A and B."""

    n: int
    k: int
    d: str
    a: str
    b: str
    signs: tuple[int, int] = (1, 1)
    saturates: bool = False

    @property
    def size(self) -> int:
        """Bytes of an element of A and B."""
        return np.dtype(DTYPES[self.a]).itemsize

    @property
    def registers(self) -> int:
        """Of accumulators, per thread."""
        return self.n // 4 if self.d == "f16" else self.n // 2

    def elements(self, memory: Array, places: Array, is_b: bool = False) -> Array:
        """(rows, depth) elements at byte addresses."""
        dtype = np.dtype(DTYPES[self.b if is_b else self.a])
        return memory.view(dtype)[places // dtype.itemsize]

    def product(self, left: Array, right: Array, initial: Array | None) -> Array:
        """(64, n): left (64, k) times right (n, k), transposed, and what was there before."""
        if self.a == "tf32":
            left, right = truncated_to_tf32(left), truncated_to_tf32(right)
        wide = np.int64 if self.d == "s32" else np.float64
        found = np.matmul(left.astype(wide), right.astype(wide).T) * (self.signs[0] * self.signs[1])
        if initial is not None:
            found = found + initial.astype(wide)
        if self.saturates:
            found = np.clip(found, -(2**31), 2**31 - 1)
        return found.astype(DTYPES[self.d])


@functools.cache
def _accumulator(n: int) -> tuple[Array, Array]:
    """Row and column of element i of lane l of warp w: (4, 32, n / 2) each."""
    w, lane, i = np.ogrid[:4, :32, : n // 2]
    row = 16 * w + (lane >> 2) + 4 * (i & 2)
    column = 8 * (i >> 2) + 2 * (lane & 3) + (i & 1)
    shape = (4, 32, n // 2)
    return np.broadcast_to(row, shape), np.broadcast_to(column, shape)


def accumulators_as_words(shape: Shape, matrix: Any) -> Array:
    """(64, n) as (4 warps, 32 lanes, registers) of 32 bits."""
    return np.ascontiguousarray(matrix[_accumulator(shape.n)]).view(np.uint32)


def accumulators_as_matrix(shape: Shape, words: Array) -> Array:
    """(4 warps, 32 lanes, registers) of 32 bits as (64, n)."""
    dtype = np.dtype(DTYPES[shape.d])
    matrix = np.zeros((64, shape.n), dtype)
    matrix[_accumulator(shape.n)] = np.ascontiguousarray(words.astype(np.uint32)).view(dtype)
    return matrix


@functools.cache
def _operand_a(size: int) -> tuple[Array, Array]:
    """Row and column of byte-packed element i of word j: (4, 32, 4, 4 / size) each."""
    per = 4 // size
    w, lane, j, i = np.ogrid[:4, :32, :4, :per]
    row = 16 * w + (lane >> 2) + 8 * (j & 1)
    column = per * (lane & 3) + i + 4 * per * (j >> 1)
    shape = (4, 32, 4, per)
    return np.broadcast_to(row, shape), np.broadcast_to(column, shape)


def operand_a(shape: Shape, words: Sequence[Sequence[Array]]) -> Array:
    """(64, k) from four words of each thread, by warp."""
    held = np.stack([np.stack(four, axis=1) for four in words]).astype(np.uint32)
    elements = np.ascontiguousarray(held)[..., None].view(DTYPES[shape.a])
    matrix = np.zeros((64, shape.k), DTYPES[shape.a])
    matrix[_operand_a(shape.size)] = elements
    return matrix
