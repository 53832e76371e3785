"""Ranks load kernels before one of them waits for peers: threads share CUDA's locks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tests.kernels.test_examples import EXAMPLES
from tilewright.distributed import Group, Signals, ThreadGroup, peers, rank_signals, zeros

SECONDS = 20


class LoadingDriver:
    """A stand-in for CUDA in one process: `late` are kernels that were loaded, for new shapes,
    while a barrier waited for a peer. Rank 0 launches all kernels of a call before rank 1 does."""

    def __init__(self) -> None:
        self.lock, self.ahead = threading.Lock(), threading.Semaphore(0)
        self.loaded, self.late = set[tuple[object, ...]](), list[tuple[object, ...]]()
        self.barriers = [0, 0]

    def launch(self, *key: object) -> None:
        with self.lock:
            if key not in self.loaded:
                self.loaded.add(key)
                if self.barriers[0] != self.barriers[1]:
                    self.late.append(key)

    def barrier(self, signals: Signals) -> None:
        """Launch a barrier, the first or the second one of a call."""
        rank = signals.peers.rank
        if rank == 1 and self.barriers[1] % 2 == 0:
            assert self.ahead.acquire(timeout=SECONDS)
        with self.lock:
            self.barriers[rank] += 1

    def returned(self, rank: int) -> None:
        """A call has returned on a rank."""
        if rank == 0:
            self.ahead.release()


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES / "distributed"))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module(name)


def run_ranks(main: Callable[[Group], object]) -> list[Any]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(main, ThreadGroup.ranks(2, SECONDS)))


def test_gathered_matmul_loads_kernels_before_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    module, driver = example("gathered_matmul", monkeypatch), LoadingDriver()

    def matmul(a: Any, b: Any, out: Any) -> None:
        driver.launch(threading.get_ident(), b.shape)
        out[:] = a @ b

    monkeypatch.setattr(module, "matmul", matmul)
    monkeypatch.setattr(Signals, "barrier", lambda signals: driver.barrier(signals))

    def rank_main(group: Group) -> float:
        gathered = module.GatheredMatmul(group, 4, 8, np.float32)
        gathered.shard[:] = group.rank + 1
        group.exchange("")
        wrong = 0.0
        for columns in (16, 32, 16, 64):
            out = np.zeros((8, columns), np.float32)
            gathered(np.ones((8, columns), np.float32), out)
            driver.returned(group.rank)
            wrong = max(wrong, abs(out[:4] - 8).max(), abs(out[4:] - 16).max())
        return wrong

    assert run_ranks(rank_main) == [0, 0]
    assert driver.late == []
    assert len(driver.loaded) == 2 * 3


def test_ring_attention_loads_kernels_before_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    module, driver = example("ring_attention", monkeypatch), LoadingDriver()

    def attention(q: Any, k: Any, v: Any, lse: Any, out: Any) -> None:
        driver.launch(threading.get_ident(), "attention")

    class Merge:
        def __getitem__(self, _grid: object) -> Callable[..., None]:
            return lambda *_, **__: driver.launch(threading.get_ident(), "merge")

    monkeypatch.setattr(module, "attention", attention)
    monkeypatch.setattr(module, "merge_kernel", Merge())
    monkeypatch.setattr(Signals, "barrier", lambda signals: driver.barrier(signals))

    def rank_main(group: Group) -> None:
        ring = module.RingAttention(group, 1, 4, 8, np.float32)
        group.exchange("")
        for _ in range(2):
            ring(ring.keys[0])
            driver.returned(group.rank)

    run_ranks(rank_main)
    assert driver.late == []
    assert len(driver.loaded) == 2 * 2


def test_a_barrier_is_loaded_without_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its arguments are of the types of later launches, and the signals are zero after it."""
    first, _ = ThreadGroup.ranks(2, SECONDS)
    pad = zeros(2 * rank_signals.PAD_WORDS, "int32", first)
    launched = list[tuple[int, int, int]]()
    kernel = rank_signals.barrier_kernel

    class Kernel:
        def __getitem__(self, grid: tuple[int]) -> Callable[..., None]:
            def launch(pad: Any, table: Any, slot: int, timeout_ns: int, **words: Any) -> None:
                launched.append((slot, timeout_ns, len(table)))
                kernel[grid](pad, table, slot, timeout_ns, **words)
                assert pad[rank_signals.PAD_WORDS] == 1, "the epoch after a barrier"
                assert pad[0] == 0, "no rank is missing"

            return launch

    monkeypatch.setattr(rank_signals, "barrier_kernel", Kernel())
    Signals._load_barrier(pad, first, 30.0)  # pyright: ignore[reportPrivateUsage]
    assert launched == [(0, 30_000_000_000, 2)]
    assert not pad.any()


def test_threads_of_gpus_load_the_barrier_before_they_exchange_pads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = list[str]()

    def recorded(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def run(*args: Any) -> object:
            events.append(name)
            return call(*args)

        return run

    def host_zeros(shape: int, _dtype: object, group: Group, _device: object) -> object:
        return zeros(shape, "int32", group)

    monkeypatch.setattr(rank_signals, "_int32", lambda _device: "int32")
    monkeypatch.setattr(rank_signals, "zeros", host_zeros)
    monkeypatch.setattr(rank_signals, "peers", recorded("exchange", peers))
    monkeypatch.setattr(Signals, "_load_barrier", recorded("load", lambda *_: None))
    (group,) = ThreadGroup.ranks(1)
    Signals.of(group, 1, device="cuda:0")
    assert events == ["load", "exchange"]
    Signals.of(group, 1)
    assert events == ["load", "exchange", "exchange"]
