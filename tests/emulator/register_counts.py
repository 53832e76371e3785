"""setmaxnreg: how many registers each warp holds of those that the program was started with."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.emulator.memory import Array, EmulationError
from tests.emulator.waiting import Blocked, Wait


class RegisterCounts:
    """entry: registers of each thread at the start, None where ptxas cannot know them."""

    def __init__(self, machine: Any) -> None:
        self._m = machine
        self._entry: int | None = machine.kernel.entry_registers
        warps = machine.warps
        self._of_block = machine.kernel.warps
        self._held = np.full(warps, self._entry or 0)
        self._pool = self._of_block * (self._entry or 0)
        self._history: list[list[int]] = [[] for _ in range(warps)]

    def change(self, mask: Array, count: int, is_more: bool) -> None:
        """Raises Blocked for warps that must wait for registers which others give back."""
        warps = np.flatnonzero(self._m.whole_warps("setmaxnreg", mask)).tolist()
        if self._entry is None:
            raise EmulationError(
                "setmaxnreg in a kernel whose registers at its start are not known"
            )
        if not 24 <= count <= 256 or count % 8:
            raise EmulationError(f"setmaxnreg cannot set {count}")
        waits: dict[int, Wait] = {}
        held = self._held.copy()
        for warp in warps:
            if (count < held[warp]) if is_more else (count > held[warp]):
                raise EmulationError(f"setmaxnreg from {held[warp]} to {count}: wrong direction")
            if self._left(held, warp) >= count - held[warp]:
                held[warp] = count
            else:
                waits[warp] = self._wait(warp, count)
        if waits:
            raise Blocked(waits)
        self._held = held
        for warp in warps:
            self._history[warp].append(count)

    def _left(self, held: Array, warp: int) -> int:
        """What nobody holds of the registers of a warp's block."""
        first = warp // self._of_block * self._of_block
        return self._pool - int(held[first : first + self._of_block].sum())

    def _wait(self, warp: int, count: int) -> Wait:
        def is_over() -> bool:
            return self._left(self._held, warp) >= count - int(self._held[warp])

        return Wait(is_over, lambda: f"{count} registers per thread, which others must give back")

    def finish(self) -> None:
        """The program ends: all warps of each warpgroup must have done the same."""
        for first in range(0, len(self._history), 4):
            group = self._history[first : first + 4]
            if any(history != group[0] for history in group):
                raise EmulationError("setmaxnreg that not all warps of a warpgroup execute")
