"""Memory of an emulated program: absolute addresses for global memory, a checked shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.emulator.clocks import Clocks
from tests.emulator.traces import ThreadTrace, WarpTrace, in_pieces

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
    if np.count_nonzero(addresses & addresses.dtype.type(unit - 1)):
        raise EmulationError(f"{what} of {size} bytes at addresses that are no multiples of it")


class _Range:
    """Bytes [first, end) of global memory that may be accessed, and who accessed them."""

    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, end
        self.reads, self.writes, self.atomics = (ThreadTrace(end - first) for _ in range(3))
        self.late = np.zeros(0, np.int16)
        """Engines that may yet write each byte, if there were any."""
        self.late_kind = ""
        self.by_engine = np.zeros(0, bool)
        """Bytes that an engine has written last: no fence is needed for the next one."""


_CONFLICTS = {
    "a load": ("writes", "atomics"),
    "a store": ("reads", "writes", "atomics"),
    "an atomic": ("reads", "writes"),
}
_TRACES = {"a load": "reads", "a store": "writes", "an atomic": "atomics"}


class Global:
    """Memory of this process. ranges: (first, end) that may be accessed; none for all.

    Threads of a program that meet in these ranges need a barrier between, unless both are atomic
    or store the same. clocks: of the program that runs.
    """

    def __init__(self, ranges: list[tuple[int, int]] | None = None) -> None:
        self.ranges = [_Range(first, end) for first, end in ranges or []]
        self.own: list[tuple[int, int]] = []
        self.clocks = Clocks(1)
        self.latest = np.zeros(1, np.int32)
        """The stamp of the latest access of each warp."""

    def _view(self, addresses: Array, size: int, what: str) -> tuple[Array, Array]:
        _check_alignment(addresses, size, what)
        low, high = int(addresses.min()), int(addresses.max()) + size
        if self.ranges and not any(r.first <= low and high <= r.end for r in self.ranges):
            inside = np.zeros(addresses.shape, bool)
            for first, end in [*((r.first, r.end) for r in self.ranges), *self.own]:
                inside |= (addresses >= first) & (addresses + np.uint64(size) <= end)
            if not inside.all():
                raise EmulationError(f"{what} outside the arrays at {addresses[~inside][:4]}")
        offsets = (addresses - np.uint64(low)).astype(np.int64)
        return _bytes_at(low, high - low), offsets[:, None] + np.arange(size)

    def load(self, addresses: Array, size: int, who: Array | None = None) -> Array:
        """(n, size) bytes. who: numbers of the threads, (n,)."""
        if not len(addresses):
            return np.zeros((0, size), np.uint8)
        view, places = self._view(addresses, size, "a load")
        self._touch(addresses, size, who, "a load", None)
        return view[places]

    def store(
        self, addresses: Array, data: Array, who: Array | None = None, what: str = "a store"
    ) -> None:
        """what: "an atomic" for the second half of one."""
        if len(addresses):
            view, places = self._view(addresses, data.shape[1], what)
            self._touch(addresses, data.shape[1], who, what, view[places] != data)
            view[places] = data

    def note_atomic(self, addresses: Array, size: int, who: Array) -> None:
        """Threads have loaded these as an atomic does."""
        if len(addresses):
            unchanged = np.zeros((len(addresses), size), bool)
            self._touch(addresses, size, who, "an atomic", unchanged)

    def _places(self, addresses: Array, size: int) -> Iterator[tuple[_Range, Array]]:
        """The bytes in each range."""
        for part in self.ranges:
            here = (addresses >= part.first) & (addresses < part.end)
            places = (addresses[here] - np.uint64(part.first)).astype(np.int64)
            if len(places):
                yield part, places[:, None] + np.arange(size)

    def check_fenced(self, addresses: Array, size: int, warp: int, does: str = "reads") -> None:
        """A warp starts an engine that reads these."""
        for part, places in self._places(addresses, size):
            if len(part.by_engine):
                places = places[~part.by_engine[places].all(1)]
            if len(places) and part.writes.unfenced(places, warp, self.clocks):
                raise EmulationError(f"a bulk copy {does} what was stored without a proxy fence")

    def begin_late_write(self, addresses: Array, size: int, warp: int, kind: str) -> None:
        """From now on an engine may write, whenever it likes; kind: of a reduction, or ""."""
        self.check_fenced(addresses, size, warp, "writes")
        for part, places in self._places(addresses, size):
            if not len(part.late):
                part.late = np.zeros(part.end - part.first, np.int16)
                part.by_engine = np.zeros(part.end - part.first, bool)
            if part.late[places].any() and (not kind or kind != part.late_kind):
                raise EmulationError("two bulk copies write one place in no order")
            part.late[places] += 1
            part.late_kind = kind

    def end_late_write(self, addresses: Array, data: Array, who: Array, what: str) -> None:
        size = data.shape[1]
        for part, places in self._places(addresses, size):
            part.late[places] -= 1
        self.store(addresses, data, who, what)
        for part, places in self._places(addresses, size):
            part.by_engine[places] = True

    def _note_latest(self, who: Array) -> None:
        warps = np.unique(who >> 5)
        if len(self.latest) != self.clocks.warps:
            self.latest = np.zeros(self.clocks.warps, np.int32)
        self.latest[warps] = self.clocks.stamp[warps]

    def check_released(self, who: Array) -> None:
        """These threads release: they must know that earlier accesses of other warps are over."""
        if len(self.latest) != self.clocks.warps:
            return
        warps = np.arange(self.clocks.warps)
        for warp in np.unique(who >> 5):
            late = self.latest > self.clocks.seen[warp, : self.clocks.warps]
            if np.count_nonzero(late & (warps != warp)):
                raise EmulationError("a release before accesses of other warps, without a barrier")

    def _touch(
        self, addresses: Array, size: int, who: Array | None, what: str, changed: Array | None
    ) -> None:
        if who is None:
            return
        self._note_latest(who)
        for part in self.ranges:
            here = (addresses >= part.first) & (addresses < part.end)
            if not np.count_nonzero(here):
                continue
            places = (addresses[here] - np.uint64(part.first)).astype(np.int64)
            bytes_ = places[:, None] + np.arange(size)
            if len(part.late) and what != "an atomic" and part.late[bytes_].any():
                raise EmulationError(f"{what} where a bulk copy may yet write")
            if len(part.by_engine) and what != "a load":
                part.by_engine[bytes_] = False
            for other in _CONFLICTS[what]:
                meets = getattr(part, other).unseen(bytes_, who[here], self.clocks)
                if what == "a store" and other == "writes" and changed is not None:
                    meets &= changed[here]
                if np.count_nonzero(meets):
                    raise EmulationError(f"{what} meets {other} of other threads without a barrier")
            getattr(part, _TRACES[what]).note(bytes_, who[here], self.clocks)


class Shared:
    """Shared memory that knows which warp or engine touched each byte, and who knows of it.

    base: address of its first byte. Elsewhere than in addresses, bytes are counted from there,
    block after block of a cluster: in addresses, the number of the block is in bits 24 and up.
    warps: of a block.
    copied, pending_reads: how many asynchronous operations may yet write, or read, each byte.
    """

    def __init__(
        self, size: int, clocks: Clocks, base: int = 0, blocks: int = 1, warps: int = 1 << 10
    ) -> None:
        self.base, self._blocks, self._warps = base, blocks, warps
        self.window = (max(size, 16) + 15) // 16 * 16
        self.data = np.full(blocks * self.window, 0xCD, np.uint8)
        self.size = max(size, 16)
        self._clocks = clocks
        self.reads, self.writes = (WarpTrace(clocks, len(self.data)) for _ in range(2))
        self.atomics: WarpTrace | None = None
        self.copied, self.pending_reads = (np.zeros(len(self.data), np.int32) for _ in range(2))
        self._copies = 0
        """Bytes and pieces that copies on their way write."""
        self._is_read_late = self.has_reserved = False
        self.reserved = np.zeros(len(self.data), bool)
        """Bytes of mbarriers, which nothing else may touch."""

    def places(self, addresses: Array, size: int, what: str, warps: Array | None = None) -> Array:
        """(n, size) offsets of the bytes at some addresses. warps: (n,), if they may access only
        what is of their own block."""
        _check_alignment(addresses, size, what)
        offsets = self.offsets(addresses, size, what)
        if (
            warps is not None
            and self._blocks > 1
            and (offsets // self.window != warps // self._warps).any()
        ):
            raise EmulationError(f"{what} of another block")
        return offsets[:, None] + np.arange(size)

    def offsets(self, addresses: Array, size: int, what: str) -> Array:
        """(n,) of the first bytes at some addresses."""
        distances = addresses.astype(np.int64) - self.base
        if self._blocks == 1:
            self.check_within(distances, size, what)
            return distances
        ranks = np.clip(distances >> 24, 0, self._blocks - 1)
        self.check_within(distances - (ranks << 24), size, what)
        return distances - (ranks << 24) + ranks * self.window

    def start(self, warp: int) -> int:
        """Where the bytes of a warp's block begin."""
        return warp // self._warps * self.window

    def check_within(self, offsets: Array, size: int, what: str) -> None:
        if len(offsets) and (int(offsets.max()) + size > self.size or int(offsets.min()) < 0):
            raise EmulationError(f"{what} beyond the {self.size} bytes of shared memory")

    def _free_places(self, addresses: Array, size: int, what: str, warps: Array) -> Array:
        places = self.places(addresses, size, what, warps)
        self._check_free(places, what)
        return places

    def _check_free(self, places: Array, what: str) -> None:
        if self.has_reserved and self.reserved[places].any():
            raise EmulationError(f"{what} where an mbarrier is")

    def load(self, addresses: Array, size: int, warps: Array) -> Array:
        places = self._free_places(addresses, size, "a load from shared memory", warps)
        if np.count_nonzero(self.writes.unseen(places, warps)) or self._is_counted(places, warps):
            raise EmulationError("a warp reads what another wrote without a barrier between")
        if self._is_copied(places):
            raise EmulationError("a load of shared memory that a copy may be writing")
        if int(self.writes.when[places].min(initial=1)) <= 0:
            raise EmulationError("a load of shared memory that nobody wrote")
        self.reads.note(places, warps)
        return self.data[places]

    def store(self, addresses: Array, data: Array, warps: Array) -> None:
        places = self._free_places(addresses, data.shape[1], "a store to shared memory", warps)
        if self._is_copied(places):
            raise EmulationError("a store to shared memory that a copy may be writing")
        self._check_not_read_late(places)
        self._may_write(places, warps, self.data[places] != data)
        self._write(places, data, warps)

    def add(self, addresses: Array, amounts: Array, warps: Array) -> None:
        """Atomic additions of 32-bit integers, which need no order among themselves."""
        places = self._free_places(addresses, 4, "an atomic on shared memory", warps)
        self._check_not_read_late(places)
        if self._is_copied(places) or (self.writes.when[places] <= 0).any():
            raise EmulationError("an atomic on shared memory that nobody wrote")
        if (self.reads.unseen(places, warps) | self.writes.unseen(places, warps)).any():
            raise EmulationError("a warp counts what another uses without a barrier between")
        if self.atomics is None:
            self.atomics = WarpTrace(self._clocks, len(self.data))
        np.add.at(self.data.view(np.uint32), places[:, 0] // 4, amounts.astype(np.uint32))
        self.atomics.note(places, warps)

    def _is_counted(self, places: Array, warps: Array) -> bool:
        """Whether atomics of others are not over."""
        return self.atomics is not None and bool(self.atomics.unseen(places, warps).any())

    def _is_copied(self, places: Array) -> bool:
        """Whether an asynchronous operation may yet write any of these bytes."""
        return self._copies > 0 and bool(np.count_nonzero(self.copied[places]))

    def _check_not_read_late(self, places: Array) -> None:
        if self._is_read_late and self.pending_reads[places].any():
            raise EmulationError("shared memory is overwritten that an operation may yet read")

    def _may_write(self, places: Array, warps: Array, changed: Any) -> None:
        read = self.reads.unseen(places, warps)
        written = self.writes.unseen(places, warps) & changed
        if np.count_nonzero(read | written) or self._is_counted(places, warps):
            raise EmulationError("a warp overwrites what another uses without a barrier between")

    def _write(self, places: Array, data: Array, warps: Array) -> None:
        self.data[places] = data
        self.writes.note(places, warps)

    def begin_copy(self, addresses: Array, size: int, warps: Array) -> None:
        """From now on a copy may write, whenever it likes."""
        places = self._free_places(addresses, size, "a copy to shared memory", warps)
        if self._is_copied(places):
            raise EmulationError("two copies to one place are on their way")
        self._check_not_read_late(places)
        self._may_write(places, warps, True)
        self.copied[places] += 1
        self._copies += places.size

    def end_copy(self, addresses: Array, data: Array, warps: Array) -> None:
        """The copy has arrived, for the warp that waited."""
        places = self.places(addresses, data.shape[1], "a copy to shared memory")
        self.copied[places] -= 1
        self._copies -= places.size
        self._write(places, data, warps)

    def reserve(self, address: int, warp: int) -> None:
        """A warp makes an mbarrier of these 8 bytes."""
        warps = np.array([warp])
        self.store(np.array([address]), np.zeros((1, 8), np.uint8), warps)
        at = int(self.offsets(np.array([address]), 8, "an mbarrier")[0])
        self.reserved[at : at + 8] = self.has_reserved = True

    def release(self, address: int) -> None:
        at = int(self.offsets(np.array([address]), 8, "an mbarrier")[0])
        self.reserved[at : at + 8] = False

    # -- what engines read and write ------------------------------------------------------------

    # Their places are pieces of 16 bytes, by number: (n,), none twice.

    def check_late_read(self, pieces: Array, warp: int, what: str) -> None:
        """A warp starts an engine that reads."""
        if self.writes.pieces_unfenced(pieces, warp):
            lacking = "a barrier" if self.writes.pieces_unseen(pieces, warp) else "a proxy fence"
            raise EmulationError(f"{what} reads what was written without {lacking} between")
        if self._copies and np.count_nonzero(in_pieces(self.copied)[pieces]):
            raise EmulationError(f"{what} reads what a copy may be writing")
        if int(in_pieces(self.writes.when)[pieces].min(initial=1)) <= 0:
            raise EmulationError(f"{what} reads what nobody wrote")

    def begin_late_read(self, pieces: Array, warp: int, what: str) -> None:
        """From now on an engine may read, whenever it likes."""
        self.check_late_read(pieces, warp, what)
        self._is_read_late = True
        in_pieces(self.pending_reads)[pieces] += 1

    def end_late_read(self, pieces: Array, engine: int, stamp: int) -> None:
        in_pieces(self.pending_reads)[pieces] -= 1
        self.reads.note_engine(pieces, engine, stamp, alone=False)

    def begin_late_write(self, pieces: Array, warp: int, what: str) -> None:
        """From now on an engine may write, whenever it likes."""
        if self.has_reserved and in_pieces(self.reserved)[pieces].any():
            raise EmulationError(f"{what} where an mbarrier is")
        if self._copies and np.count_nonzero(in_pieces(self.copied)[pieces]):
            raise EmulationError(f"{what} writes where another copy may be writing")
        if np.count_nonzero(in_pieces(self.pending_reads)[pieces]):
            raise EmulationError("shared memory is overwritten that an operation may yet read")
        if any(t.pieces_unseen(pieces, warp) for t in (self.reads, self.writes)):
            raise EmulationError(f"{what} overwrites what others use, without a barrier between")
        if self.writes.pieces_unfenced(pieces, warp):
            raise EmulationError(
                f"{what} overwrites what was written without a proxy fence between"
            )
        in_pieces(self.copied)[pieces] += 1
        self._copies += len(pieces)

    def end_late_write(self, pieces: Array, data: Array, engine: int, stamp: int) -> None:
        """data: (n, 16)"""
        in_pieces(self.copied)[pieces] -= 1
        self._copies -= len(pieces)
        in_pieces(self.data)[pieces] = data
        self.writes.note_engine(pieces, engine, stamp, alone=True)
