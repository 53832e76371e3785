"""Launches of a compiled kernel with addresses, without the search for a variant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright.compiler import CompiledKernel
from tilewright.runtime import JITFunction, launch_enter, launch_exit
from tilewright.support import Grid
from tilewright.support.data_class import dataclass

ALIGNED = 16
"""Bytes to which XLA aligns arrays, and of which launches make a fact."""


@dataclass(frozen=True, slots=True)
class DirectLaunch:
    """A launch of `kernel`, of which `compiled` is the variant for aligned arrays.

    items: for each run-time argument, the place of its address, or its value in a tuple; devices:
    those that have the variant's target, as far as launches were there; None: the CPU
    """

    kernel: JITFunction
    compiled: CompiledKernel
    grid: Grid
    items: Sequence[int | tuple[float]]
    devices: set[int | None]

    @classmethod
    def of(
        cls,
        kernel: JITFunction,
        compiled: CompiledKernel,
        grid: Grid,
        places: Mapping[str, int],
        values: Mapping[str, object],
    ) -> DirectLaunch | None:
        """The launch; None for arguments that a launch has to convert. places: of the addresses"""
        names: Sequence[str] = compiled.metadata.names
        known = {name: value for name, value in values.items() if isinstance(value, int | float)}
        # a parameter that is not known has a default, or is a part of a tuple
        if not {*names} <= {*places, *known} or compiled.metadata.options.check:
            return None
        items = [places[name] if name in places else (known[name],) for name in names]
        return cls(kernel, compiled, grid, items, set())

    def takes(self, batch: Sequence[Sequence[int]], device: int | None) -> bool:
        """Whether calls with these addresses may be made: the device and the facts are those of the
        variant, and no hook observes launches. device: the current GPU; None on a CPU"""
        return (
            self._serves(device)
            and not any(address % ALIGNED for addresses in batch for address in addresses)
            and not (launch_enter or launch_exit or self.kernel.pre_run_hooks)
        )

    def _serves(self, device: int | None) -> bool:
        if device not in self.devices:
            backend, target = self.compiled.backend, self.compiled.target
            # a process may have GPUs of two architectures
            if (device is None) == (backend.memory is None) and backend.target() == target:
                self.devices.add(device)
        return device in self.devices

    def launch(
        self, batch: Iterable[Sequence[int]], device: int | None, stream: int | None
    ) -> None:
        """Launch for each element of a batch. device, stream: the current GPU's; None on a CPU"""
        if 0 in self.grid:
            return
        launcher: Any = self.compiled.launcher
        if device is None:
            for addresses in batch:
                launcher.launch(self.grid, self._values(addresses))
            return
        entry = launcher.entry(device)
        for addresses in batch:
            entry(*self.grid, stream, *self._values(addresses))

    def _values(self, addresses: Sequence[int]) -> list[float]:
        return [item[0] if isinstance(item, tuple) else addresses[item] for item in self.items]
