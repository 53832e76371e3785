"""`tilewright run-script`: run a Python script in which `import triton` imports Tilewright.

    tilewright run-script train.py --steps 10

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

from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.find_kernel import check_python
from tilewright.triton_alias import as_triton


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="a script in Python")
    parser.add_argument(
        "arguments", metavar="ARG", nargs="?", default="[]", help="the script's own arguments"
    )


def join_words(words: Sequence[str]) -> list[str]:
    """Join the words after the file, which are the script's arguments, into one."""
    if not words or words[0].startswith("-"):
        return list(words)
    return [words[0], json.dumps(words[1:])]


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    path = Path(chosen.file)
    if not path.is_file():
        raise CommandFailed(f"there is no file {path}")
    check_python(path)
    as_triton()
    sys.argv = [chosen.file, *json.loads(chosen.arguments)]
    sys.path.insert(0, str(path.resolve().parent))
    runpy.run_path(chosen.file, run_name="__main__")
    return 0
