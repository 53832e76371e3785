"""The command `tilewright`: dispatch to subcommands, user mistakes without tracebacks.

Options and positional arguments of a subcommand may be in any order: the first word names the
subcommand, whose parser gets the rest at once, which nested parsers of `argparse` cannot do.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from tilewright.support import TilewrightError, errors, settings
from tilewright.support.data_class import dataclass
from tilewright.support.version import __version__
from tilewright.tools import (
    as_triton_command,
    build_command,
    cache_command,
    cc_command,
    compile_command,
    demo_command,
    env_command,
    explain_command,
    explain_error_command,
    inspect_command,
    opt_command,
    pipeline_command,
    precompile_command,
    profile_command,
    run_command,
    run_script_command,
    tuning_command,
)
from tilewright.tools.command_failure import CommandFailed

FAILED = 1
INTERRUPTED = 130
"""The exit status that shells report after Ctrl-C: 128 + SIGINT."""


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand. help: one line; add_arguments, run: of its module.

    join_words: joins words that a shell split, before the arguments are parsed.
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    join_words: Callable[[Sequence[str]], Sequence[str]]


def command_of(name: str, help: str, module: Any) -> Command:
    """The subcommand of a module of this package, which has `add_arguments` and `run`."""
    join_words = getattr(module, "join_words", list)
    return Command(name, help, module.add_arguments, module.run, join_words)


COMMANDS = tuple(
    command_of(name, help, module)
    for name, help, module in (
        ("demo", "compile, check and time kernels on this machine", demo_command),
        ("compile", "compile a kernel and print a stage of it", compile_command),
        ("cc", "compile a kernel in Triton-C and print a stage of it", cc_command),
        (
            "explain",
            "show how a kernel was lowered, and why; or an error's page",
            explain_command,
        ),
        ("inspect", "write a page that shows what became of a kernel", inspect_command),
        ("explain-error", "say what an error code means, with an example", explain_error_command),
        ("opt", "put tile IR through passes", opt_command),
        ("run", "execute tile IR with NumPy, every access checked", run_command),
        (
            "run-script",
            "run a script in which `import triton` imports Tilewright",
            run_script_command,
        ),
        ("profile", "run a script, and show which lines of kernels cost most", profile_command),
        (
            "as-triton",
            "install Tilewright by the name of Triton",
            as_triton_command,
        ),
        (
            "build",
            "compile a spec file to C source for other programs",
            build_command,
        ),
        ("pipeline", "list the passes of a backend, and what each does", pipeline_command),
        ("precompile", "compile variants of kernels before they are launched", precompile_command),
        ("cache", "list, clear, export or import compiled kernels", cache_command),
        (
            "tuning",
            "list timings of autotuned kernels, or make tables",
            tuning_command,
        ),
        ("env", "show every setting and the variable that sets it", env_command),
    )
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit status: 1 for a mistake, which is printed on stderr."""
    _open_closed_streams()
    chosen = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        status = chosen.run(chosen)
        # Here rather than at exit, so that a closed pipe is noticed inside the `try`.
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader of the pipe has closed it.
        _drop_output()
        return FAILED
    except KeyboardInterrupt:
        # Debug mode shows the traceback.
        if settings().compilation.debug:
            raise
        print("tilewright: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (TilewrightError, CommandFailed, OSError) as problem:
        if settings().compilation.debug:
            raise
        print(f"tilewright: {_message(problem)}", file=sys.stderr)
        if isinstance(problem, OSError):
            _drop_output()
        return FAILED


def _open_closed_streams() -> None:
    """Open the standard streams that a shell has closed (`>&-`), which are None in Python."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _drop_output() -> None:
    """Drop unwritten output, as to a full disk, so that flushing it at exit does not fail again."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments of a subcommand and its `run`; mistakes and --help raise SystemExit."""
    top, own = parsers()
    if not arguments or arguments[0] not in own:
        top.parse_args(arguments)  # --help, --version, or an error that names the subcommands
        top.error("the first argument names a COMMAND")
    command = next(command for command in COMMANDS if command.name == arguments[0])
    parser, words = own[command.name], command.join_words(arguments[1:])
    # First, since argparse reports a missing FILE before it names a misspelt option.
    if unknown := unknown_options(command, words):
        parser.error(
            f"unrecognized arguments: {' '.join(unknown)}{_closest_option(parser, unknown)}"
        )
    # Intermixed: options may stand between the positional arguments.
    return parser.parse_intermixed_args(words)


class _LenientParser(argparse.ArgumentParser):
    """Parse the options of a subcommand, with any number of positional arguments."""

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        """Add an argument, optional if it is positional."""
        lenient: dict[str, Any] = kwargs if args[0].startswith("-") else {"nargs": "*"}
        return super().add_argument(*args, **lenient)


def unknown_options(command: Command, words: Sequence[str]) -> list[str]:
    """Words that look like options, but not of the subcommand."""
    parser = _LenientParser(prog=f"tilewright {command.name}", add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    command.add_arguments(parser)
    _, rest = parser.parse_known_args(words)
    # What follows `--` is positional; `-` is standard input, and `-1` a number.
    options = rest[: rest.index("--")] if "--" in rest else rest
    return [word for word in options if re.match("--|-[A-Za-z]", word)]


def _closest_option(parser: argparse.ArgumentParser, unknown: Sequence[str]) -> str:
    """The options that the first unknown word resembles, as a question."""
    options = re.findall(r"--[a-z][a-z-]*", parser.format_help())
    question = errors.did_you_mean(unknown[0].partition("=")[0], dict.fromkeys(options))
    return f"; {question}" if question else ""


def _message(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror}"
    return str(problem)


def parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The main parser, with names and help, and the parsers of the subcommands by name."""
    top = argparse.ArgumentParser(
        prog="tilewright", description="A compiler for tile-level parallel kernels."
    )
    top.add_argument("--version", action="version", version=version_text())
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    own: dict[str, argparse.ArgumentParser] = {}
    for command in COMMANDS:
        own[command.name] = commands.add_parser(
            command.name, help=command.help, description=command.help
        )
        command.add_arguments(own[command.name])
        own[command.name].set_defaults(run=command.run)
    return top, own


def version_text() -> str:
    """The versions to name in a bug report."""
    llvmlite, python = version("llvmlite"), platform.python_version()
    return f"tilewright {__version__} (llvmlite {llvmlite}, Python {python})"
