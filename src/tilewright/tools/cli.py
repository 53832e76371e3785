"""The command `tilewright`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit status."""
    chosen = _parser().parse_args(arguments)
    return chosen.run(chosen)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilewright", description="A compiler for tile-level parallel kernels."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="compile, check and time kernels on this machine")
    demo.add_argument("--json", type=Path, metavar="FILE", help="also write the table as JSON")
    demo.add_argument("--plot", type=Path, metavar="DIR", help="also write bar charts as PNG")
    demo.set_defaults(run=_demo)
    return parser


def _demo(chosen: argparse.Namespace) -> int:
    from tilewright.tools.demo import run_demo  # noqa: PLC0415 -- `--help` needs no NumPy

    return run_demo(chosen.json, chosen.plot)
