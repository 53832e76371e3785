"""`tilewright env`: every setting, its current value and its variable."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from tilewright.support.settings_table import SettingRow, setting_rows
from tilewright.tools.command_output import (
    add_json,
    print_json,
    terminal_columns,
    wrapped,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_json(parser)
    parser.add_argument("--markdown", action="store_true", help="print the table of the README")


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    if chosen.markdown:
        print(settings_markdown())
    elif chosen.json:
        print_json([asdict(row) for row in setting_rows()])
    else:
        print(settings_text(terminal_columns()))
    return 0


def settings_text(columns: int | None) -> str:
    """Every variable with its value and its meaning, in a pipe (`None` columns) on one line."""
    lines: list[str] = []
    for row in setting_rows():
        if columns is None:
            lines.append(f"{_assignment(row)}  {row.doc}")
        else:
            lines += [_assignment(row), wrapped(row.doc, columns, " " * 4)]
    return "\n".join([*lines, *([] if columns is None else ["* not the default"])])


def _assignment(row: SettingRow) -> str:
    """A variable and its value, marked if it is not the default."""
    mark = "" if row.value == row.default else " *"
    return f"{row.variables[0]}={_text(row.value)}{mark}"


def settings_markdown() -> str:
    """A table that is the same on every machine: variables, defaults, meanings."""
    lines = ["| variable | also read | default | meaning |", "|---|---|---|---|"]
    for row in setting_rows():
        first, *others = row.variables
        also = ", ".join(f"`{name}`" for name in others)
        lines.append(f"| `{first}` | {also} | {_default(row.default)} | {row.doc} |")
    return "\n".join(lines)


def _text(value: object) -> str:
    """A value as it would be written in the environment."""
    if isinstance(value, bool):
        return str(int(value))
    return "" if value is None else str(value)


def _default(value: object) -> str:
    """The text of a default; folders depend on the machine, so their setting's meaning names
    them."""
    return "" if isinstance(value, Path) else _text(value)
