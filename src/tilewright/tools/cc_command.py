"""`tilewright cc`: compile a kernel in Triton-C (package `tilewright.c`) to any stage of a target.

    tilewright cc matmul.c -DTM=64 -DTN=64 -DTK=32 -DTYPE=half --target sm_90 --emit ptx

A list of values, as in `-DTM=[32, 64]`, makes one variant of the kernel for each, and several lists
one for each combination; each is printed under a comment that names it, or written to a separate
file: `-o dot.ptx` gives `dot-TM=32.ptx` and `dot-TM=64.ptx`.

`--multiple NAME=16` promises that an integer is a multiple of 16, or that a pointer is aligned to
16 bytes, where the source does not declare it; launches detect it.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path

from tilewright.tools.compile_command import add_output_arguments, emit_variants


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a source in Triton-C; - reads standard input"
    )
    parser.add_argument(
        "-D", dest="defines", action="append", default=[], metavar="NAME[=TEXT]",
        help="define a macro, as 1 unless a text is given; [A, B] makes a variant for each",
    )  # fmt: skip
    parser.add_argument("--kernel", metavar="NAME", help="which kernel, if there are several")
    parser.add_argument("--multiple", action="append", default=[], metavar="NAME=N",
                        help="a parameter is a multiple of N, or aligned to N bytes")  # fmt: skip
    add_output_arguments(parser)


def join_words(words: Sequence[str]) -> list[str]:
    """Join the words of a list of values on a command line.

    A shell splits `-DSIZE=[32, 64]` unless it is quoted.
    """
    joined: list[str] = []
    for word in words:
        if joined and _opens_list(joined):
            joined[-1] += f" {word}"
        else:
            joined.append(word)
    return joined


def _opens_list(words: Sequence[str]) -> bool:
    """Whether the last word is a definition whose list is still open."""
    last = words[-1]
    is_definition = last.startswith("-D") or words[-2:-1] == ["-D"]
    _, _, value = last.partition("=")
    return is_definition and value.startswith("[") and value.count("[") > value.count("]")


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    # Imported late: the front end needs lark and pcpp, 70 ms that other commands save.
    return emit_variants(
        chosen,
        lambda: importlib.import_module("tilewright.tools.read_c_source").variants_of(chosen),
    )
