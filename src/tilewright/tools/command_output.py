"""How commands print for people and for programs: tables for a terminal or a pipe, and JSON."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from tilewright.tools.command_failure import CommandFailed

PIPE_COLUMNS = 10_000
"""Where nobody looks at a screen, no line is cut or folded: `grep` and `awk` read whole rows."""


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`, for a command that prints a table."""
    parser.add_argument("--json", action="store_true", help="print JSON instead, for programs")


def print_json(value: object) -> None:
    """JSON as a text of its own; paths and times as they are written."""
    print(json.dumps(value, indent=2, default=str))


def print_table(table: Table) -> None:
    """As wide as the terminal; whole, plain lines where the output is a file or a pipe."""
    if sys.stdout.isatty():
        table.box, table.expand = box.SIMPLE_HEAD, True
        Console().print(table)
        return
    table.box, table.caption = None, None
    for column in table.columns:
        column.max_width = None
    Console(width=PIPE_COLUMNS, highlight=False).print(table, crop=False)


def check_writable(file: Path) -> None:
    """Raise CommandFailed unless `file` can be written: before the work, not after it."""
    existed = file.exists()
    try:
        # Append mode creates the file but keeps what is in an existing one.
        file.open("ab").close()
    except OSError as problem:
        raise CommandFailed(f"cannot write {file}: {problem.strerror}") from None
    if not existed:
        file.unlink()
