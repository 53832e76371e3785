"""`tilewright precompile`: compile variants of kernels before they are launched.

    tilewright precompile spec.toml                     # recorded by TILEWRIGHT_RECORD=spec.toml
    tilewright precompile spec.toml --target sm_90 --jobs 8
    tilewright precompile FILE.py:kernel x=fp16:16 'n=range(1, 1048576)' BLOCK=64,128

The kernels are added to the disk cache. Declarations are those of `kernel.variants`: a range, or a
text of type and facts; commas separate alternatives of constexprs and options.
"""

from __future__ import annotations

import argparse
import re
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import get_context

from tilewright.aot import MAX_COUNT, KernelSpec, kernel_named, precompile, read_spec, variants_of
from tilewright.compiler import is_argument_text
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.compile_command import option_value, pair
from tilewright.tools.target_names import add_target, target_named

_RANGE = re.compile(r"range\((.*)\)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("kernel", metavar="SPEC.toml|KERNEL", help="a spec file, or module:kernel")
    parser.add_argument(
        "declared", nargs="*", metavar="NAME=VALUES", help="values that launches of a kernel pass"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes that compile")
    parser.add_argument("--yes", action="store_true", help=f"also more than {MAX_COUNT} variants")
    add_target(parser)


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    target = None if chosen.target is None else target_named(chosen.target)
    specs = _specs(chosen.kernel, chosen.declared)
    with _executor(chosen.jobs) as executor:
        print(precompile(specs, executor, chosen.yes, target))
    return 0


def _specs(kernel: str, declared: list[str]) -> list[KernelSpec]:
    if kernel.endswith(".toml"):
        if declared:
            raise CommandFailed("a spec file declares all arguments of its kernels")
        return read_spec(kernel)
    place, colon, name = kernel.rpartition(":")
    if not colon:
        raise CommandFailed(f"expected SPEC.toml, module:kernel or FILE.py:kernel, found {kernel}")
    values = {key: _declared(text) for key, text in map(pair, declared)}
    return variants_of(kernel_named(place, name), values)


def _declared(text: str) -> object:
    """A declaration: a range, a type with facts, or alternatives."""
    numbers = _RANGE.fullmatch(text.strip())
    if numbers is not None:
        parts = [option_value(part.strip()) for part in numbers[1].split(",")]
        is_range = all(isinstance(part, int) for part in parts) and 1 <= len(parts) <= 3
        if not is_range or 0 in parts[2:]:  # a step of 0
            raise CommandFailed(f"expected range(START, STOP), found '{text}'")
        return range(*(int(str(part)) for part in parts))
    if is_argument_text(text):
        return text
    values = [option_value(part) for part in text.split(",")]
    return values if len(values) > 1 else values[0]


def _executor(jobs: int) -> AbstractContextManager[Executor | None]:
    # spawned: a compiler that has started threads cannot be forked
    return nullcontext() if jobs <= 1 else ProcessPoolExecutor(jobs, get_context("spawn"))
