"""Signals during a launch: their handlers run, and what these raise ends the launch soon."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no native pool")

ROOT = Path(__file__).parents[5]
PROGRAM = """
import os, signal, threading, time
import numpy as np
import tilewright, tilewright.language as tl

@tilewright.jit
def slow(out, n):
    total = 0.0
    for q in range(n):
        total = total + 1.0 / (q + total + 1)
    tl.store(out + tl.program_id(0), total)

GRID, STEPS = 3000, {steps}
out = np.zeros(GRID, np.float32)
slow[(4,)](out, 10)
out[:] = 0

sent = []

# when the first program instance has ended, however long the way there takes
def signal_inside(number):
    def watch():
        while not out.any():
            time.sleep(0.001)
        sent.append(time.process_time())
        os.kill(os.getpid(), number)
    threading.Thread(target=watch, daemon=True).start()

"""
CHECK_NEXT = """
out[:] = 0
slow[(GRID,)](out, 10)
assert (out > 0).all(), "the launch after it is not whole"
print("fine")
"""
ENDINGS = {
    "an interrupt stops the grid": """
# what Python sets, but not in programs that a shell has started in the background
signal.signal(signal.SIGINT, signal.default_int_handler)
signal_inside(signal.SIGINT)
try:
    slow[(GRID,)](out, STEPS)
    print("it ran to its end")
except KeyboardInterrupt:
    # 0.2 s of each thread, and a program instance of a few ms; the clock of the machine would
    # count what other processes do
    took = time.process_time() - sent[0]
    assert took < 0.2 + 1.5, took
    assert 0 < (out > 0).sum() < GRID
""",
    "a handler that returns lets the grid finish": """
came = []
signal.signal(signal.SIGINT, lambda *_: came.append(True))
for _ in range(3):
    out[:] = 0
    signal_inside(signal.SIGINT)
    slow[(GRID // 8,)](out, STEPS)
    assert (out[:GRID // 8] > 0).all()
    assert came, "the handler did not run"
    came.clear()
""",
    "what a handler raises arrives": """
class TooSlow(Exception):
    pass
def handler(*_):
    raise TooSlow("after a while")
signal.signal(signal.SIGALRM, handler)
signal_inside(signal.SIGALRM)
try:
    slow[(GRID,)](out, STEPS)
    print("it ran to its end")
except TooSlow as problem:
    assert str(problem) == "after a while"
    assert problem.__traceback__ is not None
    assert 0 < (out > 0).sum() < GRID
""",
    "a handler cannot launch": """
def handler(*_):
    slow[(4,)](out, 10)
signal.signal(signal.SIGALRM, handler)
signal_inside(signal.SIGALRM)
try:
    slow[(GRID,)](out, STEPS)
    print("it ran to its end")
except RuntimeError as problem:
    assert "handler of a signal" in str(problem), problem
""",
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("ending", ENDINGS)
def test_signals_during_a_launch(ending: str, threads: int, tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(PROGRAM.format(steps=400_000) + ENDINGS[ending] + CHECK_NEXT)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False,
        env={**os.environ, "TILEWRIGHT_CPU_THREADS": str(threads),
             "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
