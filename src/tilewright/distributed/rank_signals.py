"""Signals between the kernels of ranks: flags in memory that all ranks access, and tile code.

Each rank has a pad of words, which all ranks map:

    word 0                          1 + the rank for which a program has waited in vain, or 0
    word (slot + 1) * PAD_WORDS     epoch: the barriers of this slot so far
    words after the epoch           the epoch that each rank has signalled to this one

A program signals by storing the next epoch on the pads of its peers, and waits until theirs on its
own pad is as large. Flags only grow, so nothing is reset between launches, and a CUDA graph may
replay them. A slot belongs to one program of each rank at a time: programs of equal slots wait for
each other, in any order of slots.
"""

from __future__ import annotations

from typing import Any

import tilewright.language as tl
from tilewright.distributed.device_memory import memory_of, table_of
from tilewright.distributed.peer_tables import Peers, peers
from tilewright.distributed.rank_groups import Group, ThreadGroup, group_of
from tilewright.distributed.shared_arrays import zeros
from tilewright.runtime import jit
from tilewright.support import errors, import_late
from tilewright.support.data_class import dataclass

PAD_WORDS = 32
MAX_RANKS = PAD_WORDS - 1
_PAD = tl.constexpr(PAD_WORDS)
_SPINS = tl.constexpr(64)
"""Looks at the flags between looks at the clock."""


@dataclass(eq=False)
class Signals:
    """The pads of a group of ranks.

    slots: programs that may wait at a time; seconds: how long, before `check` reports a missing
    peer
    """

    peers: Peers
    slots: int
    seconds: float

    @classmethod
    def of(
        cls, group: object = None, slots: int = 256, seconds: float = 10.0, device: object = "cpu"
    ) -> Signals:
        """Allocate the pads; collective. Raises as `peers`, and WrongWorldSize."""
        ranks: Group = group_of(group)
        if ranks.size > MAX_RANKS:
            raise errors.WrongWorldSize("the group", ranks.size, "signals allow one", MAX_RANKS)
        pad = zeros((slots + 1) * PAD_WORDS, _int32(device), ranks, device)
        if isinstance(ranks, ThreadGroup) and str(device) != "cpu":
            cls._load_barrier(pad, ranks, seconds)
        return cls(peers(pad, ranks), slots, seconds)

    @classmethod
    def _load_barrier(cls, pad: Any, ranks: Group, seconds: float) -> None:
        """Load the barrier before any rank waits: in one process, loading waits for such kernels.

        It is launched on this rank's pad alone, where all seem to have signalled.
        """
        own = (memory_of(pad).address,) * ranks.size
        pad[PAD_WORDS + 1 : 2 * PAD_WORDS] = 1
        cls(Peers(ranks.rank, ranks.size, own, table_of(own, pad), pad), 1, seconds).barrier()
        pad[:] = 0
        int(pad[0])  # waits for the device, as peers may signal from here on

    @property
    def table(self) -> Any:
        """int64[world_size]: the addresses of the pads."""
        return self.peers.table

    @property
    def pad(self) -> Any:
        """int32[(slots + 1) * PAD_WORDS]: this rank's own pad, which kernels are passed as well."""
        return self.peers.tensor

    @property
    def timeout_ns(self) -> int:
        """The limit of a wait, for `wait` and `barrier`."""
        return int(self.seconds * 1e9)

    def barrier(self, slot: int = 0) -> None:
        """Launch a barrier, by a program of one warp: it orders the work of all ranks before it,
        in their streams, before the later work of each."""
        ranks = self.peers.world_size
        barrier_kernel[(1,)](
            self.pad, self.table, slot, self.timeout_ns, RANK=self.peers.rank, WORLD=ranks,
            LANES=1 << (ranks - 1).bit_length(), num_warps=1,
        )  # fmt: skip

    def check(self) -> None:
        """Wait for this rank's kernels. Raises MissingPeer if one has waited in vain."""
        missing = int(self.pad[0])
        if missing:
            place = "a kernel"
            raise errors.MissingPeer(self.peers.rank, [missing - 1], f"{self.seconds:g}", place)


def _int32(device: object) -> Any:
    return "int32" if str(device) == "cpu" else import_late("torch").int32


@jit
def last_epoch(pad: Any, slot: Any):
    """The epoch of a slot at the start of a kernel: the number of its barriers so far."""
    return tl.load(pad + (slot + 1) * _PAD)


@jit
def keep_epoch(pad: Any, slot: Any, epoch: Any):
    """Store the epoch of a slot for the next launch; every kernel does so after its barriers."""
    tl.store(pad + (slot + 1) * _PAD, epoch)


@jit
def signal(table: Any, slot: Any, rank: Any, epoch: Any, WORLD: tl.constexpr, LANES: tl.constexpr):  # noqa: N803
    """Signal an epoch of a slot to all ranks, after all earlier accesses of this program.

    LANES: WORLD rounded up to a power of two."""
    lane = tl.arange(0, LANES)
    pads = tl.load(table + lane, lane < WORLD, other=0).to(tl.pointer_type(tl.int32))
    flags = pads + (slot + 1) * _PAD + 1 + rank
    tl.atomic_store(flags, epoch, lane < WORLD, sem="release", scope="sys")


@jit
def wait(
    pad: Any, slot: Any, epoch: Any, timeout_ns: Any, WORLD: tl.constexpr, LANES: tl.constexpr
):  # noqa: N803
    """Wait until all ranks have signalled an epoch of a slot.

    After a timeout it returns as well, as do all later waits; word 0 of the pad is then 1 + the
    first missing rank."""
    lane = tl.arange(0, LANES)
    flags = pad + (slot + 1) * _PAD + 1 + lane
    missing = (tl.atomic_load(flags, lane < WORLD, "acquire", "sys") - epoch < 0) & (lane < WORLD)
    start, spins, failed = tl.extra.cuda.globaltimer(), 0, 0
    while (tl.max(missing.to(tl.int32)) != 0) & (failed == 0):
        seen = tl.atomic_load(flags, lane < WORLD, "acquire", "sys")
        missing = missing & (seen - epoch < 0)
        spins += 1
        if spins % _SPINS == 0:
            failed = tl.atomic_load(pad, sem="relaxed", scope="sys")
            if tl.extra.cuda.globaltimer() - start > timeout_ns:
                failed = 1 + tl.min(tl.where(missing, lane, LANES))
    if (failed != 0) & (tl.max(missing.to(tl.int32)) != 0):
        tl.atomic_cas(pad, 0, failed, sem="relaxed", scope="sys")


@jit
def barrier(pad: Any, table: Any, slot: Any, rank: Any, epoch: Any, timeout_ns: Any,
            WORLD: tl.constexpr, LANES: tl.constexpr):  # fmt: skip  # noqa: N803
    """Wait for the programs of a slot on all ranks, which have reached an epoch.

    Their accesses before it are ordered before this program's later ones."""
    signal(table, slot, rank, epoch, WORLD, LANES)
    wait(pad, slot, epoch, timeout_ns, WORLD, LANES)


@jit
def barrier_kernel(
    pad: Any, table: Any, slot: Any, timeout_ns: Any,
    RANK: tl.constexpr, WORLD: tl.constexpr, LANES: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """A barrier of all ranks, by one program."""
    epoch = last_epoch(pad, slot) + 1
    barrier(pad, table, slot, RANK, epoch, timeout_ns, WORLD, LANES)
    keep_epoch(pad, slot, epoch)
