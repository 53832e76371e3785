"""Where the kernels of this suite run: each device takes NumPy arrays and brings results back.

No test names a device. `device.run(kernel, grid, *args, **words)` launches a kernel whose array
arguments were made by `device.array(...)` or `device.empty(...)` (or are views of such arrays).
Such arrays lie between guard bytes that are checked after every launch, and those of `empty` hold
poison: NaN, or a pattern that no test computes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import tilewright
from tilewright.tools.tensor_descriptor import TensorDescriptor

GUARD_BYTES = 256
GUARD = 0xDB
ALIGNMENT = 64
"""Bytes; kept by copies on a device, so that views are as aligned there as here."""
POISON = 0xCD

Array = np.ndarray[Any, Any]


class Device:
    """A way to run kernels.

    is_slow: programs take milliseconds each, so tests choose few of them (see `pick`);
    is_approximate: fp32 quotients and functions are within a few ulp, and 0 below 2^-126.
    """

    name: str
    is_slow = False
    is_approximate = False

    def __init__(self) -> None:
        self._guarded: list[tuple[Array, int]] = []

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """An array full of poison between guards."""
        dtype = np.dtype(dtype)
        extents = (shape,) if isinstance(shape, int) else shape
        size = int(np.prod(extents)) * dtype.itemsize
        memory = np.full(size + 2 * GUARD_BYTES + ALIGNMENT, GUARD, np.uint8)
        start = GUARD_BYTES + -(memory.ctypes.data + GUARD_BYTES) % ALIGNMENT
        self._guarded.append((memory, start))
        self._guarded.append((memory, start + size))
        array = memory[start : start + size].view(dtype).reshape(extents)
        poison(array)
        return array

    def array(self, values: Any, dtype: Any = None) -> Array:
        """A guarded copy of `values`."""
        values = np.asarray(values, dtype)
        array = self.empty(values.shape, values.dtype)
        array[...] = values
        return array

    def pick(self, slow: Any, fast: Any) -> Any:
        """The sizes for this device."""
        return slow if self.is_slow else fast

    def run(self, kernel: Any, grid: Any, *args: Any, **words: Any) -> Any:
        """Launch a kernel and wait; then check the guards."""
        result = self.launch(kernel, grid, *args, **words)
        self.check_guards()
        return result

    def launch(self, kernel: Any, grid: Any, *args: Any, **words: Any) -> Any:
        raise NotImplementedError

    def check_guards(self) -> None:
        """Fail if something was written right before or after an array."""
        for i, (memory, edge) in enumerate(self._guarded):
            guard = memory[edge : edge + GUARD_BYTES] if i % 2 else memory[:edge]
            assert (guard == GUARD).all(), "a kernel wrote outside its arrays"


def poison(array: Array) -> None:
    """Fill with what no kernel should leave."""
    if array.dtype.kind == "b":
        array[...] = True
    elif array.dtype.kind in "iu":
        array.reshape(-1).view(np.uint8)[...] = POISON
    else:
        array[...] = np.nan


class Cpu(Device):
    """Compiled for this machine's CPU."""

    name = "cpu"

    def launch(self, kernel: Any, grid: Any, *args: Any, **words: Any) -> Any:
        return kernel[grid](*args, **words)


@cache
def interpreted(kernel: Any) -> Any:
    """The kernel as the interpreter runs it."""
    return tilewright.jit(kernel.fn, interpret=True)


class Interpreter(Device):
    """The Python function, run eagerly."""

    name = "interpreter"
    is_slow = True

    def launch(self, kernel: Any, grid: Any, *args: Any, **words: Any) -> Any:
        return interpreted(kernel)[grid](*args, **words)


def exact_products() -> AbstractContextManager[Any]:
    """A block in which products of fp32 are exact unless they say otherwise."""
    return tilewright.settings().compilation.scope(f32_default="ieee")


class OnGpu:
    """An array in the memory of a GPU, as kernels take it."""

    is_cpu = False
    dtype: Any = None
    device = ""

    def __init__(self, address: int, dtype: Any, device: str = "cuda:0") -> None:
        self.dtype = dtype
        self.device = device
        self._address = address

    def data_ptr(self) -> int:
        return self._address


class Nvidia(Device):
    """Compiled for an NVIDIA GPU; arrays are copied there and back for each launch."""

    name = "nvidia"
    is_approximate = True

    def launch(self, kernel: Any, grid: Any, *args: Any, **words: Any) -> Any:
        cuda = importlib.import_module("tilewright.backends.nvidia.driver.cuda_driver").driver()
        copies: dict[int, tuple[Array, int, int]] = {}

        def on_device(array: Array) -> OnGpu:
            memory = _whole(array)
            if memory.ctypes.data not in copies:
                block = cuda.allocate(memory.size + ALIGNMENT)
                there = block + memory.ctypes.data % ALIGNMENT
                cuda.write(there, memory.tobytes())
                copies[memory.ctypes.data] = memory, block, there
            there = copies[memory.ctypes.data][-1]
            return OnGpu(there + _address(array) - memory.ctypes.data, array.dtype)

        with cuda.context(0):
            try:
                with exact_products():
                    result = kernel[grid](*_moved(args, on_device), **words)
                cuda.synchronize(0)
            finally:
                for memory, block, there in copies.values():
                    memory[...] = np.frombuffer(cuda.read(there, memory.size), np.uint8)
                    cuda.free(block)
        return result


class EmulatedNvidia(Device):
    """Compiled for an NVIDIA GPU, and run by the emulator on the arrays where they are.

    name: of the device, among CAPABILITIES of the emulator.
    seed: of a random order of warps; they go in step by default, which is faster.
    """

    name = "emulated"
    is_slow = True
    is_approximate = True

    def __init__(self, seed: int | None = None) -> None:
        super().__init__()
        self.seed = seed

    def launch(self, kernel: Any, grid: Any, *args: Any, **words: Any) -> Any:
        emulator = importlib.import_module("tests.emulator")

        def described(array: Array) -> OnGpu:
            return OnGpu(_address(array), array.dtype, f"{self.name}:0")

        starts, ends = self._guarded[::2], self._guarded[1::2]
        ranges = [
            (memory.ctypes.data + start, memory.ctypes.data + end)
            for (memory, start), (_, end) in zip(starts, ends, strict=True)
        ]
        with emulator.accessible(ranges, self.seed), exact_products():
            return kernel[grid](*_moved(args, described), **words)


def _moved(args: Any, move: Callable[[Array], Any]) -> list[Any]:
    """Arguments with what `move` makes of their arrays, in tuples and descriptors too."""

    def one(arg: Any) -> Any:
        if isinstance(arg, tuple):
            items = _moved(arg, move)
            return type(arg)(*items) if hasattr(arg, "_fields") else tuple(items)
        if isinstance(arg, TensorDescriptor):
            return replace(arg, base=move(arg.base))
        return move(arg) if isinstance(arg, np.ndarray) else arg

    return [one(arg) for arg in args]


def _address(array: Array) -> int:
    """Where the first element is."""
    return array.__array_interface__["data"][0]


def _whole(array: Array) -> Array:
    """All the bytes that an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.reshape(-1).view(np.uint8)


DEVICES: dict[str, Callable[[], Device]] = {
    "interpreter": Interpreter,
    "cpu": Cpu,
    "emulated": EmulatedNvidia,
    "nvidia": Nvidia,
}
