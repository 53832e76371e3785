"""Memory of an emulated program: absolute addresses for global memory, a checked shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class EmulationError(AssertionError):
    """The kernel did what a GPU would not forgive."""


class _Bytes:
    """Memory of this process as an array."""

    def __init__(self, low: int, size: int) -> None:
        self.__array_interface__ = {
            "version": 3, "data": (low, False), "shape": (size,), "typestr": "|u1",
        }  # fmt: skip


def _bytes_at(low: int, size: int) -> Array:
    return np.asarray(_Bytes(low, size))


def _check_alignment(addresses: Array, size: int, what: str) -> None:
    unit = 1 << (size - 1).bit_length()
    if (addresses % np.uint64(unit)).any():
        raise EmulationError(f"{what} of {size} bytes at addresses that are no multiples of it")


class Global:
    """Memory of this process. ranges: (first, end) that may be accessed; empty for all."""

    def __init__(self, ranges: list[tuple[int, int]] | None = None) -> None:
        self.ranges = ranges or []

    def _view(self, addresses: Array, size: int, what: str) -> tuple[Array, Array]:
        _check_alignment(addresses, size, what)
        low, high = int(addresses.min()), int(addresses.max()) + size
        if self.ranges:
            inside = np.zeros(addresses.shape, bool)
            for first, end in self.ranges:
                inside |= (addresses >= first) & (addresses + np.uint64(size) <= end)
            if not inside.all():
                raise EmulationError(f"{what} outside the arrays at {addresses[~inside][:4]}")
        offsets = (addresses - np.uint64(low)).astype(np.int64)
        return _bytes_at(low, high - low), offsets[:, None] + np.arange(size)

    def load(self, addresses: Array, size: int) -> Array:
        """(n, size) bytes."""
        if not len(addresses):
            return np.zeros((0, size), np.uint8)
        view, places = self._view(addresses, size, "a load")
        return view[places]

    def store(self, addresses: Array, data: Array) -> None:
        if len(addresses):
            view, places = self._view(addresses, data.shape[1], "a store")
            view[places] = data


class Shared:
    """Shared memory that knows who touched each byte since the last barrier."""

    def __init__(self, size: int) -> None:
        self.data = np.full(max(size, 16), 0xCD, np.uint8)
        self.epoch = 0
        self.writer = np.full(len(self.data), -1)
        self.write_epoch = np.full(len(self.data), -1)
        self.reader = np.full(len(self.data), -1)
        self.read_epoch = np.full(len(self.data), -1)

    def barrier(self) -> None:
        self.epoch += 1

    def _places(self, addresses: Array, size: int, what: str) -> Array:
        _check_alignment(addresses, size, what)
        if len(addresses) and int(addresses.max()) + size > len(self.data):
            raise EmulationError(f"{what} beyond the {len(self.data)} bytes of shared memory")
        return addresses.astype(np.int64)[:, None] + np.arange(size)

    def load(self, addresses: Array, size: int, warps: Array) -> Array:
        places = self._places(addresses, size, "a load from shared memory")
        other = (self.write_epoch[places] == self.epoch) & (self.writer[places] != warps[:, None])
        if other.any():
            raise EmulationError("a warp reads what another wrote without a barrier between")
        if (self.write_epoch[places] < 0).any():
            raise EmulationError("a load of shared memory that nobody wrote")
        fresh = self.read_epoch[places] != self.epoch
        mine = np.broadcast_to(warps[:, None], places.shape)
        mixed = ~fresh & (self.reader[places] != mine)
        self.reader[places] = np.where(mixed, -2, mine)
        self.read_epoch[places] = self.epoch
        return self.data[places]

    def store(self, addresses: Array, data: Array, warps: Array) -> None:
        places = self._places(addresses, data.shape[1], "a store to shared memory")
        mine = np.broadcast_to(warps[:, None], places.shape)
        read = (self.read_epoch[places] == self.epoch) & (self.reader[places] != mine)
        written = (self.write_epoch[places] == self.epoch) & (self.writer[places] != mine)
        if (read | (written & (self.data[places] != data))).any():
            raise EmulationError("a warp overwrites what another uses without a barrier between")
        self.data[places] = data
        self.writer[places] = mine
        self.write_epoch[places] = self.epoch
