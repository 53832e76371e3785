"""`driver.active`: questions about the device that kernels run on, under Triton's names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tilewright.backends import Backend, GPUTarget, backend_named, default_backend
from tilewright.runtime.bench import do_bench
from tilewright.runtime.bench.cpu_caches import usable_cores
from tilewright.support import errors, settings

UNLIMITED_BYTES = 2**31 - 1
"""Reported as shared memory where a program instance uses ordinary memory."""


class DriverUtils:
    """Facts about devices."""

    def __init__(self, driver: ActiveDriver) -> None:
        self._driver = driver

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """max_shared_mem (bytes), max_num_regs, multiprocessor_count, warpSize, clock rates (kHz)
        and mem_bus_width (bits) of a device; 0 where that means nothing."""
        ask = getattr(self._driver.backend, "device_properties", None)
        if ask is not None:
            return ask(device)
        return {
            "max_shared_mem": UNLIMITED_BYTES,
            "max_num_regs": 0,
            "multiprocessor_count": settings().cpu.threads or len(usable_cores()),
            "warpSize": self._driver.get_current_target().warp_size,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }


class ActiveDriver:
    """The device of one backend."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.utils = DriverUtils(self)

    def get_current_target(self) -> GPUTarget:
        """What kernels are compiled for."""
        return self.backend.target()

    def get_current_device(self) -> int:
        """Index of the device: torch's current one on a GPU, 0 on a CPU."""
        return 0 if self.backend.name == "cpu" else self.get_device_interface().current_device()

    def get_current_stream(self, device: int = 0) -> int:
        """Handle of the stream that launches go to; 0 on a CPU."""
        if self.backend.name == "cpu":
            return 0
        return self.get_device_interface().current_stream(device).cuda_stream

    def get_active_torch_device(self) -> Any:
        """The `torch.device` of arrays that kernels run on."""
        torch = self._torch()
        if self.backend.name == "cpu":
            return torch.device("cpu")
        return torch.device(self.backend.name, self.get_current_device())

    def get_device_interface(self) -> Any:
        """The module of torch for the device: `torch.cpu` or `torch.cuda`."""
        return getattr(self._torch(), self.backend.name)

    def get_benchmarker(self) -> Callable[..., Any]:
        """`do_bench`."""
        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """A torch buffer, larger than the caches, to be overwritten between measurements."""
        torch = self._torch()
        return torch.empty(256_000_000, dtype=torch.uint8, device=self.get_active_torch_device())

    def clear_cache(self, cache: Any) -> None:
        """Overwrite the buffer."""
        cache.zero_()

    def _torch(self) -> Any:
        torch = sys.modules.get("torch")
        if torch is None:
            raise errors.BackendUnavailable("torch", "it is not imported", "import torch first")
        return torch


def backend_of(device: str) -> Backend | None:
    """The backend of a device such as "cpu" or "cuda:1"; None if nobody serves it."""
    try:
        return backend_named(device.partition(":")[0])
    except errors.UnknownName:
        return None


class Driver:
    """Which backend launches without array arguments use, and who answers questions."""

    def __init__(self) -> None:
        self._active: ActiveDriver | None = None

    @property
    def default(self) -> ActiveDriver:
        """The driver of this machine's best device."""
        return ActiveDriver(default_backend())

    @property
    def active(self) -> ActiveDriver:
        """The driver in use."""
        if self._active is None:
            self._active = self.default
        return self._active

    def set_active(self, driver: ActiveDriver) -> None:
        """Use another driver from now on."""
        self._active = driver

    def set_active_to_cpu(self) -> None:
        """Use the CPU from now on."""
        self._active = ActiveDriver(backend_named("cpu"))

    def reset_active(self) -> None:
        """Use the default driver again."""
        self._active = None


driver = Driver()
