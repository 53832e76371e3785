"""A backend that compiles for a GPU and runs what it compiled in the emulator, on host memory."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.emulator.machine import Kernel, run_program
from tests.emulator.memory import Global
from tilewright.backends import Backend, GPUTarget
from tilewright.backends.base import Stage, StageContext
from tilewright.backends.nvidia.backend import BACKEND
from tilewright.support import errors


class Emulated:
    """A launcher. `memory`, if given, is what the program may access."""

    memory: Global | None = None

    def __init__(self, binary: bytes, metadata: dict[str, Any], parameters: Sequence[str]) -> None:
        text, warps, shared, self.asserts = pickle.loads(binary)
        self.kernel = Kernel(text, warps, shared)
        self.n_regs = self.n_spills = 0

    def launch(self, grid: tuple[int, int, int], values: Sequence[Any]) -> None:
        args = [_number(value) for value in values]
        for z, y, x in itertools.product(*map(range, reversed(grid))):
            machine = run_program(self.kernel, args, (x, y, z), grid, self.memory)
            for line in machine.printed:
                print(line, end="")
            self._check(machine.kernel)

    def _check(self, kernel: Kernel) -> None:
        state = kernel.variables.get("@tilewright_failure")
        if state is None or not state.any():
            return
        flag, number, x, y, z, *index = (int(n) for n in state.view("i4"))
        state[...] = 0
        found = [str(i) for i in index[:3] if i >= 0]
        where = f" idx ({', '.join(found)})" if found else " idx ()"
        raise errors.DeviceAssertionFailure(f"{self.asserts[number]}{where}", (x, y, z))


def _number(value: Any) -> Any:
    pointer = getattr(value, "data_ptr", None)
    return pointer() if pointer is not None else (0 if value is None else value)


def _packed(text: str, context: StageContext) -> bytes:
    found = context.metadata
    shape = context.options.num_warps, int(found.get("shared", 0)), found.get("asserts", [])
    return pickle.dumps((text, *shape))


def emulated_backend(capability: int) -> Backend:
    """The NVIDIA backend up to LLVM text, for one architecture."""
    stages = tuple(s for s in BACKEND.stages if s.extension in ("ttir", "ttgir", "llir"))
    return replace(
        BACKEND,
        stages=(*stages, Stage("emulated", _packed, lambda text: text)),
        load=Emulated,
        available=lambda: True,
        target=lambda: GPUTarget("cuda", capability, 32),
        artifacts={},
    )
