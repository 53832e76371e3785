"""Fuzzes tile IR or Triton-C in child processes: defects, crashes, hangs, and counts.

    python -m tests.fuzz_text.run tile --count 50000 --jobs 2
    python -m tests.fuzz_text.run c --seed 7 --show 1234

A case depends on the seed and its number only, so `--show NUMBER` prints one again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field

from tests.fuzz_text.judge import CASES, STAGES, reached

WALL = 60.0
"""Seconds without a word after which a worker hangs in native code; it stops itself before."""


@dataclass
class Tally:
    """What was found so far. counts: cases by the stage that they reached, defects among them."""

    counts: Counter[str] = field(default_factory=Counter[str])
    defects: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, number: int, what: str) -> None:
        """Note what became of a case; a defect is printed at once."""
        with self.lock:
            self.counts[what.partition(" ")[0]] += 1
            if what.startswith("defect"):
                self.defects.append((number, what))
                print(f"{number}: {what}", flush=True)

    def __str__(self) -> str:
        reached = [sum(self.counts[s] for s in STAGES[i:]) for i in range(1, len(STAGES))]
        words = ", ".join(f"{n:,} {s}" for n, s in zip(reached, STAGES[1:], strict=True))
        return f"{self.counts.total():,} cases: {words}; {len(self.defects)} defects"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 if anything was found."""
    chosen = _parse(arguments)
    if chosen.show is not None:
        case = CASES[chosen.kind](f"{chosen.seed}:{chosen.show}", True)
        print(case.text, "//", reached(case), sep="\n")
        return 0
    tally = run(chosen)
    print(f"{chosen.kind}, seed {chosen.seed}, {tally}")
    return 1 if tally.defects else 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fuzz tile IR or Triton-C.")
    parser.add_argument("kind", choices=list(CASES))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--compiled", type=float, default=0.05, help="share that is compiled")
    parser.add_argument("--show", type=int, help="print one case and what becomes of it")
    return parser.parse_args(arguments)


def run(chosen: argparse.Namespace) -> Tally:
    """Judge `count` cases, spread over `jobs` workers."""
    tally = Tally()
    threads = [
        threading.Thread(target=_supervise, args=(chosen, first, tally))
        for first in range(chosen.jobs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally


def _supervise(chosen: argparse.Namespace, first: int, tally: Tally) -> None:
    """Every `jobs`-th case from `first` on; behind one that kills the worker another goes on."""
    following = first
    while following < chosen.count:
        words = [chosen.kind, chosen.seed, following, chosen.jobs, chosen.count, chosen.compiled]
        command = [sys.executable, "-m", "tests.fuzz_text.worker", *map(str, words)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        following = _listen(worker, following, chosen.jobs, tally)
        if worker.wait() != 0 and following < chosen.count:
            tally.add(following, f"defect the process died with status {worker.returncode}")
            following += chosen.jobs


def _listen(worker: subprocess.Popen[str], following: int, step: int, tally: Tally) -> int:
    """The first case of which the worker has not said what became of it."""
    assert worker.stdout is not None
    watchdog = threading.Timer(WALL, worker.kill)
    for line in worker.stdout:
        watchdog.cancel()
        watchdog = threading.Timer(WALL, worker.kill)
        watchdog.daemon = True
        watchdog.start()
        word, number, what = (*line.rstrip("\n").split(" ", 2), "")[:3]
        if word == "end":
            tally.add(int(number), what)
            following = int(number) + step
    watchdog.cancel()
    return following


if __name__ == "__main__":
    sys.exit(main())
