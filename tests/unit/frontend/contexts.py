"""Contexts in which tests apply the semantics: one builds IR, one computes at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from tilewright import language as tl
from tilewright.eager import EagerBuilder
from tilewright.frontend.semantics import Context, FrontendOptions, binary, call_builtin
from tilewright.interp import ConcreteValue, Machine, Memory, array_value, convert
from tilewright.ir import Block, Builder, Emitter
from tilewright.ir.types import DType, PointerType, TileType, Type, dtype_named


class PlainCalls:
    """Runs a device function as the Python function that it is, operators through the semantics."""

    def call(self, ctx: Context, fn: tl.DeviceFunction, args: Any, kwargs: Any) -> Any:
        token = tl.ACTIVE.set(Operators(ctx))
        try:
            return fn.fn(*args, **kwargs)
        finally:
            tl.ACTIVE.reset(token)


class Operators:
    """A dispatcher for the operators and stubs that tests use inside device functions."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    def call(self, stub: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        return call_builtin(self.ctx, stub, args, kwargs)

    def operator(self, name: str, args: tuple[Any, ...]) -> Any:
        return binary(self.ctx, name, *args)

    def call_function(self, function: tl.DeviceFunction, args: Any, kwargs: Any) -> Any:
        return self.ctx.functions.call(self.ctx, function, args, kwargs)


class Bench:
    """A context with shorthands: `bench.call(tl.sum, x)`, `bench.arg(type)`, `bench.tile(...)`."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    def call(self, stub: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return call_builtin(self.ctx, stub, args, kwargs)


class BuildBench(Bench):
    """Builds IR into `block`."""

    def __init__(self, **options: Any) -> None:
        self.block = Block()
        builder = Builder(self.block)
        super().__init__(Context(builder, FrontendOptions(**options), PlainCalls()))

    def arg(self, type_: Type, name: str = "") -> tl.tensor:
        return tl.tensor(self.block.add_arg(type_, name))

    def tile(self, element: DType | PointerType, *shape: int) -> tl.tensor:
        return self.arg(TileType(shape or (16,), element))

    @property
    def opcodes(self) -> list[str]:
        return [op.opcode for op in self.block]


class EagerBench(Bench):
    """Computes at once with NumPy."""

    def __init__(self, **options: Any) -> None:
        self.memory = Memory("test")
        self.printed: list[str] = []
        machine = Machine(self.memory, write=self.printed.append)
        emitter = cast("Emitter", EagerBuilder(machine))
        super().__init__(Context(emitter, FrontendOptions(**options), PlainCalls()))

    def tile(self, values: Any, element: DType) -> tl.tensor:
        """Values as a tile, or as a scalar if they have no shape."""
        data = np.asarray(values)
        wide = ConcreteValue(_type(data.shape, element), convert(data, _source(data), element))
        return tl.tensor(wide)

    def pointer(self, array: np.ndarray, element: DType, const: bool = False) -> tl.tensor:
        return tl.tensor(array_value(self.memory, "array", array, PointerType(element, const)))


def data(x: Any) -> np.ndarray:
    """The elements of an eager tensor."""
    return x.handle.data


def _type(shape: tuple[int, ...], element: DType) -> Type:
    return TileType(shape, element) if shape else element


def _source(values: np.ndarray) -> DType:
    names = {"bool": "i1", "float64": "f64", "float32": "f32", "float16": "f16"}
    short = str(values.dtype).replace("uint", "u").replace("int", "i")
    return dtype_named(names.get(str(values.dtype), short))
