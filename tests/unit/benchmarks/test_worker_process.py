"""Processes of two sides: started at their first request, and anew after `close`."""

import sys
from contextlib import closing

import pytest

from benchmarks.worker_process import WorkerEnded, WorkerProcess, Workers

SCRIPT = """
import os, sys
from benchmarks.worker_process import serve
side = sys.argv[1]
serve({"name": lambda: {"side": side, "pid": os.getpid()}, "exit": lambda: os._exit(3)})
"""


def started(side: str) -> WorkerProcess:
    return WorkerProcess(
        [sys.executable, "-c", SCRIPT, side], {"PYTHONPATH": ":".join(filter(None, sys.path))}
    )


def test_each_side_answers_by_a_process_that_is_started_anew_after_close() -> None:
    with closing(Workers(("ours", "theirs"), started)) as workers:
        answers = workers.ask_all("name")
        assert {side: answer["side"] for side, answer in answers.items()} == {
            "ours": "ours", "theirs": "theirs",
        }  # fmt: skip
        assert workers.ask("ours", "name") == answers["ours"]
        workers.close()
        assert workers.ask("ours", "name")["pid"] != answers["ours"]["pid"]
        with pytest.raises(WorkerEnded, match="status 3"):
            workers.ask("theirs", "exit")
