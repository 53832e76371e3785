"""Lowers a kernel from keyword arguments, checks the IR, shows it, runs it."""

# pyright: reportArgumentType=false

import numpy as np

from tilewright import ir
from tilewright.frontend.python import ArgSpec, KernelSignature, lower_kernel
from tilewright.frontend.semantics import FrontendOptions
from tilewright.interp import run_function
from tilewright.ir.types import PointerType, dtype_named
from tilewright.ir.verifier import report
from tilewright.language import DeviceFunction

OPTIONS = FrontendOptions()
SCALARS = ("i1", "i8", "i16", "i32", "i64", "u32", "u64", "f32", "f16")
DTYPES = {np.dtype(np.float32): "f32", np.dtype(np.int32): "i32", np.dtype(np.int64): "i64"}


def spec(name: str, value: object) -> ArgSpec:
    """An argument: a type as text ("i32", "*f32"), an array, a run-time number, or a constant."""
    if isinstance(value, np.ndarray):
        return ArgSpec(name, "value", PointerType(dtype_named(DTYPES[value.dtype])))
    if isinstance(value, ArgSpec):
        return value
    if isinstance(value, str) and value.startswith("*"):
        return ArgSpec(name, "value", PointerType(dtype_named(value[1:])))
    if isinstance(value, str) and value in SCALARS:
        return ArgSpec(name, "value", dtype_named(value))
    if isinstance(value, RunTime):
        return ArgSpec(name, "value", dtype_named(value.type))
    return ArgSpec(name, "constexpr", value=value)


class RunTime:
    """A number that the kernel takes as a run-time scalar."""

    def __init__(self, value: float, type: str = "i32") -> None:
        self.value = value
        self.type = type


def lower(fn: DeviceFunction, **args: object) -> ir.Function:
    """The valid IR of a kernel."""
    signature = KernelSignature(tuple(spec(name, value) for name, value in args.items()))
    function = lower_kernel(fn, signature, OPTIONS).kernel
    assert report(function) is None, report(function)
    return function


def text(fn: DeviceFunction, **args: object) -> str:
    """The IR as text."""
    return ir.print_function(lower(fn, **args))


def run(fn: DeviceFunction, grid: tuple[int, ...] = (1,), **args: object) -> None:
    """Lower and run; arrays change in place."""
    function = lower(fn, **args)
    run_time = [
        v.value if isinstance(v, RunTime) else v
        for v in args.values()
        if isinstance(v, RunTime | np.ndarray)
    ]
    run_function(function, run_time, grid)


def output(fn: DeviceFunction, size: int = 8, **args: object) -> list[int]:
    """What a kernel has stored into its first parameter `out`, an int32 array of -1."""
    out = np.full(size, -1, np.int32)
    run(fn, out=out, **args)
    return out.tolist()
