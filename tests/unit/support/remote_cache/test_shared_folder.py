"""Processes on one folder of a network file system that fails: nothing is lost."""

from __future__ import annotations

import errno
import multiprocessing
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.support.remote_cache.storages import faulty
from tilewright.support.disk_cache.fail_points import FailPoints
from tilewright.support.remote_cache import BadObject, Signer, open_storage

PROCESSES, ROUNDS = 8, 50
SHARED = 10
"""Names that all processes write to and create."""


FAULTS = ("EBUSY", "ESTALE", "EIO", "late", "rename")


def counting(hook: Callable[[str], None], planted: Counter[str]) -> Callable[[str], None]:
    """The hook, which adds each fault that it raises to `planted`."""

    def counted(point: str) -> None:
        try:
            hook(point)
        except OSError as fault:
            late = isinstance(fault, FileNotFoundError)
            planted["late" if late else errno.errorcode[fault.errno or 0]] += 1
            planted["rename"] += point == "remote: rename"
            raise

    return counted


def work(folder: str, number: int, results: Any) -> None:
    """Rounds of one process: what went wrong, its leases, and the number of each planted fault."""
    planted: Counter[str] = Counter()
    FailPoints.hook = counting(faulty(random.Random(number)), planted)
    storage, signer = open_storage(f"file://{folder}"), Signer()
    wrong: list[str] = []
    won: list[str] = []
    for turn in range(ROUNDS):
        own, shared = f"kernels/{number}-{turn}", f"kernels/shared-{turn % SHARED}"
        for name in (own, shared):
            storage.put(name, signer.sealed(name, {"by": number}, {"obj": name.encode() * 999}))
        found = storage.get(shared)
        try:
            if (
                found is not None
                and signer.unsealed(shared, found).blocks["obj"][:9] != b"kernels/s"
            ):
                wrong.append(f"{shared} is another object")
        except BadObject as problem:
            wrong.append(f"{shared}: {problem}")
        if storage.create(f"leases/{turn}", b"%d" % number):
            won.append(f"leases/{turn}")
        storage.put_member("timings/k", f"{number}-{turn}", b"%d" % turn)
    results.put((wrong, won, planted))


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs forks")
def test_processes_on_a_faulty_folder_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [
        context.Process(target=work, args=(str(tmp_path), number, results))
        for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    outcomes = [results.get() for _ in processes]
    for process in processes:
        process.join()
    planted = sum((faults for _, _, faults in outcomes), Counter[str]())
    assert min(planted[fault] for fault in FAULTS) > PROCESSES
    assert [wrong for wrong, _, _ in outcomes] == [[]] * PROCESSES
    won = [lease for _, leases, _ in outcomes for lease in leases]
    assert sorted(won) == sorted(f"leases/{turn}" for turn in range(ROUNDS))
    storage, signer = open_storage(f"file://{tmp_path}"), Signer()
    for number in range(PROCESSES):
        for turn in range(ROUNDS):
            name = f"kernels/{number}-{turn}"
            content = storage.get(name)
            assert content is not None
            assert signer.unsealed(name, content) == ({"by": number}, {"obj": name.encode() * 999})
    assert len(storage.members("timings/k")) == PROCESSES * ROUNDS
    assert not [file for file in tmp_path.rglob(".*") if file.is_file()]
