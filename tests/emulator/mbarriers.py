"""mbarriers: arrivals and bytes of copies that complete phases, and warps that wait for phases.

What copies bring arrives when somebody waits for their phase: the latest moment allowed.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tests.emulator.clocks import Seen, joined
from tests.emulator.memory import Array, EmulationError
from tests.emulator.waiting import Blocked, Wait

_MOST = (1 << 20) - 1
"""Arrivals and bytes that an mbarrier can count."""


class Transfer(Protocol):
    """A copy to shared memory on its way. size: its bytes."""

    size: int

    def land(self, engine: int, stamp: int) -> None: ...


class MBarrier:
    """pending: arrivals that the phase lacks; expected: bytes that it is told of.

    transfers: copies that were issued in this phase. fenced: known to the asynchronous proxy.
    """

    def __init__(self, machine: Any, address: int, count: int) -> None:
        self._clocks = machine.clocks
        self.address, self.count, self.pending = address, count, count
        self.phase = self.expected = 0
        self.transfers: list[Transfer] = []
        self._engine = self._clocks.engine()
        self._gathered: Seen | None = None
        self.seen: Seen | None = None
        """What who has waited for the latest phase knows to be over."""

    def describe(self) -> str:
        brought = sum(t.size for t in self.transfers)
        arrivals = f"{self.pending} of {self.count} arrivals lack"
        size = f"{self.expected} bytes expected, {brought} issued"
        return f"mbarrier at {self.address:#x}, in phase {self.phase}: {arrivals}, {size}"

    def advance(self) -> None:
        """End the phase if nothing lacks but the arrival of what copies bring."""
        if self.pending or sum(t.size for t in self.transfers) != self.expected:
            return
        stamp, seen = self._clocks.act(self._engine)
        for transfer in self.transfers:
            transfer.land(self._engine, stamp)
        self.seen = joined(joined(seen, self._gathered), self.seen)
        self.phase += 1
        self.pending, self.expected, self.transfers, self._gathered = self.count, 0, [], None

    def arrive(self, warp: int, count: int) -> None:
        self._begin()
        if count > self.pending:
            raise EmulationError(f"more arrivals than a phase counts; {self.describe()}")
        self.pending -= count
        self._gathered = joined(self._clocks.release(np.array([warp])), self._gathered)

    def _begin(self) -> None:
        """Something happens to the phase at hand; if all arrived, to the next."""
        if not self.pending:
            self.advance()

    def expect(self, size: int) -> None:
        self._begin()
        self.expected += size
        if self.expected > _MOST:
            raise EmulationError(f"an mbarrier cannot count {self.expected} bytes")

    def issue(self, transfer: Transfer) -> None:
        self._begin()
        self.transfers.append(transfer)

    def is_past(self, parity: int) -> bool:
        """Whether the phase of this parity has completed."""
        if self.phase & 1 == parity:
            self.advance()
        return self.phase & 1 != parity


class MBarriers:
    """Of a program, by address."""

    def __init__(self, machine: Any) -> None:
        self._m = machine
        self._all: dict[int, MBarrier] = {}
        self._unfenced: set[tuple[int, int]] = set()
        """Warp and address of those not yet known to the asynchronous proxy."""

    def init(self, mask: Array, addresses: Array, counts: Array) -> None:
        for t in np.flatnonzero(mask).tolist():
            address, count = int(addresses[t]), int(counts[t])
            if address % 8 or not 0 < count <= _MOST:
                raise EmulationError(f"an mbarrier at {address:#x} that counts {count}")
            if address in self._all:
                raise EmulationError(f"the mbarrier at {address:#x} is made twice")
            self._m.shared.reserve(address, t >> 5)
            self._all[address] = MBarrier(self._m, address, count)
            self._unfenced.add((t >> 5, address))

    def fence(self, mask: Array) -> None:
        """fence.mbarrier_init, or a proxy fence."""
        warps = set(np.flatnonzero(mask.reshape(-1, 32).any(1)).tolist())
        self._unfenced = {(w, a) for w, a in self._unfenced if w not in warps}

    def invalidate(self, mask: Array, addresses: Array) -> None:
        for t in np.flatnonzero(mask).tolist():
            self._at(int(addresses[t]), t >> 5)
            del self._all[int(addresses[t])]
            self._m.shared.release(int(addresses[t]))

    def _at(self, address: int, warp: int, is_remote: bool = False) -> MBarrier:
        found = self._all.get(address)
        if found is None:
            raise EmulationError(f"there is no mbarrier at {address:#x}")
        warps, shared = np.array([warp]), self._m.shared
        own = None if is_remote else warps
        places = shared.places(np.array([address]), 8, "an mbarrier", own)
        if shared.writes.unseen(places, warps).any():
            raise EmulationError("an mbarrier is used without a barrier after it was made")
        return found

    def arrive(
        self, mask: Array, addresses: Array, counts: Array, sizes: Array | None,
        is_remote: bool = False,
    ) -> None:  # fmt: skip
        """sizes: bytes that each thread first tells the phase of."""
        for t in np.flatnonzero(mask).tolist():
            barrier = self._at(int(addresses[t]), t >> 5, is_remote)
            rank = int(addresses[t]) - self._m.shared.base >> 24
            self._m.remote_uses.note(t >> 5, rank, "an arrival")
            if sizes is not None:
                barrier.expect(int(sizes[t]))
            barrier.arrive(t >> 5, int(counts[t]))

    def expect(self, mask: Array, addresses: Array, sizes: Array) -> None:
        for t in np.flatnonzero(mask).tolist():
            self._at(int(addresses[t]), t >> 5).expect(int(sizes[t]))

    def issue(self, address: int, warp: int, transfer: Transfer) -> None:
        """A copy will tell an mbarrier of its bytes."""
        barrier = self._at(address, warp, is_remote=True)
        if any(address == a for _, a in self._unfenced):
            raise EmulationError(
                "a copy uses an mbarrier with no fence.mbarrier_init after it was made"
            )
        barrier.issue(transfer)

    def wait(self, mask: Array, addresses: Array, parities: Array) -> None:
        """Warps wait for a phase each. Raises Blocked."""
        waits: dict[int, Wait] = {}
        over: list[tuple[int, MBarrier]] = []
        for warp in np.flatnonzero(mask.reshape(-1, 32).any(1)).tolist():
            t = 32 * warp + int(mask[32 * warp : 32 * warp + 32].argmax())
            barrier, parity = self._at(int(addresses[t]), warp), int(parities[t])
            if barrier.is_past(parity):
                over.append((warp, barrier))
            else:
                waits[warp] = _wait(barrier, parity)
        if waits:
            raise Blocked(waits)
        for warp, barrier in over:
            if barrier.seen is not None:
                self._m.clocks.acquire(np.array([warp]), barrier.seen)


def _wait(barrier: MBarrier, parity: int) -> Wait:
    def describe() -> str:
        return f"parity {parity} of the {barrier.describe()}"

    return Wait(lambda: barrier.is_past(parity), describe)
