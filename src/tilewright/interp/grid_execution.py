"""Execution of a function of tile IR over a grid: the reference for passes and back ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.interp.concrete_value import ConcreteValue
from tilewright.interp.interpreter import Interpreter, program_ids
from tilewright.interp.kernel_memory import Memory, address_of
from tilewright.interp.numpy_dtypes import NUMPY_DTYPES, Array, numpy_dtype
from tilewright.interp.program_state import Grid, Machine, ProgramStopped, write_to_stdout
from tilewright.interp.rounding import round_float
from tilewright.ir import Function, Value
from tilewright.ir.types import DType, PointerType
from tilewright.ops import Sign
from tilewright.support import errors, normal_grid
from tilewright.support.asynchronous_exceptions import suppress

Argument = Array | int | float | bool


def run_function(
    function: Function,
    args: Sequence[Argument],
    grid: tuple[int, ...] = (1,),
    *,
    pid: tuple[int, ...] | None = None,
    write: Callable[[str], object] = write_to_stdout,
) -> None:
    """Run every program instance of a grid (1 to 3 extents), or only `pid`; arrays change in place.

    args: an array for each pointer parameter, with elements of the pointer's width (they are
    interpreted in the pointer's type); a number for each scalar; write: receives the output of the
    kernel

    Errors: UnsupportedArgument, ArgumentCount, and the errors of the kernel (OutOfBounds,
    DeviceAssertionFailure, ...), located where the op has a location.
    """
    if len(args) != len(function.args):
        raise errors.ArgumentCount(function.name, len(function.args), len(args))
    machine = Machine(Memory(function.name), normal_grid(grid), write=write)
    pairs = zip(function.args, args, strict=True)
    values = [_argument(machine.memory, parameter, arg) for parameter, arg in pairs]

    def run_program() -> None:
        with suppress(ProgramStopped):
            Interpreter(machine).run_block(function.body, values)

    machine.run(program_ids(machine.grid, None if pid is None else program_id(pid)), run_program)


def program_id(numbers: tuple[int, ...]) -> Grid:
    """Extend one to three numbers to three. Errors: BadGrid."""
    if not 1 <= len(numbers) <= 3 or min(numbers) < 0:
        raise errors.BadGrid(numbers, "is not one to three numbers that are not negative")
    x, y, z = (*numbers, 0, 0)[:3]
    return x, y, z


def array_value(memory: Memory, name: str, array: Array, type_: PointerType) -> ConcreteValue:
    """A pointer to the first element of an array, which is added to the memory."""
    root = memory.add(name, array)
    return ConcreteValue(type_, np.array(address_of(array), np.uint64), root, name)


def scalar_value(name: str, value: float, type_: DType) -> ConcreteValue:
    """A number as a scalar of some type; floats past its largest become infinite."""
    with np.errstate(over="ignore"):
        data = np.array(value)
        data = round_float(data, type_) if type_.is_fp8 else data.astype(NUMPY_DTYPES[type_])
    scalar = ConcreteValue(type_, data, None, name)
    # as in compiled code, which has a variant for each sign of its arguments
    scalar.sign = Sign.NON_NEGATIVE if value >= 0 else Sign.UNKNOWN
    return scalar


def _argument(memory: Memory, parameter: Value, arg: Argument) -> ConcreteValue:
    type_, name = parameter.type, parameter.name or "?"
    if isinstance(type_, PointerType):
        expected = numpy_dtype(type_.element)
        # by width, not dtype: NumPy has no bf16, so callers may pass uint16
        if isinstance(arg, np.ndarray) and arg.dtype.itemsize == expected.itemsize:
            return array_value(memory, name, arg, type_)
        instead = f"pass an array of {expected}"
        raise errors.UnsupportedArgument(name, _described(arg), instead)
    if isinstance(type_, DType) and not isinstance(arg, np.ndarray):
        return scalar_value(name, arg, type_)
    raise errors.UnsupportedArgument(name, _described(arg), f"pass a number for {type_}")


def _described(arg: Argument) -> str:
    return f"{arg.dtype} array" if isinstance(arg, np.ndarray) else type(arg).__name__
