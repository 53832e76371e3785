"""Runs one element-wise expression three ways: interpreted, prepared and interpreted, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.backends.cpu.driver.cpu_launcher import CpuLauncher
from tilewright.backends.cpu.lower.cpu_function import lower_function
from tilewright.backends.cpu.microkernel import vector_unit
from tilewright.backends.cpu.passes.legalize import Legalize
from tilewright.interp import numpy_dtype, run_function
from tilewright.ir import Function, parse_module
from tilewright.ir.types import dtype_named
from tilewright.llvm import compile_ir, host_cpu, host_target

Array = npt.NDArray[Any]
BLOCK = 1024


def kernel(body: str, sources: tuple[str, ...], target: str, block: int = BLOCK) -> str:
    """Text of a function: %x0, %x1 ... are loaded from arrays of `sources`, `%y` is stored.

    In `body` stands {t} for `tile<BLOCKx`, so that a type is written `{t}f32>`.
    """
    count = len(sources)
    parameters = ", ".join(f"%X{i}: ptr<{s}>" for i, s in enumerate(sources))
    lines = [
        f"func @k({parameters}, %Y: ptr<{target}>) {{",
        "%pid = cf.program_id {axis = 0} : i32",
        f"%size = arith.constant {{value = {block}}} : i32",
        "%start = arith.mul %pid, %size : i32",
        f"%index = tile.range {{start = 0, end = {block}}} : tile<{block}xi32>",
    ]
    for name, element in (*((f"X{i}", s) for i, s in enumerate(sources)), ("Y", target)):
        lines += [
            f"%base{name} = mem.offset %{name}, %start : ptr<{element}>",
            f"%all{name} = tile.splat %base{name} {{shape = [{block}]}}"
            f" : tile<{block}xptr<{element}>>",
            f"%at{name} = mem.offset %all{name}, %index : tile<{block}xptr<{element}>>",
        ]
    for i in range(count):
        lines.append(f"%x{i} = mem.load %atX{i} : tile<{block}x{sources[i]}>")
    lines += [body.replace("{t}", f"tile<{block}x"), "mem.store %atY, %y", "cf.return", "}"]
    return "\n".join(lines)


def parsed(text: str) -> Function:
    return parse_module(text).kernel


def prepared(
    text: str, fma: bool = True, avx512: bool = False, rounds_bf16: bool = False
) -> Function:
    function = parsed(text)
    Legalize(fma, avx512=avx512, rounds_bf16=rounds_bf16).run(function)
    return function


def interpreted(function: Function, target: str, *arrays: Array, block: int = BLOCK) -> Array:
    """What the function computes according to the NumPy rules."""
    result = np.empty(arrays[0].shape, numpy_dtype(dtype_named(target)))
    run_function(function, [*arrays, result], (arrays[0].size // block,))
    return result


def compiled(
    text: str, target: str, fma: bool = True, block: int = BLOCK, avx512: bool | None = None,
    rounds_bf16: bool = host_cpu().rounds_to_bf16,
) -> Callable[..., Array]:  # fmt: skip
    """The machine code of the prepared function, as a function of arrays.

    Without `fma`, products and sums are rounded one by one, as on a machine that cannot fuse them;
    avx512, rounds_bf16: by its instructions for parts of floats and for bf16, by default where
    this machine has them
    """
    cpu = host_cpu()
    parts = cpu.has_avx512 and fma if avx512 is None else avx512
    function = prepared(text, fma, parts, rounds_bf16)
    lowered = lower_function(function, vector_unit(cpu), cpu.function_attributes, contract=fma)
    obj = compile_ir(lowered.text, host_target())
    metadata = {"name": lowered.symbol, "scratch_bytes": lowered.scratch_bytes}
    launcher = CpuLauncher(obj, metadata, ["ptr"] * len(function.args))

    def run(*arrays: Array) -> Array:
        result = np.empty(arrays[0].shape, numpy_dtype(dtype_named(target)))
        addresses = [array.ctypes.data for array in (*arrays, result)]
        launcher.launch((arrays[0].size // block, 1, 1), addresses)
        return result

    return run


def math_kernel(function: str, dtype: str, block: int = BLOCK) -> str:
    """y = function(x0)"""
    body = f'%y = arith.math %x0 {{function = "{function}"}} : {{t}}{dtype}>'
    return kernel(body, (dtype,), dtype, block)


def cast_kernel(source: str, target: str, rounding: str = "rtne") -> str:
    """y = x0 as another type"""
    body = f'%y = arith.cast %x0 {{rounding = "{rounding}"}} : {{t}}{target}>'
    return kernel(body, (source,), target)


def padded(values: Array, block: int = BLOCK) -> Array:
    """The values followed by repetitions, a multiple of the block in all."""
    size = -(-values.size // block) * block
    return np.resize(values, size)
