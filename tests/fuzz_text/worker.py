"""Judges cases in a process of its own, which a crash may take with it.

    python -m tests.fuzz_text.worker tile SEED FIRST STEP END COMPILED

Says on stdout when it begins each case, and what became of it; run.py listens.
"""

from __future__ import annotations

import resource
import signal
import sys
import traceback
from random import Random
from types import FrameType

from tests.fuzz_text.judge import CASES

SECONDS = 5.0
"""CPU time of one case; wall time would measure what else the machine does."""

MEMORY = 2 << 30


class OutOfTime(BaseException):
    """No designed error catches it."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise OutOfTime


def main(kind: str, seed: str, first: int, step: int, end: int, compiled: float) -> None:
    """Judge the cases first, first + step, ... below `end`; compile this share of them."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _stop)
    for number in range(first, end, step):
        print(f"begin {number}", flush=True)
        print(f"end {number} {outcome(kind, f'{seed}:{number}', compiled)}", flush=True)


def outcome(kind: str, seed: str, compiled: float) -> str:
    """How far a case gets; for a defect the last lines of its traceback, on one line."""
    chosen = Random(f"{seed} compiled").random() < compiled
    try:
        case = CASES[kind](seed, chosen)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            return case.judge(case.text)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except OutOfTime as problem:
        return "defect " + _last_lines(problem, "out of time")
    except BaseException as problem:
        return "defect " + _last_lines(problem, f"{type(problem).__name__}: {problem}")


def _last_lines(problem: BaseException, words: str) -> str:
    cause = problem
    while cause.__cause__ is not None:
        cause = cause.__cause__
    frames = traceback.extract_tb(cause.__traceback__)
    ours = [frame for frame in frames if "tilewright" in frame.filename][-4:]
    places = " < ".join(
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in ours[::-1]
    )
    if cause is not problem:
        words += f" | {type(cause).__name__}: {cause}"
    return f"{words[:300]!r} at {places}"


if __name__ == "__main__":
    kind, seed, first, step, end, compiled = sys.argv[1:]
    main(kind, seed, int(first), int(step), int(end), float(compiled))
