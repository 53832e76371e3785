"""`tilewright inspect`: write a page that shows what became of a kernel, from its source to machine
code.

    tilewright inspect FILE.py:kernel 'x_ptr=*fp32:16' n=i32 BLOCK=1024 -o kernel.html
    tilewright inspect FILE.py:kernel ... --target sm_90 --size n=1048576 --grid 1024

Arguments are those of `tilewright explain`. The page is one file that needs no network: source, IR
and machine code linked line by line, the change of every pass, layouts, bank conflicts, schedules,
and a roofline for the sizes of a launch.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tilewright.inspector import inspect_source
from tilewright.tools.command_arguments import duration
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.command_output import check_writable
from tilewright.tools.compile_command import kernel_source, named_values
from tilewright.tools.explain_command import add_kernel_arguments, launch_of, with_kernel
from tilewright.tools.target_names import add_target, target_named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_kernel_arguments(parser, "FILE[:kernel]", "FILE.py, module:kernel, FILE.tile")
    parser.add_argument("--seconds", type=duration, metavar="S",
                        help="measured time of the launch, for the roofline")  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="the page (default: KERNEL.html)")  # fmt: skip
    add_target(parser)


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    sizes, grid = launch_of(chosen)
    if chosen.seconds is not None and grid is None:
        raise CommandFailed("--seconds needs --grid")
    if chosen.output is not None:
        check_writable(chosen.output)
    target = None if chosen.target is None else target_named(chosen.target)
    source = kernel_source(with_kernel(chosen.kernel), chosen.arguments)
    options = named_values(chosen.option)
    made = inspect_source(source, target, options, chosen.output, sizes, grid, chosen.seconds)
    print(f"{made.file}: {made.file.stat().st_size / 1e3:.0f} kB")
    if made.error is not None:
        raise CommandFailed(f"the kernel does not compile, as the page shows\n{made.error}")
    return 0
