"""Launches that compiled programs of XLA refer to by name, and the arrays that they pass.

A program of XLA may be compiled in one process and run in another, so it holds no address: the
name of a plan is a hash of its content. `call` makes the plan whenever it is traced, which happens
before a compiled program is looked up.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from math import prod
from typing import Any, ClassVar, NamedTuple

from tilewright.backends import backend_named
from tilewright.jax.call_frame import Buffer
from tilewright.jax.direct_launch import DirectLaunch
from tilewright.support import import_late
from tilewright.support.data_class import dataclass


class ArrayType(NamedTuple):
    """Shape of one program's array, without dimensions of `vmap`; dtype: NumPy's or ml_dtypes'."""

    shape: tuple[int, ...]
    dtype: Any

    @property
    def bytes(self) -> int:
        """Size of the array."""
        return prod(self.shape) * self.dtype.itemsize


@dataclass(slots=True)
class LaunchPlan:
    """A launch of `kernel`.

    inputs, outputs: the arrays of XLA; parameters: their names, inputs first; written: names of
    those that the kernel may store to; values: the other arguments by name; direct: the launch of
    the variant for aligned arrays, if it is known
    """

    kernel: Any
    grid: object
    inputs: Sequence[ArrayType]
    outputs: Sequence[ArrayType]
    parameters: Sequence[str]
    written: frozenset[str]
    values: Mapping[str, object]
    direct: DirectLaunch | None = None

    known: ClassVar[dict[str, LaunchPlan]] = {}

    def registered(self) -> str:
        """The name by which a compiled program refers to the plan."""
        kernel = getattr(self.kernel, "cache_key", None) or id(self.kernel)
        # a function as grid has no text that lasts: the plan then holds for this process
        content = (kernel, self.grid, self.inputs, self.outputs, self.parameters, self.values)
        name = hashlib.sha256(repr(content).encode()).hexdigest()[:32]
        self.known[name] = self
        return name

    def launch(self, arguments: list[Buffer], results: list[Buffer], stream: int | None) -> None:
        """Launch once for each element of the dimensions that `vmap` has put in front.

        stream: of a GPU; None on a CPU
        """
        batch = self._addresses([*arguments, *results])
        if not batch:
            return
        with _current_device(stream, batch[0][-1]) as device:
            direct = self.direct
            if direct is not None and direct.takes(batch, device):
                direct.launch(batch, device, stream)
                return
            for addresses in batch:
                self._launch_one(addresses, stream)

    def _addresses(self, buffers: Sequence[Buffer]) -> list[list[int]]:
        """The addresses for each element of the leading dimensions, which the last buffer has."""
        types = (*self.inputs, *self.outputs)
        shape = buffers[-1].shape
        extents = shape[: len(shape) - len(types[-1].shape)]
        if not extents:
            return [[buffer.address for buffer in buffers]]
        strides = [_strides(b, t, len(extents)) for b, t in zip(buffers, types, strict=True)]
        return [
            [b.address + _offset(index, own) for b, own in zip(buffers, strides, strict=True)]
            for index in product(*map(range, extents))
        ]

    def _launch_one(self, addresses: Sequence[int], stream: int | None) -> None:
        arrays: dict[str, object] = {}
        types = (*self.inputs, *self.outputs)
        for name, address, type_ in zip(self.parameters, addresses, types, strict=True):
            # an output that is also an input has one buffer, that of the result
            arrays[name] = _array(address, type_, name in self.written, stream)
        self.kernel[self.grid](**arrays, **self.values)


def _offset(index: Sequence[int], strides: Sequence[int]) -> int:
    return sum(i * stride for i, stride in zip(index, strides, strict=True))


def _strides(buffer: Buffer, type_: ArrayType, dimensions: int) -> list[int]:
    """Bytes between the elements of the leading dimensions; 0 where all share one."""
    leading = buffer.shape[: len(buffer.shape) - len(type_.shape)]
    leading = leading or (1,) * dimensions
    strides = [prod(leading[place + 1 :]) * type_.bytes for place in range(len(leading))]
    return [0 if extent == 1 else stride for extent, stride in zip(leading, strides, strict=True)]


def _current_device(stream: int | None, address: int) -> AbstractContextManager[int | None]:
    memory = None if stream is None else backend_named("cuda").memory
    if memory is None or memory.entered is None or stream is None:
        return nullcontext()
    return memory.entered(stream, address)


def _array(address: int, type_: ArrayType, writable: bool, stream: int | None) -> object:
    if stream is not None:
        return DeviceArray(address, type_, writable, stream)
    numpy: Any = import_late("numpy")
    if not type_.bytes:
        return numpy.empty(type_.shape, type_.dtype)
    memory = (ctypes.c_char * type_.bytes).from_address(address)
    array = numpy.frombuffer(memory, type_.dtype).reshape(type_.shape)
    array.flags.writeable = writable
    return array


class DeviceArray:
    """An array of XLA on a GPU, with the stream that produces it."""

    def __init__(self, address: int, type_: ArrayType, writable: bool, stream: int) -> None:
        self.shape, self.dtype = type_
        self.__cuda_array_interface__ = {
            "data": (address, not writable),
            "shape": self.shape,
            "typestr": self.dtype.str,
            "version": 3,
            "stream": stream or 1,
        }

    def stride(self) -> tuple[int, ...]:
        """Strides in elements."""
        return tuple(prod(self.shape[place + 1 :]) for place in range(len(self.shape)))
