"""Tables of the addresses of one tensor per rank.

    table = tilewright.distributed.peers(x, group).table      # int64[ranks], a kernel argument
    their = tl.load(table + peer).to(tl.pointer_type(tl.float32))

`peers` is collective. Each rank offers its memory: the file behind it for a CPU, for a GPU
symmetric memory of torch, a handle of CUDA IPC, or within one process the address itself.
"""

from __future__ import annotations

import json
import os
import socket
import weakref
from pathlib import Path
from typing import Any, cast

import numpy as np

from tilewright.distributed import device_memory
from tilewright.distributed.rank_groups import Group, group_of
from tilewright.distributed.shared_arrays import mapped_segment, segment_of
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

Offer = dict[str, Any]
"""The memory that a rank offers, in JSON: see `_offer_of`."""


@dataclass(eq=False)
class Peers:
    """The addresses of one tensor per rank, as rank `rank` accesses them.

    table: int64[world_size] in the memory of the rank's device, the argument for a kernel; while it
    exists, the memory of all ranks is mapped
    """

    rank: int
    world_size: int
    addresses: tuple[int, ...]
    table: Any
    tensor: Any

    def view(self, rank: int) -> Any:
        """The tensor of a peer, with the shape and dtype of this rank's. Raises WrongRank."""
        address = self._address(rank)
        return self.tensor if rank == self.rank else device_memory.view_at(address, self.tensor)

    def pull(self, rank: int, out: Any) -> None:
        """Copy the tensor of a peer into a tensor of its size, in the current stream of a GPU.

        Raises WrongRank, UnlikePeers."""
        address = self._address(rank)
        own, given = (device_memory.memory_of(tensor) for tensor in (self.tensor, out))
        if (own.size, own.kind, own.device) != (given.size, given.kind, given.device):
            texts = [f"{m.size} bytes on {m.kind}:{m.device}" for m in (given, own)]
            raise errors.UnlikePeers(self.rank, texts[0], rank, texts[1])
        device_memory.copy(out, address)

    def _address(self, rank: int) -> int:
        if not 0 <= rank < self.world_size:
            problem = f"is outside its group, whose world size is {self.world_size}"
            raise errors.WrongRank(rank, problem)
        return self.addresses[rank]


def peers(tensor: Any, group: object = None) -> Peers:
    """Exchange the addresses of a tensor of each rank; collective.

    tensor: of one dtype and size on all ranks; on CPUs in memory of `zeros`, on GPUs any; group: a
    process group of torch.distributed (None: the default one), or a `Group`.
    Raises UnlikePeers, UnmappedPeer, MissingPeer, on all ranks alike; NoGroup, WrongRank.
    """
    ranks = group_of(group)
    memory = device_memory.memory_of(tensor)
    # First, since ranks with tensors of another kind would not take part in a rendezvous.
    _check_alike(ranks.exchange(f"{memory.size} bytes of {memory.dtype} on {memory.kind}"))
    offers = _exchanged(ranks, _offer_of(tensor, memory, ranks))
    mapped: list[tuple[int, object]] = []
    try:
        mapped = [_mapped(ranks, peer, offers) for peer in range(ranks.size)]
        problem = ""
    except errors.UnmappedPeer as error:
        problem = json.dumps([error.peer, error.problem, error.instead])
    # Nobody uses memory before all have mapped it, and a failure is that of all ranks.
    for rank, said in enumerate(ranks.exchange(problem)):
        if said:
            raise errors.UnmappedPeer(rank, *json.loads(said))
    addresses = tuple(address for address, _ in mapped)
    table = device_memory.table_of(addresses, tensor)
    # A table alone keeps the memory mapped that its addresses are in.
    weakref.finalize(table, _drop, tensor, *(owner for _, owner in mapped))
    return Peers(ranks.rank, ranks.size, addresses, table, tensor)


def _drop(*_owners: object) -> None:
    """Forget the owners of memory."""


def _exchanged(ranks: Group, offer: Offer) -> list[Offer]:
    offers = [cast("Offer", json.loads(text)) for text in ranks.exchange(json.dumps(offer))]
    for rank, other in enumerate(offers):
        if other["problem"]:
            raise errors.UnmappedPeer(ranks.rank, rank, other["problem"])
    return offers


def _offer_of(tensor: Any, memory: device_memory.Memory, ranks: Group) -> Offer:
    """The memory of a tensor; problem: why it cannot be shared, if so."""
    offer: Offer = {
        "host": _host(), "pid": os.getpid(), "kind": memory.kind, "device": memory.device,
        "address": memory.address, "problem": "",
    }  # fmt: skip
    if memory.kind != "cpu":
        return offer | device_memory.offered(memory, tensor, ranks)
    segment = segment_of(memory.address)
    if segment is None:
        return offer | {"problem": "it is not in shared memory"}
    return offer | {"file": [segment.fd, segment.size, memory.address - segment.start]}


def _host() -> str:
    """The running system: memory is shared within it."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {boot.read_text().strip() if boot.exists() else ''}"


def _check_alike(texts: list[str]) -> None:
    """Compare descriptions of tensors. Raises UnlikePeers, on every rank the same one."""
    for rank, text in enumerate(texts):
        if text != texts[0]:
            raise errors.UnlikePeers(rank, text, 0, texts[0])


def _mapped(ranks: Group, peer: int, offers: list[Offer]) -> tuple[int, object]:
    """Address of the memory of a peer, and the owner of its mapping. Raises UnmappedPeer."""
    own, offer = offers[ranks.rank], offers[peer]
    if peer == ranks.rank:
        return own["address"], None
    if offer["host"] != own["host"]:
        problem = f"it is on another host, {offer['host'].split()[0]}"
        raise errors.UnmappedPeer(ranks.rank, peer, problem)
    if offer["kind"] != "cpu":
        return device_memory.mapped(ranks, peer, own, offer)
    if offer["pid"] == own["pid"]:
        segment = segment_of(offer["address"])
        return offer["address"], segment and segment.memory()
    fd, size, offset = offer["file"]
    try:
        memory = mapped_segment(offer["pid"], fd, size)
    except synchronous(OSError) as error:
        problem = f"process {offer['pid']} has no such memory: {error.strerror}"
        raise errors.UnmappedPeer(ranks.rank, peer, problem) from None
    start = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
    return start + offset, memory
