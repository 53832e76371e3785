"""A signal handler that raises while a kernel is compiled, stored, read, loaded or launched.

Its exception arrives as it is; nothing is called a bug or damaged, no lock is kept, and the next
launch is right.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.stop_points import count_points, is_stopped_at
from tests.unit.compiler.kernels import ADD, add
from tests.unit.support.test_fork_locks import is_free
from tilewright.compiler import ASTSource, compile
from tilewright.llvm.llvm_lock import LLVM_LOCK
from tilewright.support import settings
from tilewright.support.fork_locks import _Forks  # pyright: ignore[reportPrivateUsage]

ROOT = Path(__file__).parents[3]
POINTS = int(os.environ.get("TILEWRIGHT_STOP_POINTS", "40"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    with settings().cache.scope(dir=tmp_path / "cache"):
        yield tmp_path / "cache"


def launch() -> None:
    kernel = compile(ASTSource(add, ADD, {"BLOCK": 16}))
    x, y = np.arange(50, dtype=np.float32), np.full(50, 0.5, np.float32)
    out = np.zeros(64, np.float32)
    kernel[(4,)](x, y, out, 50, 16)
    assert (out[:50] == x + y).all()


def forget(cache: Path) -> None:
    shutil.rmtree(cache / "kernels", ignore_errors=True)


def keep(cache: Path) -> None:
    launch()


# Python closes a file whose opening was interrupted, and warns of it
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("prepare", [forget, keep])
def test_an_exception_at_any_point(cache: Path, prepare: Callable[[Path], None]) -> None:
    points = 0
    for _ in range(2):  # the first imports
        prepare(cache)
        points = count_points(launch)
    chance = random.Random(17)
    stopped = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for nth in sorted(chance.sample(range(points), POINTS)):
            prepare(cache)
            stopped += is_stopped_at(nth, launch)
            assert gc.isenabled(), nth
            assert is_free(LLVM_LOCK), nth
            assert is_free(_Forks.waiting), nth
            launch()
    # the number of points varies by a few; and Python swallows what is raised in `__del__`
    assert stopped > 0.8 * POINTS
    assert not (cache / "crashes").exists()


PROGRAM = """
import random, signal, sys, time, warnings
import numpy as np
import tilewright, tilewright.language as tl
from tilewright.support import settings
from tilewright.support.disk_cache import clear
warnings.simplefilter("error")

@tilewright.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, tl.exp(v) + tl.sum(v), mask=i < n)

class TooSlow(ERROR):
    pass

def handler(number, frame):
    raise TooSlow("after a while")

signal.signal(signal.SIGALRM, handler)
x = np.arange(64, dtype=np.float32) / 64

def launch():
    fresh = tilewright.jit(kernel.fn)
    out = np.zeros(64, np.float32)
    fresh[(1,)](x, out, 64, BLOCK=64)
    return out

expected = launch()
chance = random.Random(3)
came = 0
for number in range(60):
    if number % 2:
        clear(settings().cache.dir)
    start = time.perf_counter()
    launch()
    took = time.perf_counter() - start
    if number % 2:
        clear(settings().cache.dir)
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.random() * took + 1e-6)
        launch()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except TooSlow as problem:
        assert str(problem) == "after a while"
        assert problem.__cause__ is None
        came += 1
    assert (launch() == expected).all()
assert came > 25, came
assert not (settings().cache.dir / "crashes").exists()
print("fine")
"""


@pytest.mark.skipif(os.name == "nt", reason="no timers")
@pytest.mark.parametrize("error", ["Exception", "TimeoutError", "ValueError"])
def test_an_alarm_that_raises(error: str, tmp_path: Path) -> None:
    script = tmp_path / "alarmed.py"
    script.write_text(PROGRAM.replace("ERROR", error))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False,
        env={**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
             "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
