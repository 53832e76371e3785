"""Output of commands: tables for a terminal or a pipe, and JSON."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from tilewright.tools.command_failure import CommandFailed

PIPE_COLUMNS = 10_000
"""Width of tables in a pipe, where no row is cut or folded, for `grep` and `awk`."""


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`, for a command that prints a table."""
    parser.add_argument("--json", action="store_true", help="print JSON instead, for programs")


def print_json(value: object) -> None:
    """Print JSON; paths and times become text."""
    print(json.dumps(value, indent=2, default=str))


def print_table(table: Table) -> None:
    """Print a table in the terminal's width; in whole, plain lines to a file or a pipe."""
    if sys.stdout.isatty():
        table.box, table.expand = box.SIMPLE_HEAD, True
        Console().print(table)
        return
    table.box, table.caption = None, None
    for column in table.columns:
        column.max_width = None
    Console(width=PIPE_COLUMNS, highlight=False).print(table, crop=False)


def terminal_columns() -> int | None:
    """The columns of the terminal that standard output is; None for a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fit(paragraph: str, indent: str = "") -> str:
    """A paragraph wrapped for a terminal, continued after `indent`.

    Examples, which start with a fence, and text for a file or a pipe are unchanged.
    """
    columns = terminal_columns()
    if columns is None or paragraph.startswith("```"):
        return paragraph
    return _filled(paragraph, columns, "", indent)


def wrapped(text: str, columns: int, indent: str = "") -> str:
    """A paragraph wrapped between words, every line indented."""
    return _filled(text, columns, indent, indent)


def _filled(text: str, columns: int, first: str, others: str) -> str:
    return textwrap.fill(
        text,
        columns,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def check_writable(file: Path) -> None:
    """Raise CommandFailed unless `file` can be written; called before the work."""
    existed = file.exists()
    try:
        # Append mode creates the file, but keeps an existing one's content.
        file.open("ab").close()
    except OSError as problem:
        raise CommandFailed(f"cannot write {file}: {problem.strerror}") from None
    if not existed:
        file.unlink()
