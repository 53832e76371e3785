"""Runs a user's script in this process, for `run-script` and `profile`.

The script sees its own name and arguments in `sys.argv`, and is `__main__`; its folder comes first
in `sys.path`, as with `python train.py`.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tilewright.aot import check_python
from tilewright.support import settings
from tilewright.tools.command_failure import CommandFailed


def add_script(parser: argparse.ArgumentParser) -> None:
    """`FILE ARG ...`; the command's `join_words` has to be `join_after_file`."""
    parser.add_argument("file", metavar="FILE", help="a script in Python")
    parser.add_argument(
        "arguments", metavar="ARG", nargs="?", default="[]", help="the script's own arguments"
    )


def join_after_file(words: Sequence[str]) -> list[str]:
    """Join the words after the file, which are the script's arguments, into one."""
    if not words or words[0].startswith("-"):
        return list(words)
    return [words[0], json.dumps(words[1:])]


def check_script(chosen: argparse.Namespace) -> None:
    """Check that the script exists and is Python. Errors: CommandFailed."""
    path = Path(chosen.file)
    if not path.is_file():
        script = Path(chosen.file.rpartition(":")[0])
        hint = f"; the whole script is run: pass {script}" if script.is_file() else ""
        raise CommandFailed(f"there is no file {path}{hint}")
    check_python(path)


def run_script(chosen: argparse.Namespace) -> int:
    """Run the script; returns the exit status. An exception is reported as Python does, from the
    script's frame on."""
    sys.argv = [chosen.file, *json.loads(chosen.arguments)]
    sys.path.insert(0, str(Path(chosen.file).resolve().parent))
    try:
        runpy.run_path(chosen.file, run_name="__main__")
    except BrokenPipeError:
        raise
    except Exception as problem:
        if settings().compilation.debug:
            raise
        frames = _from_file(problem.__traceback__, chosen.file)
        sys.excepthook(type(problem), problem.with_traceback(frames), frames)
        return 1
    return 0


def _from_file(frames: TracebackType | None, file: str) -> TracebackType | None:
    """The frames from the first one of a file on; None if there is none."""
    while frames is not None and frames.tb_frame.f_code.co_filename != file:
        frames = frames.tb_next
    return frames
