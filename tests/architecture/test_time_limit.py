"""Time limits count CPU time: of the test, of its processes, and of none when a test hangs."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.architecture.gates import ROOT
from tests.time_limit import TimeLimit, limited, pytest_enter_pdb, unlimited

SPIN = "while True: pass"
CHILDREN = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SPIN!r}])"


def spin() -> None:
    while True:
        pass


def wait_for(program: str) -> Callable[[], object]:
    """A function that waits for a process of Python."""
    return lambda: subprocess.run([sys.executable, "-c", program], check=False)


@pytest.mark.parametrize("work", [spin, wait_for(SPIN)], ids=["own", "child"])
def test_cpu_time_ends_a_test(work: Callable[[], object]) -> None:
    limit = TimeLimit(cpu=0.3, idle=60)
    with pytest.raises(pytest.fail.Exception, match=r"more than 0\.3 s of CPU time"):
        with limited(limit, first=0.05):
            work()


def test_cpu_time_of_grandchildren_counts() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILDREN.replace("run", "Popen") + ".wait()"], start_new_session=True
    )
    limit = TimeLimit(cpu=0.3, idle=60)
    try:
        with pytest.raises(pytest.fail.Exception, match="CPU time"):
            with limited(limit, first=0.05):
                process.wait()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_hang_ends_a_test() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"no CPU time for 0\.2 s"):
        with limited(TimeLimit(cpu=60, idle=0.2), first=0.05):
            time.sleep(60)


def test_wall_time_alone_ends_no_test() -> None:
    limit = TimeLimit(cpu=0.5, idle=60)
    with limited(limit, first=0.2):
        time.sleep(1)
    assert limit.check() is None


def test_nothing_is_limited_while_another_process_works() -> None:
    checks: list[int] = []

    class Counting(TimeLimit):
        def check(self) -> str | None:
            checks.append(1)
            return None

    with limited(Counting(), first=0.05):
        with unlimited():
            time.sleep(0.3)
        assert not checks
        time.sleep(0.3)
    assert checks


def test_a_debugger_has_no_limit() -> None:
    with limited(TimeLimit(cpu=60, idle=0.1), first=0.1):
        pytest_enter_pdb()
        time.sleep(0.5)
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def wall_limits(source: str) -> Iterator[int]:
    """The lines of a file that limit the wall time of a subprocess."""
    starts = {"run", "communicate", "check_output", "check_call", "call"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in starts:
            if any(word.arg == "timeout" for word in node.keywords):
                yield node.lineno


def test_subprocesses_have_no_limit_of_wall_time() -> None:
    texts = {path: path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")}
    named = {path: text for path, text in texts.items() if "timeout=" in text}
    assert [(str(path), n) for path in named for n in wall_limits(named[path])] == []


def test_a_limit_of_wall_time_is_found() -> None:
    program = "run(a)\nos.run(a, timeout=3)\np.communicate(timeout=x)\nlock(timeout=1)\n"
    assert list(wall_limits(program)) == [2, 3]
