"""`tilewright explain`: explain how a kernel was lowered, line by line, and what limits it; or what
an error code means.

    tilewright explain FILE.py:kernel 'x_ptr=*fp32:16' n=i32 BLOCK=1024
    tilewright explain FILE.py:kernel 'x_ptr=*fp32:16' n=i32 BLOCK=1024 --target sm_90
    tilewright explain tilewright.kernels.matmul:matmul_kernel ... --size M=4096 --size N=4096 \\
        --size K=4096 --grid 1024
    tilewright explain TW104

Without --target the kernel is compiled for this machine. Arguments are those of `tilewright
compile`; the name of a file's only kernel may be omitted. With the sizes of a launch, its work is
compared with the limits of a device. No GPU is needed.
"""

from __future__ import annotations

import argparse
import re
from typing import cast

from tilewright.aot import only_kernel_of
from tilewright.compiler import compile
from tilewright.tools import explain_error_command
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.command_output import add_json, print_json, terminal_columns
from tilewright.tools.compile_command import kernel_source, named_values
from tilewright.tools.target_names import add_target, target_named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_kernel_arguments(
        parser,
        "FILE[:kernel]|TWnnn",
        "FILE.py, module:kernel, FILE.tile; or the code of an error, such as TW104",
    )
    add_target(parser)
    add_json(parser)


def add_kernel_arguments(parser: argparse.ArgumentParser, metavar: str, help: str) -> None:
    """Add a kernel with its arguments, options and the sizes of a launch."""
    parser.add_argument("kernel", metavar=metavar, help=help)
    parser.add_argument(
        "arguments", nargs="*", metavar="NAME=TYPE|VALUE", help="types and constexprs of a kernel"
    )
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE",
                        help="an option of the target, such as num_warps=8")  # fmt: skip
    parser.add_argument("--size", action="append", default=[], metavar="NAME=VALUE",
                        help="the value of an integer argument, for --grid")  # fmt: skip
    parser.add_argument("--grid", metavar="X[,Y[,Z]]",
                        help="programs of a launch, to judge its work")  # fmt: skip


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    if re.fullmatch(r"TW\d+", chosen.kernel, re.IGNORECASE):
        return explain_error_command.show_page(chosen.kernel)
    sizes, grid = launch_of(chosen)
    target = None if chosen.target is None else target_named(chosen.target)
    source = kernel_source(with_kernel(chosen.kernel), chosen.arguments)
    explanation = compile(source, target, named_values(chosen.option)).explain(sizes, grid)
    if chosen.json:
        print_json(explanation.as_json())
    else:
        print(explanation.text(terminal_columns()))
    return 0


def launch_of(chosen: argparse.Namespace) -> tuple[dict[str, int], tuple[int, ...] | None]:
    """The sizes of a launch and its grid. Errors: CommandFailed."""
    sizes, grid = _sizes(chosen.size), _grid(chosen.grid)
    if sizes and grid is None:
        raise CommandFailed("--size needs --grid")
    return sizes, grid


def with_kernel(name: str) -> str:
    """Complete FILE.py to FILE.py:kernel for a file with one kernel."""
    return f"{name}:{only_kernel_of(name)}" if name.endswith(".py") else name


def _sizes(words: list[str]) -> dict[str, int]:
    sizes = named_values(words)
    for name, value in sizes.items():
        if type(value) is not int:
            raise CommandFailed(f"--size {name} takes an integer, found '{value}'")
    return cast("dict[str, int]", sizes)


def _grid(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise CommandFailed(f"--grid takes one to three integers, found '{text}'") from None
