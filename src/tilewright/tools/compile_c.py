"""`tilewright cc`: a kernel in Triton-C to any stage of a target.

    tilewright cc matmul.c -DTM=64 -DTN=64 -DTK=32 -DTYPE=half --target sm_90 --emit ptx

`--multiple NAME=16` promises that an integer is a multiple of 16, or that a pointer is aligned to
16 bytes, where the source does not say so; a launch finds that out by itself.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from tilewright.compiler import compile
from tilewright.support import ListRecorder, recording, settings
from tilewright.tools.compile_kernel import option_value, pair, stages_of, write_artifact
from tilewright.tools.failure import CommandFailed
from tilewright.tools.opt import add_trace_arguments, recorder, show_times
from tilewright.tools.targets import add_target, target_named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a source in Triton-C")
    parser.add_argument(
        "-D", dest="defines", action="append", default=[], metavar="NAME[=TEXT]",
        help="define a macro, as 1 unless a text is given",
    )  # fmt: skip
    parser.add_argument("--kernel", metavar="NAME", help="which kernel, if there are several")
    parser.add_argument(
        "--emit", default="ttir", metavar="STAGE",
        help="source, ttir (default), or any later stage of the target, such as llir, ptx or asm",
    )  # fmt: skip
    parser.add_argument("--multiple", action="append", default=[], metavar="NAME=N",
                        help="a parameter is a multiple of N, or aligned to N bytes")  # fmt: skip
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                        help="an option of the target, such as num_warps=8")  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to a file")
    add_target(parser)
    add_trace_arguments(parser)


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    target = None if chosen.target is None else target_named(chosen.target)
    stages = stages_of(target)
    if chosen.emit not in stages:
        raise CommandFailed(f"--emit takes one of {', '.join(stages)}, not {chosen.emit}")
    # Loaded late: the front end needs lark and pcpp, 70 ms that other commands do without.
    source = importlib.import_module("tilewright.tools.c_source").source_of(chosen)
    options = {name: option_value(text) for name, text in map(pair, chosen.option)}
    events = ListRecorder()
    with settings().cache.scope(always_compile=True), recording(recorder(chosen, events)):
        kernel = compile(source, target, options)
        artifact = kernel.asm[chosen.emit]
    write_artifact(artifact, chosen.output, kernel)
    show_times(chosen, events)
    return 0
