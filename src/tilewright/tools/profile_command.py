"""`tilewright profile`: run a script, write a trace, and print which lines of kernels cost most.

    tilewright profile -o trace.json train.py --steps 10

The trace has launches, compilations with their stages, kernels from the disk cache and tunings;
https://ui.perfetto.dev and chrome://tracing show it. On CPUs the lines are sampled; on GPUs
`cupti-python` gives the time of each kernel.
"""

from __future__ import annotations

import argparse
import linecache
import sys
from contextlib import ExitStack
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from tilewright.backends import backend_named, default_backend
from tilewright.runtime import LaunchTrace, profiled_launches
from tilewright.support import KernelProfiler, LineCost
from tilewright.tools.command_arguments import positive
from tilewright.tools.command_output import check_writable, print_table
from tilewright.tools.user_script import add_script, check_script, join_after_file, run_script
from tilewright.triton_alias import as_triton


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    _add_options(parser)
    add_script(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("profile.json"), metavar="TRACE",
        help="the file of the trace (default: profile.json)",
    )  # fmt: skip
    parser.add_argument(
        "--top", type=positive, default=15, metavar="N", help="how many lines to print (15)"
    )
    parser.add_argument(
        "--ranges", action="store_true",
        help="also make launches ranges of NVTX and torch.profiler, as for nsys",
    )  # fmt: skip


def join_words(words: list[str]) -> list[str]:
    """Join the words after the file, which are the script's arguments, into one."""
    parser = argparse.ArgumentParser(prog="tilewright profile", add_help=False)
    _add_options(parser)
    parser.add_argument("script", nargs=argparse.REMAINDER)
    script = parser.parse_known_args(words)[0].script
    return [*words[: len(words) - len(script)], *join_after_file(script)]


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    check_script(chosen)
    check_writable(chosen.output)
    as_triton()
    trace, profilers = LaunchTrace(), list[KernelProfiler]()
    try:
        with ExitStack() as stack:
            if chosen.ranges:
                stack.enter_context(profiled_launches())
            stack.enter_context(trace)
            profilers += [stack.enter_context(one) for one in _profilers(trace)]
            return run_script(chosen)
    finally:  # also after SystemExit, with which scripts end
        sys.stdout.flush()
        trace.write(chosen.output, (event for one in profilers for event in one.events))
        _report(trace, profilers, chosen)


def _profilers(trace: LaunchTrace) -> list[KernelProfiler]:
    """The profilers of the CPU and of this machine's default backend."""
    names = dict.fromkeys(("cpu", default_backend().name))
    makers = [backend_named(name).profiler for name in names]
    return [make(trace.locations) for make in makers if make is not None]


def _report(
    trace: LaunchTrace, profilers: list[KernelProfiler], chosen: argparse.Namespace
) -> None:
    costs = [cost for one in profilers for cost in one.costs]
    total = sum(cost.seconds for cost in costs)
    if costs:
        print_table(_table(costs[: chosen.top], total))
    elsewhere = sum(one.elsewhere for one in profilers)
    print(f"{total:.3g} s in kernels, {elsewhere:.3g} s of CPU time in other code")
    for note in filter(None, (one.note for one in profilers)):
        print(f"({note})")
    print(f"{len(trace.events)} events are in {chosen.output}; ui.perfetto.dev shows them")


def _table(costs: list[LineCost], total: float) -> Table:
    table = Table()
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    # the symbols of other libraries' kernels have hundreds of characters
    table.add_column("line", overflow="ellipsis", no_wrap=True, max_width=48)
    table.add_column("source", overflow="ellipsis", no_wrap=True, ratio=1)
    for cost in costs:
        name = cost.kernel.partition(" (")[0]
        place = f"{Path(cost.file).name}:{cost.line}" if cost.line else f"{name}, no line"
        text = linecache.getline(cost.file, cost.line).strip() if cost.line else ""
        share = f"{cost.seconds / total:.1%}"
        table.add_row(share, f"{cost.seconds * 1e3:,.3f}", escape(place), escape(text))
    return table
