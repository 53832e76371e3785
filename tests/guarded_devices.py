"""Devices for tests of kernels: each takes NumPy arrays and returns results.

`device.run(kernel, grid, *args, **words)` launches a kernel whose array arguments were made by
`device.array(...)` or `device.empty(...)` (or are views of such arrays). Such arrays are between
guard bytes that are checked after every launch, and those of `empty` hold poison: NaN, or a pattern
that no test computes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from tilewright.backends import backend_named
from tilewright.language import TensorDescriptor
from tilewright.runtime import TensorWrapper, jit
from tilewright.support import settings

GUARD_BYTES = 256
GUARD = 0xDB
ALIGNMENT = 64
"""Guard bytes; copies on a device keep them, so that views have the same alignment there."""
POISON = 0xCD

Array = np.ndarray[Any, Any]


class Device:
    """A device to run kernels on.

    is_slow: programs take milliseconds each, so tests choose few of them (see `pick`);
    is_approximate: fp32 quotients and functions are within a few ulp, and 0 below 2^-126; seed: of
    the random order of concurrent work, where a device has a choice
    """

    name: str
    is_slow = False
    is_approximate = False
    seed: int | None = None

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
        """The size for this device."""
        return slow if self.is_slow else fast

    def run(self, kernel: Any, grid: Any, *args: Any, **words: Any) -> Any:
        """Launch a kernel and wait; then check the guards."""
        result = self.launch(kernel, grid, *args, **words)
        self.check_guards()
        return result

    def launch(self, kernel: Any, grid: Any, *args: Any, **words: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def give_up_early() -> None:
        """End programs without end soon; only a device in this process can."""

    def check_guards(self) -> None:
        """Fail if an element right before or after an array was written."""
        for i, (memory, edge) in enumerate(self._guarded):
            guard = memory[edge : edge + GUARD_BYTES] if i % 2 else memory[:edge]
            assert (guard == GUARD).all(), "a kernel wrote outside its arrays"


def poison(array: Array) -> None:
    """Fill an array with poison."""
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
    """The kernel as an interpreted one."""
    return jit(kernel.fn, interpret=True)


class Interpreter(Device):
    """The Python function, run eagerly."""

    name = "interpreter"
    is_slow = True

    def launch(self, kernel: Any, grid: Any, *args: Any, **words: Any) -> Any:
        return interpreted(kernel)[grid](*args, **words)


def exact_products() -> AbstractContextManager[Any]:
    """A block in which fp32 matmuls are exact unless they specify otherwise."""
    return settings().compilation.scope(f32_default="ieee")


class OnGpu:
    """An array in the memory of a GPU, as a kernel argument."""

    is_cpu = False
    dtype: Any = None
    device = ""
    shape = ()

    def __init__(
        self, address: int, dtype: Any, device: str = "cuda:0", like: Array | None = None
    ) -> None:
        """like: an array with its shape and strides, to tell whether arguments overlap."""
        self.dtype = dtype
        self.device = device
        self._address, self._like = address, like

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._like is None:
            raise AttributeError("its extent is not known")
        return {**self._like.__array_interface__, "data": (self._address, False)}

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
            memory = whole(array)
            if memory.ctypes.data not in copies:
                block = cuda.allocate(memory.size + ALIGNMENT)
                there = block + memory.ctypes.data % ALIGNMENT
                cuda.write(there, memory.tobytes())
                copies[memory.ctypes.data] = memory, block, there
            there = copies[memory.ctypes.data][-1]
            place = there + address(array) - memory.ctypes.data
            return OnGpu(place, array.dtype, like=array)

        with cuda.context(0):
            try:
                with exact_products():
                    result = kernel[grid](*moved(args, on_device), **words)
                cuda.synchronize(0)
            finally:
                for memory, block, there in copies.values():
                    memory[...] = np.frombuffer(cuda.read(there, memory.size), np.uint8)
                    cuda.free(block)
        return result


def moved(args: Any, move: Callable[[Array], Any]) -> list[Any]:
    """Arguments with `move` applied to their arrays, including those in tuples and descriptors."""

    def one(arg: Any) -> Any:
        if isinstance(arg, tuple):
            kind: Any = type(cast("object", arg))
            items = moved(arg, move)
            return kind(*items) if hasattr(kind, "_fields") else tuple(items)
        if isinstance(arg, TensorDescriptor):
            return replace(arg, base=move(arg.base))
        if isinstance(arg, TensorWrapper):
            return TensorWrapper(move(arg.base), arg.dtype)
        return move(cast("Array", arg)) if isinstance(arg, np.ndarray) else arg

    return [one(arg) for arg in args]


def address(array: Array) -> int:
    """Address of the first element."""
    return array.__array_interface__["data"][0]


def whole(array: Array) -> Array:
    """All bytes of the array that an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.reshape(-1).view(np.uint8)


DEVICES: dict[str, Callable[[], Device]] = {
    "interpreter": Interpreter,
    "cpu": Cpu,
    "nvidia": Nvidia,
}
"""Factories of devices; the tests of this project add `emulated`, since they hold the emulator."""

_EMULATED = "tests.kernels.devices"


def device_class(name: str) -> Callable[[], Device]:
    """The factory of a device. Errors: KeyError."""
    if name == "emulated" and name not in DEVICES:
        importlib.import_module(_EMULATED)
    return DEVICES[name]


def available_devices() -> tuple[str, ...]:
    """Names of the available devices; `emulated` from the root of this project's source only."""
    has_emulator = find_spec(_EMULATED.partition(".")[0]) and find_spec(_EMULATED)
    emulated = ("emulated",) if has_emulator else ()
    nvidia = ("nvidia",) if backend_named("cuda").available() else ()
    return ("interpreter", "cpu", *emulated, *nvidia)
