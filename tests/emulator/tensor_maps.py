"""Tensor maps: the 128 bytes that describe an array to the engine of bulk copies.

On a GPU the driver makes them (cuTensorMapEncodeTiled, whose rules are checked here); these hold
the same fields in a format of their own.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tests.emulator.descriptors import swizzled
from tests.emulator.memory import Array, EmulationError

DTYPES: list[Any] = [
    np.uint8, np.uint16, np.uint32, np.int32, np.uint64, np.int64, np.float16, np.float32,
    np.float64, ml_dtypes.bfloat16, np.float32, np.float32, np.float32,
]  # fmt: skip
"""By the driver's number of the data type."""

SWIZZLES = [0, 32, 64, 128]
"""Bytes of a row, by the driver's number."""

_MAGIC = 0x7E4504A9
_FORMAT = "<IQ5Q4Q5I4B"


@dataclass
class Pieces:
    """A box in pieces of equal size: addresses (n,) in global memory, offsets (n,) in the box as it
    lies in shared memory before the swizzle, and which are within the array."""

    addresses: Array
    offsets: Array
    inside: Array
    size: int


class TensorMap:
    """dims and box: elements, the contiguous dimension first. strides: bytes, of the others."""

    def __init__(
        self, base: int, dims: Sequence[int], strides: Sequence[int], box: Sequence[int], *,
        dtype: int, swizzle: int = 0, fills_nan: bool = False,
    ) -> None:  # fmt: skip
        self.base, self.dims, self.strides = base, list(dims), list(strides)
        self.box, self.kind, self.fills_nan = list(box), dtype, fills_nan
        self.swizzle = SWIZZLES[swizzle]
        self._check()
        fields = [_MAGIC, base, *_padded(dims, 5), *_padded(strides, 4), *_padded(box, 5)]
        packed = struct.pack(_FORMAT, *fields, len(self.dims), dtype, swizzle, fills_nan)
        self._memory = np.zeros(192, np.uint8)
        start = -self._memory.ctypes.data % 64
        self._memory[start : start + len(packed)] = np.frombuffer(packed, np.uint8)
        self.address = self._memory.ctypes.data + start

    @staticmethod
    def of(array: Array, box: Sequence[int], swizzle: int = 0) -> TensorMap:
        """Of a NumPy array, whose last dimension is contiguous; box: as its shape."""
        kind = DTYPES.index(array.dtype.type)
        strides = [s for s in array.strides[::-1][1:]]
        return TensorMap(
            array.ctypes.data, array.shape[::-1], strides, box[::-1], dtype=kind, swizzle=swizzle
        )

    @staticmethod
    def at(address: int) -> TensorMap:
        """What a kernel finds at an address."""
        if address % 64:
            raise EmulationError(f"a tensor map at {address:#x}, which is no multiple of 64")
        size = struct.calcsize(_FORMAT)
        magic, base, *rest = struct.unpack(_FORMAT, ctypes.string_at(address, size))
        if magic != _MAGIC:
            raise EmulationError("there is no tensor map where a copy looks for it")
        dims, strides, box = rest[:5], rest[5:9], rest[9:14]
        rank, kind, swizzle, fills_nan = rest[14:]
        return TensorMap(
            base, dims[:rank], strides[: rank - 1], box[:rank],
            dtype=kind, swizzle=swizzle, fills_nan=bool(fills_nan),
        )  # fmt: skip

    @property
    def dtype(self) -> Any:
        return np.dtype(DTYPES[self.kind])

    @property
    def row_bytes(self) -> int:
        return self.box[0] * self.dtype.itemsize

    @property
    def bytes(self) -> int:
        """Of a box."""
        return math.prod(self.box) * self.dtype.itemsize

    def _check(self) -> None:
        """The driver's rules."""
        rank, size = len(self.dims), self.dtype.itemsize
        steps = [s for s in self.strides if s % 16 or not 0 <= s < 1 << 40]
        wrong = {
            "rank": not 1 <= rank <= 5 or len(self.strides) != rank - 1 or len(self.box) != rank,
            "address": self.base % 16,
            "dimensions": not all(1 <= d <= 1 << 32 for d in self.dims),
            "strides": steps,
            "box": not all(1 <= b <= 256 for b in self.box) or self.box[0] * size % 16,
            "swizzle": self.swizzle and self.box[0] * size > self.swizzle,
        }
        refused = [name for name, is_wrong in wrong.items() if is_wrong]
        if refused:
            raise EmulationError(f"a tensor map is refused for its {', '.join(refused)}")
        if self.swizzle and self.row_bytes != self.swizzle:
            raise AssertionError("the emulator knows no rows narrower than the swizzle")

    def pieces(self, coordinates: Sequence[int]) -> Pieces:
        """The box at some coordinates, dimension 0 first."""
        size = self.dtype.itemsize
        first, last = coordinates[0], self.dims[0]
        edges = [first * size, last * size, self.row_bytes]
        piece = math.gcd(16, *edges)
        per_row = self.row_bytes // piece
        at = first * size + np.arange(per_row, dtype=np.int64) * piece
        addresses, inside = at, (at >= 0) & (at < last * size)
        for axis in range(1, len(self.dims)):
            places = coordinates[axis] + np.arange(self.box[axis], dtype=np.int64)[:, None]
            valid = (places >= 0) & (places < self.dims[axis])
            addresses = (places * self.strides[axis - 1] + addresses[None]).reshape(-1)
            inside = (valid & inside[None]).reshape(-1)
        offsets = np.arange(len(addresses), dtype=np.int64) * piece
        whole = (addresses + np.int64(self.base)).astype(np.uint64)
        return Pieces(whole, offsets, inside, piece)

    def places(self, start: int) -> Array:
        """Addresses in shared memory of pieces of 16 bytes, in the order of the box."""
        return swizzled(start + np.arange(0, self.bytes, 16, dtype=np.int64), self.swizzle or 16)

    def filling(self) -> Array:
        """The bytes of an element that lies outside."""
        is_float = self.dtype.kind not in "iu"
        value = np.nan if self.fills_nan and is_float else 0
        return np.array([value], self.dtype).view(np.uint8)


def _padded(values: Sequence[int], count: int) -> list[int]:
    return [*values, *[0] * (count - len(values))]
