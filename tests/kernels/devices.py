"""The devices of this suite: those of `tilewright.testing`, and the emulator. No test names one."""

from __future__ import annotations

import importlib
from typing import Any

from tests.guarded_devices import (
    DEVICES,
    Array,
    Cpu,
    Device,
    Interpreter,
    Nvidia,
    OnGpu,
    address,
    exact_products,
    moved,
)

__all__ = [
    "DEVICES", "Array", "Cpu", "Device", "EmulatedAmpere", "EmulatedNvidia", "Interpreter",
    "Nvidia", "OnGpu",
]  # fmt: skip


BLOCKS = 30_000
"""Of one program instance in the emulator, which is without end after so many."""


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
            return OnGpu(address(array), array.dtype, f"{self.name}:0", array)

        starts, ends = self._guarded[::2], self._guarded[1::2]
        ranges = [
            (memory.ctypes.data + start, memory.ctypes.data + end)
            for (memory, start), (_, end) in zip(starts, ends, strict=True)
        ]
        with emulator.accessible(ranges, self.seed), exact_products():
            return kernel[grid](*moved(args, described), **words)

    @staticmethod
    def give_up_early() -> None:
        machine = importlib.import_module("tests.emulator.machine")
        machine.Machine.run.__defaults__ = (BLOCKS,)  # its own limit takes minutes


class EmulatedAmpere(EmulatedNvidia):
    """Of sm_80, which has copies of threads only."""

    name = "emulated_ampere"


DEVICES["emulated"] = EmulatedNvidia
