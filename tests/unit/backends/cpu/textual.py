"""Compiles and runs functions written as tile IR text, as they stand or through the pipeline."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.backends.cpu.driver.cpu_launcher import CpuLauncher
from tilewright.backends.cpu.lower.cpu_function import LoweredKernel, lower_function
from tilewright.backends.cpu.microkernel import vector_unit
from tilewright.backends.cpu.passes.legalize import Legalize
from tilewright.backends.cpu.passes.select_transposes import SelectTransposes
from tilewright.interp import run_function
from tilewright.ir import Function, parse_module, verify
from tilewright.llvm import compile_ir, host_cpu, host_target

Array = npt.NDArray[Any]
Argument = Array | int | float


def function_of(text: str) -> Function:
    """The only function of a text, which is valid."""
    function = parse_module(text).kernel
    assert not verify(function), verify(function)
    return function


def strided_offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> str:
    """IR of a tile %at, where the elements of an array with these strides are."""
    sizes = "x".join(map(str, shape))
    lines = [f"%at0 = arith.constant {{value = 0}} : tile<{sizes}xi32>"]
    for d, extent in enumerate(shape):
        lines.append(f"%r{d}_0 = tile.range {{start = 0, end = {extent}}} : tile<{extent}xi32>")
        current, name = [extent], f"%r{d}_0"
        for axis in (a for a in range(len(shape)) if a != d):
            current.insert(axis, 1)
            kind = "x".join(map(str, current))
            new = f"%r{d}_{axis + 1}"
            lines.append(f"{new} = tile.expand_dims {name} {{axis = {axis}}} : tile<{kind}xi32>")
            name = new
        total = f"%at{d + 1}" if d + 1 < len(shape) else "%at"
        lines += [
            f"%b{d} = tile.broadcast {name} {{shape = {list(shape)}}} : tile<{sizes}xi32>",
            f"%c{d} = arith.constant {{value = {strides[d]}}} : tile<{sizes}xi32>",
            f"%m{d} = arith.mul %b{d}, %c{d} : tile<{sizes}xi32>",
            f"{total} = arith.add %at{d}, %m{d} : tile<{sizes}xi32>",
        ]
    return "\n".join(lines)


def lowered(text: str, stream_above: int = 0, fetch_above: int = 0) -> LoweredKernel:
    """LLVM IR for this machine, without the shared passes."""
    function = function_of(text)
    cpu = host_cpu()
    Legalize(cpu.has_fma, cpu.dots, cpu.tile_dots, cpu.has_avx512, cpu.rounds_to_bf16).run(function)
    SelectTransposes().run(function)
    attributes = cpu.function_attributes
    limits = stream_above, fetch_above
    return lower_function(function, vector_unit(cpu), attributes, True, *limits)


@lru_cache(maxsize=8)
def compiled(text: str) -> bytes:
    """The object file; a test runs what it has for several arguments."""
    return compile_ir(text, host_target())


def run(
    text: str, args: list[Argument], grid: tuple[int, ...] = (1,), stream_above: int = 0,
    fetch_above: int = 0,
) -> None:  # fmt: skip
    """Run the compiled function; arrays change in place. Errors: DeviceAssertionFailure."""
    kernel = lowered(text, stream_above, fetch_above)
    metadata: dict[str, object] = {"name": kernel.symbol, "scratch_bytes": kernel.scratch_bytes}
    types = [str(arg.type) for arg in function_of(text).args]
    launcher = CpuLauncher(compiled(kernel.text), metadata, types)
    values = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in args]
    x, y, z = (*grid, 1, 1)[:3]
    launcher.launch((x, y, z), values)


def assert_as_interpreted(
    text: str, args: list[Argument], grid: tuple[int, ...] = (1,), tolerance: float = 0.0
) -> None:
    """Run the function compiled and interpreted, and compare the arrays."""
    copies = [[a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2)]
    run_function(function_of(text), copies[0], grid)
    run(text, copies[1], grid)
    for expected, found in zip(*copies, strict=True):
        if isinstance(expected, np.ndarray):
            np.testing.assert_allclose(
                np.asarray(found, np.float64), np.asarray(expected, np.float64), atol=tolerance,
                rtol=0,
            )  # fmt: skip
