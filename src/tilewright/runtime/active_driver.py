"""`driver.active`: queries about the device that kernels run on, under Triton's names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from tilewright.backends import Backend, GPUTarget, backend_named, default_backend
from tilewright.runtime import bench
from tilewright.support import errors


class DriverUtils:
    """Facts about devices."""

    def __init__(self, driver: ActiveDriver) -> None:
        self._driver = driver

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """max_shared_mem (bytes), max_num_regs, multiprocessor_count, max_threads_per_sm, warpSize,
        sm_clock_rate and mem_clock_rate (kHz) and mem_bus_width (bits) of a device; 0 for
        properties that it does not have."""
        return self._driver.backend.properties(device)


class ActiveDriver:
    """The device of one backend."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.utils = DriverUtils(self)

    @classmethod
    def is_active(cls) -> bool:
        """Whether the device can run kernels here; overridden by the classes of `driver_class`."""
        return True

    def get_current_target(self) -> GPUTarget:
        """The target that kernels are compiled for."""
        return self.backend.target()

    def get_current_device(self) -> int:
        """Index of the current device; 0 on the host."""
        memory = self.backend.memory
        return 0 if memory is None else memory.current()[0]

    def get_current_stream(self, device: int = 0) -> int:
        """Handle of the stream in which launches on a device are enqueued; 0 on the host."""
        memory = self.backend.memory
        return 0 if memory is None else memory.stream_of(device)

    def get_active_torch_device(self) -> Any:
        """The `torch.device` of arrays that kernels run on."""
        torch, name = self._torch(), self.backend.name
        if self.backend.memory is None:
            return torch.device(name)
        return torch.device(name, self.get_current_device())

    def get_device_interface(self) -> Any:
        """The module of torch for the device: `torch.cpu` or `torch.cuda`."""
        return getattr(self._torch(), self.backend.name)

    def get_benchmarker(self) -> Callable[..., Any]:
        """`do_bench`."""
        return bench.do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """A torch buffer, larger than the caches, to be overwritten between measurements."""
        torch = self._torch()
        # as many bytes as Triton clears: larger than any L2
        return torch.empty(256_000_000, dtype=torch.uint8, device=self.get_active_torch_device())

    def clear_cache(self, cache: Any) -> None:
        """Overwrite the buffer."""
        cache.zero_()

    def _torch(self) -> Any:
        torch = sys.modules.get("torch")
        if torch is None:
            raise errors.BackendUnavailable("torch", "it is not imported", "import torch first")
        return torch


@cache
def driver_class(name: str) -> Callable[[], ActiveDriver]:
    """The class of drivers of the backend `name`; its constructor has no arguments, as in
    Triton."""

    class NamedDriver(ActiveDriver):
        def __init__(self) -> None:
            super().__init__(backend_named(name))

        @classmethod
        def is_active(cls) -> bool:
            return backend_named(name).available()

    NamedDriver.__name__ = NamedDriver.__qualname__ = f"{name.title()}Driver"
    NamedDriver.__doc__ = f"The device of the backend {name}."
    return NamedDriver


def backend_of(device: str) -> Backend | None:
    """The backend of a device such as "cpu" or "cuda:1"; None if no backend serves it."""
    try:
        return backend_named(device.partition(":")[0])
    except errors.UnknownName:
        return None


class Driver:
    """Selects the backend of launches without array arguments, and of queries about devices."""

    def __init__(self) -> None:
        self._active: ActiveDriver | None = None

    @property
    def default(self) -> ActiveDriver:
        """The driver of this machine's best device."""
        return driver_class(default_backend().name)()

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
        self._active = driver_class("cpu")()

    def reset_active(self) -> None:
        """Use the default driver again."""
        self._active = None


driver = Driver()
