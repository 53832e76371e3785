"""Forks while other threads compile and launch: every child compiles, launches and ends.

TILEWRIGHT_FORKS is how often (15 if unset); 300 take half a minute on a free machine.
"""

import itertools
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.forking import assert_child_succeeds, needs_fork
from tilewright.support import settings

FORKS = int(os.environ.get("TILEWRIGHT_FORKS", "15"))
COMPILING, LAUNCHING = 3, 4


@tilewright.jit
def scaled(out, n, FACTOR: tl.constexpr):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(out + i, tl.exp(tl.load(out + i) * 0.0) * FACTOR + n)


tuned = tilewright.autotune(
    [tilewright.Config({"FACTOR": 5}), tilewright.Config({"FACTOR": 5})], []
)(scaled)
interpreted = tilewright.jit(interpret=True)(scaled.fn)
factors = itertools.count(2)


def assert_stores(kernel, *args: int, **words: int) -> None:
    """A launch on 64 programs; FACTOR + n is stored."""
    n, factor = args
    out = np.zeros(64 * 16, np.float32)
    kernel[(64,)](out, n, **words)
    assert (out == factor + n).all()


def compile_and_launch() -> None:
    factor = next(factors)
    assert_stores(scaled, 3, factor, FACTOR=factor)


def launch() -> None:
    assert_stores(scaled, 3, 1, FACTOR=1)


class Busy:
    """Threads that compile new variants, and threads that launch one, until the block ends."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.problems: list[BaseException] = []
        works = [compile_and_launch] * COMPILING + [launch] * LAUNCHING
        self.threads = [threading.Thread(target=self.repeat, args=(work,)) for work in works]

    def repeat(self, work) -> None:
        try:
            while not self.stop.is_set():
                work()
        except BaseException as problem:
            self.problems.append(problem)

    def __enter__(self) -> None:
        launch()
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert not self.problems


def work_of_a_child() -> None:
    launch()
    compile_and_launch()
    threads = [threading.Thread(target=work) for work in (launch, compile_and_launch)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@needs_fork
def test_children_compile_and_launch_whatever_other_threads_do_meanwhile() -> None:
    pauses = random.Random(20)
    with Busy():
        for _ in range(FORKS):
            time.sleep(pauses.uniform(0, 0.03))
            assert_child_succeeds(work_of_a_child)


@needs_fork
def test_children_tune_interpret_and_fork_again() -> None:
    def use() -> None:
        assert_stores(tuned, 3, 5)
        assert_stores(interpreted, 3, 2, FACTOR=2)
        assert_child_succeeds(work_of_a_child)

    with Busy(), settings().cache.scope(always_compile=True):
        for _ in range(3):
            assert_child_succeeds(use)


def launched_in_pool(n: int) -> int:
    assert_stores(scaled, n, 7, FACTOR=7)
    return n


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_pool_of_forked_processes() -> None:
    with Busy(), multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(launched_in_pool, range(6)) == list(range(6))


FIRST_USE = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
from tests.unit.runtime import test_fork as t
thread = threading.Thread(target=t.compile_and_launch)
thread.start()
time.sleep({delay})
t.assert_child_succeeds(t.compile_and_launch)
thread.join()
"""


@needs_fork
def test_a_fork_during_the_first_compilation_of_a_process() -> None:
    """When modules are still being imported, LLVM is started and the pool is compiled."""
    for delay in (0.0, 0.01, 0.03, 0.06, 0.1):
        program = FIRST_USE.format(delay=delay)
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
