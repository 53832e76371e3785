"""A backend that compiles for a GPU and runs what it compiled in the emulator, on host memory."""

from __future__ import annotations

import functools
import itertools
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.emulator.machine import Kernel, run_program
from tests.emulator.memory import Global
from tests.emulator.tensor_maps import TensorMap
from tilewright.backends import Backend, GPUTarget, manifest
from tilewright.backends.manifest import Stage, StageContext
from tilewright.backends.nvidia.backend import BACKEND
from tilewright.backends.nvidia.driver.gpu_messages import Console, FailureRecord
from tilewright.backends.nvidia.message_records import FAILURE, HOST_ADDRESS
from tilewright.backends.nvidia.tensor_maps import ELEMENT_KINDS, SWIZZLES, TensorMapSource
from tilewright.runtime import autotuner
from tilewright.runtime.bench import clock_for, register_clock


@dataclass(frozen=True)
class _Circumstances:
    """ranges: (first, end) of what may be accessed; seed: of the order of warps, None for step."""

    ranges: list[tuple[int, int]]
    seed: int | None


_circumstances: list[_Circumstances] = []


@contextmanager
def accessible(ranges: list[tuple[int, int]], seed: int | None = None) -> Iterator[None]:
    """A block in which kernels may access only these (first, end) addresses. Configurations that
    are tuned run once, untimed.

    seed: warps go one after another in an order drawn with it, instead of in step.
    """
    register()
    _circumstances.append(_Circumstances(ranges, seed))
    try:
        with patch.object(autotuner, "do_bench", run_once):
            yield
    finally:
        _circumstances.pop()


def run_once(fn: Callable[[], object], **_: Any) -> list[float]:
    """A measurement that measures nothing."""
    fn()
    return [0.0] * 3


_RESIDENT = 2
"""Blocks of a kernel whose blocks run several programs."""

_PAIRED = 4
"""Of one whose blocks are clusters of two."""

_SHARED_BASE = 0x400
"""Where the shared memory of a program starts on Hopper; in clusters the rank is above."""


class Emulated:
    """A loaded kernel."""

    def __init__(self, binary: bytes, metadata: dict[str, Any], parameters: Sequence[str]) -> None:
        text, warps, shared, asserts, prints, cluster = pickle.loads(binary)
        self._decode = functools.partial(Kernel, text, warps, shared, cluster, _SHARED_BASE)
        self._record = np.zeros(FailureRecord.size, np.uint8)
        record = FailureRecord(self._record.ctypes.data) if asserts else None
        self.console = Console(asserts, prints, self._read, self._clear, record)
        self.n_regs = self.n_spills = 0
        plain = metadata.get("tensor_maps") or ()
        self.maps = [TensorMapSource.from_plain(source) for source in plain]
        self.is_persistent = bool(metadata.get("resident"))
        self.shares_copies = bool(metadata.get("shares_copies"))

    @property
    def kernel(self) -> Kernel:
        """Decoded again after many others: it is thousands of functions, each found by every search
        for garbage. What the module's memory held is lost then; prints are drained before."""
        return _decoded(self._decode)

    @kernel.setter
    def kernel(self, kernel: Kernel) -> None:
        self._decode = lambda: kernel

    def launch(self, grid: tuple[int, int, int], values: Sequence[Any]) -> None:
        args = [_number(value) for value in values]
        # The parameters of tensor maps follow; kept, since they hold what a kernel reads.
        maps = [_tensor_map(source, args) for source in self.maps]
        cluster = self.kernel.cluster
        blocks = (grid[0] * cluster, grid[1], grid[2])
        if self.is_persistent:
            programs, most = math.prod(grid), _RESIDENT
            if self.shares_copies:
                programs, most, cluster = programs + programs % 2, _PAIRED, 2
            blocks = (min(most, programs), 1, 1)
            args += grid
        args += maps
        seed = _circumstances[-1].seed if _circumstances else None
        order, memory = None if seed is None else Random(seed), self._memory()
        if self.console.failure is not None:
            address = np.array([self.console.failure.address]).view(np.uint8)
            self.kernel.variables[f"@{FAILURE}"][HOST_ADDRESS:] = address
        for z, y, x in itertools.product(*map(range, reversed(blocks))):
            if x % cluster == 0:
                run_program(self.kernel, args, (x, y, z), blocks, memory, order, cluster)
        self.console.drain()

    def _memory(self) -> Global:
        """What the programs may access: the arrays, and the module's own memory."""
        memory = Global(_circumstances[-1].ranges if _circumstances else None)
        variables = self.kernel.variables.values()
        own = [*variables, self._record]
        memory.own += [(v.ctypes.data, v.ctypes.data + len(v)) for v in own]
        for element in (_ZEROS, _NOWHERE):
            memory.own.append((element.ctypes.data, element.ctypes.data + element.nbytes))
        return memory

    def _read(self, name: str, size: int) -> bytes:
        return self.kernel.variables[f"@{name}"][:size].tobytes()

    def _clear(self, name: str, size: int) -> None:
        self.kernel.variables[f"@{name}"][:size] = 0


@functools.lru_cache(16)
def _decoded(decode: Callable[[], Kernel]) -> Kernel:
    return decode()


_ZEROS, _NOWHERE = np.zeros(16).reshape(2, 8)
"""What an array without elements is read from, and stored to."""


def _tensor_map(source: TensorMapSource, args: Sequence[Any]) -> TensorMap:
    values = [int(arg) if isinstance(arg, int | np.integer) else 0 for arg in args]
    base = values[source.base]
    dims = [number.of(values) for number in reversed(source.dims)]
    strides = [number.of(values) * source.element_bytes for number in reversed(source.strides)]
    if min(dims) <= 0:
        element = _NOWHERE if source.stored else _ZEROS
        base, dims, strides = element.ctypes.data, [1] * len(dims), [16] * len(strides)
    return TensorMap(
        base, dims, strides, source.box[::-1],
        dtype=ELEMENT_KINDS[source.element], swizzle=SWIZZLES[source.swizzle],
    )  # fmt: skip


def _number(value: Any) -> Any:
    pointer = getattr(value, "data_ptr", None)
    return pointer() if pointer is not None else (0 if value is None else value)


def _packed(text: str, context: StageContext) -> bytes:
    found = context.metadata
    shape = (context.options.num_warps, int(found.get("shared", 0)), found.get("asserts", []),
             found.get("prints", []), context.options.num_ctas)  # fmt: skip
    return pickle.dumps((text, *shape))


@functools.cache
def register() -> None:
    """Serve arrays of the emulated devices."""
    for name, capability in CAPABILITIES.items():
        manifest._loaded[name] = emulated_backend(name, capability)  # pyright: ignore[reportPrivateUsage]
        register_clock(name, lambda index: clock_for("cpu"), lambda: False)


CAPABILITIES = {"emulated": 90, "emulated_ampere": 80, "emulated_turing": 75}


def emulated_backend(name: str, capability: int) -> Backend:
    """The NVIDIA backend up to LLVM text, for one architecture."""
    stages = tuple(s for s in BACKEND.stages if s.extension in ("ttir", "ttgir", "llir"))
    return replace(
        BACKEND,
        name=name,
        version=lambda target: f"emulated {target.arch}",
        stages=(*stages, Stage("emulated", _packed, lambda text, context: text)),
        load=Emulated,
        available=lambda: True,
        target=lambda: GPUTarget("cuda", capability, 32),
        device_name=lambda: f"emulated sm_{capability}",
        artifacts={},
    )
