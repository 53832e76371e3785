"""Current device and stream of the program, found without imports.

They are PyTorch's once it has started CUDA, otherwise CuPy's, otherwise the device of the driver's
current context with its default stream. A library that is not imported has no current stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol, cast

from tilewright.backends.nvidia.driver.cuda_driver import driver

DeviceAndStream = Callable[[], tuple[int, int]]
Queries = tuple[Callable[[], int], Callable[[int], int]]


class _TorchCuda(Protocol):
    def is_initialized(self) -> bool: ...


class _TorchInternals(Protocol):
    """Private functions, as Triton calls them: the public ones are slower."""

    def _cuda_getDevice(self) -> int: ...
    def _cuda_getCurrentRawStream(self, device: int) -> int: ...


class _Torch(Protocol):
    cuda: _TorchCuda
    _C: _TorchInternals


class _CupyStream(Protocol):
    ptr: int


class _CupyRuntime(Protocol):
    def getDevice(self) -> int: ...


class _CupyCuda(Protocol):
    runtime: _CupyRuntime

    def get_current_stream(self, device_id: int | None = None) -> _CupyStream: ...


class _Cupy(Protocol):
    cuda: _CupyCuda


def device_and_stream() -> tuple[int, int]:
    """Ordinal of the current device, and its current stream as a CUstream."""
    return _source()


def stream_of(device: int) -> int:
    """The current stream of a device, as a CUstream."""
    queries = torch_queries()
    if queries is not None:
        return queries[1](device)
    cupy = cast("_Cupy | None", sys.modules.get("cupy"))
    return 0 if cupy is None else cupy.cuda.get_current_stream(device).ptr


def torch_queries() -> Queries | None:
    """PyTorch's functions for the current device, and for the current stream of a device; None
    unless it has started CUDA."""
    torch = cast("_Torch | None", sys.modules.get("torch"))
    if torch is None or not torch.cuda.is_initialized():
        return None
    internals = torch._C  # pyright: ignore[reportPrivateUsage]
    device_of = internals._cuda_getDevice  # pyright: ignore[reportPrivateUsage]
    stream_of = internals._cuda_getCurrentRawStream  # pyright: ignore[reportPrivateUsage]
    return device_of, stream_of


def _choose() -> tuple[int, int]:
    """Choose the library to query; permanently PyTorch once it uses CUDA."""
    global _source
    queries = torch_queries()
    if queries is not None:
        # replaces this function, so that later calls look up nothing
        _source = _of_torch(*queries)
        return _source()
    cupy = cast("_Cupy | None", sys.modules.get("cupy"))
    if cupy is not None:
        return cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream().ptr
    return driver().current_device(), 0


_source: DeviceAndStream = _choose


def _of_torch(device_of: Callable[[], int], stream_of: Callable[[int], int]) -> DeviceAndStream:
    def current() -> tuple[int, int]:
        device = device_of()
        return device, stream_of(device)

    return current
