"""What other operating systems lack: each fallback, and a process that needs all of them."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tilewright.support import operating_system, usable_cpus

WITHOUT = """
import os, sys
lacking = ("sched_getaffinity", "register_at_fork", "fork", "geteuid", "getuid",
           "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "O_CLOEXEC")
for name in lacking:
    if hasattr(os, name):
        delattr(os, name)
os.supports_dir_fd = set()
import tilewright.support.operating_system as system
system.HAS_NATIVE_THREADS = False
assert system.affinity() is None and system.user_number() is None and not system.BY_FOLDER

import numpy as np
from tilewright.backends.cpu.driver.thread_pool import PythonPool, shared_pool
from tilewright.kernels.elementwise import add_kernel
x = np.arange(100_000, dtype=np.float32)
out = np.empty_like(x)
add_kernel[(100,)](x, x, out, len(x), BLOCK=1024)
assert isinstance(shared_pool(), PythonPool)
assert (out == 2 * x).all()
print("ran")
"""


def run(script: str, cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True,
        env={**os.environ, "TILEWRIGHT_CACHE_DIR": str(cache),
             "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kernels_run_and_are_kept_where_everything_is_missing(tmp_path: Path):
    """The second process reads what the first has written, and both warn of nothing."""
    assert run(WITHOUT, tmp_path).strip() == "ran"
    kept = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert kept
    assert run(WITHOUT, tmp_path).strip() == "ran"
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == kept


def test_all_cpus_count_where_nobody_tells_which_are_ours(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert operating_system.affinity() is None
    assert usable_cpus() == tuple(range(os.cpu_count() or 1))


def test_nothing_follows_forks_where_there_are_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "register_at_fork", raising=False)
    called: list[str] = []
    operating_system.at_fork(before=lambda: called.append("before"))
    assert called == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_forks_call_what_they_are_given():
    script = """
    import os
    from tilewright.support.operating_system import at_fork
    at_fork(*(lambda word=word: os.write(1, word) for word in (b"before ", b"parent ", b"child ")))
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    """
    assert sorted(run(script, Path("unused")).split()) == ["before", "child", "parent"]
