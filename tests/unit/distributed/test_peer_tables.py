"""Memory of peers: mapped by processes of one host, and by threads of one process."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.distributed.rank_processes import run_ranks
from tilewright.backends.nvidia.driver.cuda_errors import CudaCallFailed
from tilewright.distributed import Group, ThreadGroup, device_memory, peers, zeros
from tilewright.support import errors


def test_processes_map_the_memory_of_all_ranks(tmp_path: Path) -> None:
    printed = run_ranks(
        tmp_path,
        """
        x = zeros((2, 3), "float32", group)
        found = peers(x, group)
        found.view((rank + 1) % world)[1] = rank
        group.exchange("")
        print(x.tolist(), found.table.dtype, len(set(found.addresses)))
        """,
        3,
    )
    values = [f"[[0.0, 0.0, 0.0], {[(r + 2) % 3 * 1.0] * 3}] int64 3\n" for r in range(3)]
    assert printed == values


def test_a_tensor_inside_of_an_allocation_has_its_own_address() -> None:
    (group,) = ThreadGroup.ranks(1)
    whole = zeros(100, np.int32, group)
    part = whole[20:40]
    assert peers(part, group).addresses[0] - peers(whole, group).addresses[0] == 80


def test_an_ended_process_has_no_memory(tmp_path: Path) -> None:
    printed = run_ranks(
        tmp_path,
        """
        from tilewright.distributed import shared_arrays
        x = zeros(4, "float32", group)
        if rank == 1:
            mapped = shared_arrays._segments[0]
            shared_arrays._segments[0] = shared_arrays.Segment(
                mapped.start, 16, 4000, mapped.memory)
        peers(x, group)
        """,
        2,
    )
    assert len(set(printed)) == 1
    assert "rank 0 cannot access the tensor of rank 1: process" in printed[0]
    assert "has no such memory: No such file or directory" in printed[0]


def test_the_memory_of_a_thread_that_ended_stays_mapped() -> None:
    ended = Event()

    def other(group: ThreadGroup) -> None:
        shared = zeros(1 << 20, "int32", group)
        shared[:] = 7
        peers(shared, group)

    def reader(group: ThreadGroup) -> int:
        found = peers(zeros(1 << 20, "int32", group), group)
        assert ended.wait(30)
        return int(found.view(1).sum())

    first, second = ThreadGroup.ranks(2)
    with ThreadPoolExecutor(2) as pool:
        read = pool.submit(reader, first)
        pool.submit(other, second).result()
        gc.collect()
        ended.set()
        assert read.result() == 7 << 20


class GpuTensor:
    """A stand-in for 64 bytes of a GPU's memory."""

    def __init__(self, device: int, address: int) -> None:
        self.device, self.dtype = SimpleNamespace(type="cuda", index=device), "torch.int32"
        self.data_ptr, self.is_contiguous = lambda: address, lambda: True
        self.numel, self.element_size = lambda: 16, lambda: 4


def test_ranks_find_tensors_at_other_places_of_symmetric_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def symmetric(_tensor: object, ranks: Group) -> list[int]:
        return [[0x1000, 0x2000], [0x3000, 0x4000]][ranks.rank]

    monkeypatch.setattr(device_memory, "_symmetric", symmetric)
    monkeypatch.setattr(device_memory, "table_of", lambda found, _: np.array(found))
    ranks = ThreadGroup.ranks(2, 10)
    tensors = GpuTensor(0, 0x1000 + 64), GpuTensor(1, 0x4000 + 256)
    with ThreadPoolExecutor(2) as pool:
        found = [peers.addresses for peers in pool.map(peers, tensors, ranks)]
    assert found == [(0x1000 + 64, 0x2000 + 256), (0x3000 + 64, 0x4000 + 256)]


def test_memory_without_handles_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def export(_address: int, _device: int) -> str:
        raise CudaCallFailed("cuIpcGetMemHandle", 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument")

    monkeypatch.setattr(device_memory, "_driver", lambda _kind: SimpleNamespace(export=export))
    (group,) = ThreadGroup.ranks(1)
    tensor = GpuTensor(0, 0x1000)
    offer = device_memory.offered(device_memory.memory_of(tensor), tensor, group)
    own, other = ({"kind": "cuda", "pid": pid, **offer} for pid in (1, 2))
    with pytest.raises(errors.UnmappedPeer) as caught:
        device_memory.mapped(group, 1, own, other)
    assert "cuIpcGetMemHandle" in str(caught.value)
    assert "expandable segments of torch have no handles of CUDA IPC" in str(caught.value)
    assert "allocate it by tilewright.distributed.zeros" in str(caught.value)
