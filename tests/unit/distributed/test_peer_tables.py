"""Memory of peers: mapped by processes of one host, and by threads of one process."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np

from tests.unit.distributed.rank_processes import run_ranks
from tilewright.distributed import ThreadGroup, peers, zeros


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
