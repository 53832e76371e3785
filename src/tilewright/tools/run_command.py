"""`tilewright run`: execute tile IR with NumPy, with all accesses checked, on given or generated
arrays.

    tilewright run kernel.tile x.npy random:1024 zeros:1024 1024 --grid 4 --save out

Each argument of the function gets a number, an array in an .npy file, or `zeros:SHAPE`,
`ones:SHAPE`, `range:SHAPE` or `random:SHAPE` with a shape such as 64x32; the elements are of the
type that the parameter points to.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import cast
from zipfile import BadZipFile

import numpy as np
from rich.console import Console

from tilewright.interp import Array, numpy_dtype, run_function
from tilewright.ir import Function, Value, valid_kernel
from tilewright.ir.types import PointerType
from tilewright.support.asynchronous_exceptions import suppress
from tilewright.tools.command_arguments import natural
from tilewright.tools.command_failure import CommandFailed
from tilewright.tools.read_tile_ir import read_module

Argument = Array | int | float | bool
_LONGEST_NUMBER = 1000
"""Characters of a number; Python rejects integers of more than 4300 digits."""

_ARRAYS = "X.npy, or zeros:, ones:, range: or random:SHAPE, such as random:64x32"
"""The forms of an argument that is an array."""
_MADE_UP = re.compile(r"(zeros|ones|range|random):(\d+(?:x\d+)*)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="tile IR; - reads standard input")
    parser.add_argument(
        "arguments", nargs="*", metavar="ARG",
        help=f"a number, {_ARRAYS}",
    )  # fmt: skip
    parser.add_argument("--grid", default="1", metavar="X,Y,Z", help="extents of the grid")
    parser.add_argument("--pid", metavar="X,Y,Z", help="run only this program instance")
    parser.add_argument("--seed", type=natural, default=0, help="of random arrays")
    parser.add_argument("--save", type=Path, metavar="DIR", help="write changed arrays as .npy")


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    function = valid_kernel(read_module(chosen.file))
    if len(chosen.arguments) != len(function.args):
        takes = ", ".join(f"{arg.name}: {arg.type}" for arg in function.args)
        raise CommandFailed(
            f"@{function.name} takes {len(function.args)} arguments, found "
            f"{len(chosen.arguments)}: {takes}"
        )
    rng = np.random.default_rng(chosen.seed)
    pairs = zip(function.args, chosen.arguments, strict=True)
    args = [_argument(parameter, text, rng) for parameter, text in pairs]
    before = [np.copy(arg) if isinstance(arg, np.ndarray) else None for arg in args]
    pid = None if chosen.pid is None else _extents(chosen.pid)
    grid = _extents(chosen.grid)
    if 0 in grid:
        print(f"tilewright: --grid {chosen.grid} has no programs: nothing ran", file=sys.stderr)
    run_function(function, args, grid, pid=pid)
    _report(function, args, before, chosen.save)
    return 0


def _argument(parameter: Value, text: str, rng: np.random.Generator) -> Argument:
    type_ = parameter.type
    if not isinstance(type_, PointerType):
        return _number(text)
    made_up = _MADE_UP.fullmatch(text)
    if made_up is None:
        kind, colon, _ = text.partition(":")
        if colon and kind.isidentifier() and not Path(text).exists():
            raise CommandFailed(f"'{text}' is no array: write {_ARRAYS}")
        return _loaded(text)
    try:
        shape = tuple(map(int, made_up[2].split("x")))
        return _generated(made_up[1], shape, rng).astype(numpy_dtype(type_.element))
    except (ValueError, MemoryError):
        raise CommandFailed(f"not enough memory for {text}") from None


def _loaded(file: str) -> Array:
    try:
        array: object = np.load(file)
    except (ValueError, EOFError, BadZipFile):
        array = None
    if not isinstance(array, np.ndarray):
        raise CommandFailed(f"{file} is not an array in NumPy's format (.npy)")
    return cast("Array", array)


def _generated(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    match kind:
        case "zeros":
            return np.zeros(shape)
        case "ones":
            return np.ones(shape)
        case "range":
            return np.arange(np.prod(shape)).reshape(shape)
        case _:
            return rng.standard_normal(shape)


def _number(text: str) -> int | float:
    for read in (lambda: int(text, 0), lambda: float(text)):
        with suppress(ValueError):
            # Longer ones raise errors about Python's settings instead of the argument.
            if len(text) <= _LONGEST_NUMBER:
                return read()
    raise CommandFailed(f"expected a number, found '{text[:_LONGEST_NUMBER]}'")


def _extents(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise CommandFailed(f"expected numbers such as 4,1,1, found '{text}'") from None


def _report(
    function: Function, args: list[Argument], before: list[Array | None], folder: Path | None
) -> None:
    """Print, and save, every array that has changed."""
    console = Console()
    for parameter, arg, old in zip(function.args, args, before, strict=True):
        # Bytes, since NaN differs from itself and 0.0 equals -0.0.
        if old is None or not isinstance(arg, np.ndarray) or arg.tobytes() == old.tobytes():
            continue
        console.print(f"{parameter.name}: {arg.dtype} {arg.shape}", highlight=False)
        console.print(np.array2string(arg, threshold=64, edgeitems=4), highlight=False)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / f"{parameter.name}.npy", arg)
