"""`tilewright cc`: a kernel in Triton-C to any stage of a target.

    tilewright cc matmul.c -DTM=64 -DTN=64 -DTK=32 -DTYPE=half --target sm_90 --emit ptx

`--multiple NAME=16` promises that an integer is a multiple of 16, or that a pointer is aligned to
16 bytes, where the source does not say so; a launch finds that out by itself.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from tilewright.tools.compile_kernel import add_output_arguments, emit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a source in Triton-C; - reads standard input"
    )
    parser.add_argument(
        "-D", dest="defines", action="append", default=[], metavar="NAME[=TEXT]",
        help="define a macro, as 1 unless a text is given",
    )  # fmt: skip
    parser.add_argument("--kernel", metavar="NAME", help="which kernel, if there are several")
    parser.add_argument("--multiple", action="append", default=[], metavar="NAME=N",
                        help="a parameter is a multiple of N, or aligned to N bytes")  # fmt: skip
    add_output_arguments(parser)


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    # Loaded late: the front end needs lark and pcpp, 70 ms that other commands do without.
    return emit(
        chosen, lambda: importlib.import_module("tilewright.tools.c_source").source_of(chosen)
    )
