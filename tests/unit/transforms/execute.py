"""Runs a kernel before and after passes; what it leaves in its arrays must not change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tilewright.frontend.python import ArgSpec, KernelSignature, lower_kernel
from tilewright.frontend.semantics import FrontendOptions
from tilewright.interp import dtype_of_array, run_function
from tilewright.ir import Function, Op, Pass, Pipeline, parse_function, pipeline_of
from tilewright.ir.types import DType, PointerType, TileType, i32
from tilewright.language import DeviceFunction


def lower(kernel: Callable[..., Any], args: Sequence[Any], **constants: object) -> Function:
    """The IR of a Python kernel: arrays are pointers, numbers are i32, keywords are constants."""
    fn = DeviceFunction(kernel)
    names = kernel.__code__.co_varnames
    specs: list[ArgSpec] = []
    for name, arg in zip(names, args, strict=False):
        specs.append(ArgSpec(name, "value", _parameter(arg)))
    specs += [ArgSpec(name, "constexpr", value=value) for name, value in constants.items()]
    return lower_kernel(fn, KernelSignature(tuple(specs)), FrontendOptions()).kernel


def _parameter(arg: object) -> PointerType | DType:
    if not isinstance(arg, np.ndarray):
        return i32
    element = dtype_of_array(arg.dtype)
    assert element is not None
    return PointerType(element)


def unchanged_by(
    passes: Sequence[Pass] | Pipeline,
    kernel: Function | str,
    args: Sequence[Any],
    grid: tuple[int, ...] = (1,),
) -> Function:
    """The function after the passes, which verify; running it gives the same bytes as before."""
    before = parse_function(kernel) if isinstance(kernel, str) else kernel
    after = before.clone()
    if not isinstance(passes, Pipeline):
        passes = pipeline_of("test", [(work, "") for work in passes])
    passes.run(after)
    runs: list[list[Any]] = []
    for function in (before, after):
        copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        run_function(function, copies, grid)
        runs.append(copies)
    arrays = [index for index, arg in enumerate(args) if isinstance(arg, np.ndarray)]
    assert any(not same_bytes(runs[0][i], args[i]) for i in arrays), "the kernel stores nothing"
    for i in arrays:
        np.testing.assert_array_equal(runs[1][i], runs[0][i])
    return after


def same_bytes(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return a.tobytes() == b.tobytes()


def ops(function: Function, kind: type[Op]) -> list[Any]:
    """The ops of one class, in the order of the text."""
    return [op for op in function.walk() if isinstance(op, kind)]


def carried_tiles(function: Function, loop: type[Op]) -> list[TileType]:
    """The types of the tiles that loops of a class carry."""
    types = [result.type for op in ops(function, loop) for result in op.results]
    return [type_ for type_ in types if isinstance(type_, TileType)]


def refuses(passes: Sequence[Pass], function: Function) -> None:
    """The passes leave the function as it is."""
    for work in passes:
        if work.run(function):
            pytest.fail(f"{work} changed the function")
