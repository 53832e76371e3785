"""Executors that compile, by name; those of packages that are not installed are skipped."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

WORKERS = 2


@contextmanager
def threads() -> Generator[Executor]:
    with ThreadPoolExecutor(WORKERS) as pool:
        yield pool


@contextmanager
def spawned() -> Generator[Executor]:
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextmanager
def dask() -> Generator[Executor]:
    distributed: Any = pytest.importorskip("distributed")
    local = distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=None
    )
    with local as cluster, distributed.Client(cluster) as client:
        yield client.get_executor(pure=False, retries=0)


@contextmanager
def executorlib() -> Generator[Executor]:
    module: Any = pytest.importorskip("executorlib")
    with module.SingleNodeExecutor(max_workers=WORKERS, block_allocation=True) as pool:
        yield pool


@contextmanager
def mpi() -> Generator[Executor]:
    pytest.importorskip("mpi4py")
    try:
        futures: Any = importlib.import_module("mpi4py.futures")
    except (ImportError, RuntimeError) as problem:
        pytest.skip(f"mpi4py finds no MPI: {problem}")
    with futures.MPIPoolExecutor(
        WORKERS, main=False, path=[path for path in sys.path if path]
    ) as pool:
        yield pool


EXECUTORS: dict[str, Callable[[], Any]] = {
    "threads": threads,
    "spawned": spawned,
    "dask": dask,
    "executorlib": executorlib,
    "mpi": mpi,
}


def die(_: object) -> None:
    """Ends the worker, as a crash of the compiler does."""
    os._exit(3)


def fail(_: object) -> None:
    raise MemoryError("planted")


class Sabotaged(Executor):
    """An executor whose jobs with a word in their text are replaced by `instead`, `times` times."""

    def __init__(self, inner: Executor, word: str, instead: Any, times: int = 1000) -> None:
        self.inner, self.word, self.instead, self.left = inner, word, instead, times
        self.sent: list[str] = []

    def submit(self, fn: Any, /, *args: Any, **words: Any) -> Future[Any]:
        self.sent.append(args[0])
        if self.word in args[0] and self.left > 0:
            self.left -= 1
            fn = self.instead
        return self.inner.submit(fn, *args, **words)
