"""The command `tilewright`: one module for each subcommand, mistakes without tracebacks."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.support import TilewrightError, settings
from tilewright.tools import (
    cache,
    compile_c,
    compile_kernel,
    demo,
    environment,
    opt,
    run_tile_ir,
    show_pipeline,
)
from tilewright.tools.failure import CommandFailed

FAILED = 1


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand. help: one line; add_arguments, run: of its module."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS = tuple(
    Command(name, help, module.add_arguments, module.run)
    for name, help, module in (
        ("demo", "compile, check and time kernels on this machine", demo),
        ("compile", "compile a kernel and print a stage of it", compile_kernel),
        ("cc", "compile a kernel in Triton-C and print a stage of it", compile_c),
        ("opt", "put tile IR through passes", opt),
        ("run", "execute tile IR with NumPy, every access checked", run_tile_ir),
        ("pipeline", "list the passes of a backend, each with its reason", show_pipeline),
        ("cache", "show or clear the compiled kernels on disk", cache),
        ("env", "show every setting and the variable that sets it", environment),
    )
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit status: 1 for a mistake, which is told on stderr."""
    chosen = parser().parse_args(arguments)
    try:
        status = chosen.run(chosen)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python's own flush at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (TilewrightError, CommandFailed, OSError) as problem:
        if settings().compilation.debug:
            raise
        print(f"tilewright: {_message(problem)}", file=sys.stderr)
        return FAILED


def _message(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror}"
    return str(problem)


def parser() -> argparse.ArgumentParser:
    """All subcommands."""
    top = argparse.ArgumentParser(
        prog="tilewright", description="A compiler for tile-level parallel kernels."
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        own = commands.add_parser(command.name, help=command.help, description=command.help)
        command.add_arguments(own)
        own.set_defaults(run=command.run)
    return top
