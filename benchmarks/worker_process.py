"""A process that answers requests, a line of JSON each: a contestant with its own `triton`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any


class WorkerEnded(Exception):
    """The process exited before it answered; the text holds its exit status."""


class WorkerProcess:
    """The parent's side. command: starts a program that calls `serve`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    def close(self) -> None:
        """Kill the process and its workers: after a profile, some never exit by themselves."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def send(self, *request: object) -> None:
        """Send a request, whose `answer` is read later."""
        assert self._process.stdin is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise WorkerEnded(f"a worker exited with status {self._process.wait()}") from None

    def answer(self) -> dict[str, Any]:
        """The answer to the oldest request without one."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise WorkerEnded(f"a worker exited with status {self._process.wait()}")
        return json.loads(line)

    def ask(self, *request: object) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self.send(*request)
        return self.answer()


class Workers:
    """A process for each side, started at its first request; anew after `close`."""

    def __init__(self, sides: Sequence[str], start: Callable[[str], WorkerProcess]) -> None:
        self.sides = tuple(sides)
        self._start = start
        self._running: dict[str, WorkerProcess] = {}

    def ask(self, side: str, *request: object) -> dict[str, Any]:
        """One side's answer."""
        return self._process(side).ask(*request)

    def ask_all(self, *request: object) -> dict[str, dict[str, Any]]:
        """The answers by side; all compute at once."""
        for side in self.sides:
            self._process(side).send(*request)
        return {side: self._running[side].answer() for side in self.sides}

    def close(self) -> None:
        """End all processes."""
        for worker in self._running.values():
            worker.close()
        self._running = {}

    def _process(self, side: str) -> WorkerProcess:
        if side not in self._running:
            self._running[side] = self._start(side)
        return self._running[side]


def serve(answers: Mapping[str, Callable[..., Mapping[str, Any]]]) -> None:
    """The worker's side: call what each request names, until the parent closes the pipe.

    Whatever else the program prints goes to standard error.
    """
    replies, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        request, *arguments = json.loads(line)
        print(json.dumps(answers[request](*arguments)), file=replies, flush=True)
