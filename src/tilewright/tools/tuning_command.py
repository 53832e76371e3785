"""`tilewright tuning`: list the timings of autotuned kernels on disk, and make tables of them.

tilewright tuning list KERNEL
tilewright tuning export TABLE.json          # the timings on disk
tilewright tuning merge TABLE.json A.json B.json
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from tilewright.runtime import (
    KeptTimings,
    TuningTable,
    kept_timings,
    timing_lines,
    timing_rows,
)
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.command_output import add_json, fit, print_json

ACTIONS = ("list", "export", "merge")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("action", choices=ACTIONS, metavar="|".join(ACTIONS))
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="list: only kernels of this name; export: the table to write; merge: the table to "
        "write, then the tables to read, of which later ones override earlier ones",
    )
    parser.add_argument("--kernel", metavar="KERNEL", help="only kernels of this name")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    if chosen.action == "list":
        return _list(chosen)
    if len(chosen.names) < (1 if chosen.action == "export" else 2):
        raise CommandFailed(f"name the files: tilewright tuning {_USAGE[chosen.action]}")
    file, *others = map(Path, chosen.names)
    if chosen.action == "export":
        if others:
            raise CommandFailed(f"one file is written, not {len(chosen.names)}")
        table = TuningTable.of(_kept(chosen.kernel))
    else:
        table = TuningTable({})
        for other in others:
            table |= TuningTable.load(other)
    file.write_text(table.text(), encoding="utf-8")
    print(f"wrote {len(table.rows)} rows to {file}")
    return 0


_USAGE = {"export": "export TABLE.json", "merge": "merge TABLE.json A.json B.json"}


def _kept(kernel: str | None) -> list[KeptTimings]:
    kept = [one for one in kept_timings() if kernel in (None, one.kernel)]
    if kernel is not None and not kept:
        raise CommandFailed(f"no timings of '{kernel}' are on disk")
    return kept


def _list(chosen: argparse.Namespace) -> int:
    kept = _kept(chosen.kernel or (chosen.names[0] if chosen.names else None))
    if chosen.json:
        print_json([_members(one) for one in kept])
    elif not kept:
        print("no timings are on disk; launches of autotuned kernels write them")
    else:
        print("\n\n".join(map(_text, kept)))
    return 0


def _members(kept: KeptTimings) -> dict[str, object]:
    rows = [asdict(row) for row in timing_rows(kept.timings)]
    return {"kernel": kept.kernel, "key": kept.key, "target": kept.target, "timings": rows}


def _text(kept: KeptTimings) -> str:
    head = f"{kept.kernel or 'a kernel'} for {kept.key or 'an unknown key'} on {kept.target}"
    lines = [fit(line, indent=" " * 22) for line in timing_lines(kept.timings)]
    return "\n".join([fit(head), *lines])
