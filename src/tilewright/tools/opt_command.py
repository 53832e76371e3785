"""`tilewright opt`: run passes on tile IR and print the result."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from tilewright.ir import parse_pipeline, pass_named, pass_names, print_module
from tilewright.support import ListRecorder, Recorder, TeeRecorder, recording, settings
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.event_report import PassPrinter, times_table
from tilewright.tools.read_tile_ir import read_module

ALL = "all"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="tile IR; - reads standard input")
    parser.add_argument(
        "--passes", default="", metavar="A,B{X=1}", help="the passes to run, in order"
    )
    add_trace_arguments(parser)
    parser.add_argument("--list", action="store_true", help="list the passes there are")


def add_trace_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--print-after` and `--times`, also for other commands."""
    parser.add_argument(
        "--print-after", nargs="?", const=ALL, metavar="PASSES",
        help="print the IR after each of these passes (all, if none is named) to stderr",
    )  # fmt: skip
    parser.add_argument("--times", action="store_true", help="show where the time went, on stderr")


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    if chosen.list:
        print(listing())
        return 0
    if chosen.file is None:
        raise CommandFailed("tilewright opt needs a FILE (or - for standard input)")
    pipeline = parse_pipeline(chosen.passes)
    module = read_module(chosen.file)
    events = ListRecorder()
    # Verified after each pass: the user chooses the IR and the passes here.
    with settings().compilation.scope(verify=True), recording(recorder(chosen, events)):
        pipeline.run(module)
    sys.stdout.write(print_module(module))
    show_times(chosen, events)
    return 0


def recorder(chosen: argparse.Namespace, events: ListRecorder) -> Recorder | None:
    """The recorder for the trace arguments, if any; `events` collects events for `show_times`."""
    listening: list[Recorder] = []
    if chosen.print_after is not None:
        only = () if chosen.print_after == ALL else tuple(chosen.print_after.split(","))
        unknown = [name for name in only if name not in pass_names()]
        if unknown:
            raise CommandFailed(f"--print-after: no pass is called {', '.join(unknown)}")
        listening.append(PassPrinter(Console(stderr=True), only))
    if chosen.times:
        listening.append(events)
    return TeeRecorder(tuple(listening)) if listening else None


def show_times(chosen: argparse.Namespace, events: ListRecorder) -> None:
    """Print the table of times, if `--times` was given."""
    if chosen.times:
        Console(stderr=True).print(times_table(events.events))


def listing() -> str:
    """Every pass, with the first line of its docstring."""
    width = max(map(len, pass_names()), default=0)
    lines = [
        f"{name:<{width}}  {(pass_named(name).__doc__ or '').strip().partition(chr(10))[0]}"
        for name in pass_names()
    ]
    return "\n".join(lines)
