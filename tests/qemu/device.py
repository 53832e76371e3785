"""A device of `tests.kernels` whose kernels are compiled for, and run on, another CPU."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.guarded_devices import Array, Device, OnGpu, address, moved, whole
from tests.qemu.program import MACHINES, Job, Machine, Piece, Program
from tilewright.backends import GPUTarget, manifest
from tilewright.backends.cpu.backend import BACKEND
from tilewright.backends.cpu.driver.cpu_launcher import slots_of
from tilewright.runtime.bench import clock_for, register_clock

_BASE, _PAGE = 0x10_0000_0000, 4096


@dataclass(frozen=True)
class _Block:
    """An array's memory, and where the program has it."""

    memory: Array
    there: int


_blocks: list[list[_Block]] = []
"""Of each launch that is under way."""


@contextmanager
def _launching(blocks: list[_Block]) -> Iterator[None]:
    _blocks.append(blocks)
    try:
        yield
    finally:
        _blocks.pop()


class ForeignCpu(Device):
    """Compiled for one of MACHINES; arrays are copied to a process there and back."""

    is_slow = True

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        _register(name)

    def launch(self, kernel: Any, grid: Any, *args: Any, **words: Any) -> Any:
        blocks: dict[int, _Block] = {}

        def there(array: Array) -> OnGpu:
            memory = whole(array)
            start = memory.ctypes.data
            if start not in blocks:
                # pages between two blocks are not mapped; addresses are as aligned as here
                used = sum(-(-b.memory.size // _PAGE) + 2 for b in blocks.values())
                blocks[start] = _Block(memory, _BASE + used * _PAGE + start % _PAGE)
            at = blocks[start].there + address(array) - start
            return OnGpu(at, array.dtype, f"{self.name}:0")

        arguments = moved(args, there)
        with _launching([*blocks.values()]):
            return kernel[grid](*arguments, **words)


class _ForeignKernel:
    """A linked kernel."""

    n_regs = n_spills = 0

    def __init__(
        self, machine: Machine, obj: bytes, metadata: dict[str, Any], parameters: Sequence[str]
    ) -> None:
        self._program = Program(machine, obj, metadata["name"])
        self._slots = slots_of(parameters)
        self._scratch = metadata["scratch_bytes"]

    def launch(self, grid: tuple[int, int, int], values: Sequence[int | float]) -> None:
        pieces = [Piece(block.there, block.memory.tobytes()) for block in _blocks[-1]]
        results = self._program.run(Job(pieces, self._slots.pack(*values, 0), grid, self._scratch))
        for block, data in zip(_blocks[-1], results, strict=True):
            block.memory[...] = np.frombuffer(data, np.uint8)


@functools.cache
def _register(name: str) -> None:
    """Serve arrays of the device of a machine."""
    machine = MACHINES[name]
    manifest._loaded[name] = replace(  # pyright: ignore[reportPrivateUsage]
        BACKEND,
        name=name,
        load=functools.partial(_ForeignKernel, machine),
        target=lambda: GPUTarget("cpu", machine.cpu, 1),
    )
    register_clock(name, lambda index: clock_for("cpu"), lambda: False)
