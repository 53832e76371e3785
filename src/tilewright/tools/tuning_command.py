"""`tilewright tuning list`: the timings of autotuned kernels on disk, the fastest first."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from tilewright.runtime import KeptTimings, kept_timings, timing_lines, timing_rows
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.command_output import add_json, fit, print_json

ACTIONS = ("list",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("action", choices=ACTIONS, metavar="|".join(ACTIONS))
    parser.add_argument("kernel", nargs="?", metavar="KERNEL", help="only kernels of this name")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    kept = kept_timings()
    if chosen.kernel is not None:
        kept = [one for one in kept if one.kernel == chosen.kernel]
        if not kept:
            raise CommandFailed(f"no timings of '{chosen.kernel}' are on disk")
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
