"""Read tile IR from a file or standard input, and verify it."""

from __future__ import annotations

import sys
from pathlib import Path

from tilewright.backends import load_ops
from tilewright.ir import Module, parse_module, report
from tilewright.tools.command_failure import CommandFailed

STDIN = "-"


def read_text(file: str) -> str:
    """The text of a file, or of standard input for `-`. Raises OSError, CommandFailed."""
    try:
        return sys.stdin.read() if file == STDIN else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CommandFailed(f"{file} is not UTF-8 text") from None


def read_module(file: str) -> Module:
    """The module in a file, `-` for standard input.

    Errors: OSError; TileIRSyntaxError with the location; CommandFailed for IR that is not valid.
    """
    load_ops()
    name = "<stdin>" if file == STDIN else file
    module = parse_module(read_text(file), name, locate=True)
    reports = [text for function in module.functions.values() if (text := report(function))]
    if reports:
        raise CommandFailed("\n".join([f"{name} holds invalid tile IR:", *reports]))
    return module
