"""Clocks of `do_bench`, and their selection by device.

A `BenchClock` returns stamps and, later, the milliseconds between two of them. Host timers and
device events have this in common, so one loop measures with both: it takes stamps around each call,
calls `synchronize` once, then reads the differences. `register_clock` adds
a device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Protocol, TypeVar, cast

from tilewright.backends import backend_in_use
from tilewright.runtime.arguments.memory_spans import Span
from tilewright.runtime.bench.cpu_caches import CacheFlusher, buffer_bytes
from tilewright.runtime.bench.unavailable import NotAvailableError
from tilewright.support.data_class import dataclass

NS_PER_MS = 1_000_000
# A stamp takes 0.1 us in Python: below one percent of this.
CPU_SHORTEST_SAMPLE_MS = 0.01
# The bytes that Triton's drivers clear before each timed call: larger than any L2 up to 2026.
CUDA_FLUSH_BYTES = 256_000_000

Stamp = TypeVar("Stamp")


class BenchClock(Protocol[Stamp]):
    """A source of time for one device."""

    shortest_sample_ms: float
    """Calls shorter than this are timed several at a time; 0 times every call alone."""

    def record(self) -> Stamp:
        """The moment at which the work issued so far is finished."""
        ...

    def elapsed_ms(self, start: Stamp, end: Stamp) -> float:
        """Milliseconds between two stamps; valid after `synchronize`."""
        ...

    def synchronize(self) -> None:
        """Wait until the device has finished all work issued so far."""
        ...

    def flush_cache(self) -> None:
        """Evict the data of earlier calls from the caches of the device."""
        ...

    def close(self) -> None:
        """Release the resources of `flush_cache`."""
        ...


class CpuClock:
    """The host's monotonic clock, in nanoseconds."""

    shortest_sample_ms = CPU_SHORTEST_SAMPLE_MS

    def __init__(self) -> None:
        self._flusher: CacheFlusher | None = None

    def record(self) -> int:
        return perf_counter_ns()

    def elapsed_ms(self, start: int, end: int) -> float:
        return (end - start) / NS_PER_MS

    def synchronize(self) -> None:
        """Return: a call on a CPU is done when it returns."""

    def flush_cache(self) -> None:
        if self._flusher is None:
            self._flusher = CacheFlusher()
        self._flusher()

    def drop_memory(self, spans: Sequence[Span]) -> bool:
        """Drop memory from the caches of all cores; False if the CPU cannot do that, or if
        `flush_cache` is faster."""
        cpu = backend_in_use("cpu")
        if cpu is None or cpu.drop_lines is None:
            return False
        return sum(size for _, size in spans) <= buffer_bytes() and cpu.drop_lines(spans)

    def close(self) -> None:
        if self._flusher is not None:
            self._flusher.close()
        self._flusher = None


class CudaEvent(Protocol):
    """The part of `torch.cuda.Event` that is used here."""

    def record(self, stream: object) -> None: ...

    def elapsed_time(self, end: CudaEvent) -> float: ...


class ZeroedTensor(Protocol):
    """The part of `torch.Tensor` that is used here."""

    def zero_(self) -> object: ...


class TorchCuda(Protocol):
    """The part of `torch.cuda` that is used here."""

    def is_available(self) -> bool: ...

    def is_initialized(self) -> bool: ...

    def current_device(self) -> int: ...

    def current_stream(self, device: int) -> object: ...

    def synchronize(self, device: int) -> None: ...

    def Event(self, *, enable_timing: bool) -> CudaEvent: ...


class Torch(Protocol):
    """The part of the `torch` module that is used here."""

    cuda: TorchCuda
    uint8: object

    def empty(self, size: int, *, dtype: object, device: str) -> ZeroedTensor: ...


def loaded_torch() -> Torch | None:
    """The `torch` module if the program has imported it; this package never does."""
    return cast("Torch | None", sys.modules.get("torch"))


class CudaEventClock:
    """CUDA events on PyTorch's current stream of one device: the time between calls is left out."""

    shortest_sample_ms = 0.0

    def __init__(self, index: int | None = None, torch: Torch | None = None) -> None:
        torch = torch or loaded_torch()
        if torch is None:
            raise NotAvailableError(
                "timing on a CUDA device", "PyTorch is not imported", "run `import torch` first"
            )
        if not torch.cuda.is_available():
            raise NotAvailableError(
                "timing on a CUDA device",
                "this PyTorch sees no CUDA device",
                "use device='cpu', or install a PyTorch with CUDA on a machine with a GPU",
            )
        self._torch = torch
        self._device = torch.cuda.current_device() if index is None else index
        self._buffer: ZeroedTensor | None = None

    def record(self) -> CudaEvent:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record(self._torch.cuda.current_stream(self._device))
        return event

    def elapsed_ms(self, start: CudaEvent, end: CudaEvent) -> float:
        return start.elapsed_time(end)

    def synchronize(self) -> None:
        self._torch.cuda.synchronize(self._device)

    def flush_cache(self) -> None:
        if self._buffer is None:
            self._buffer = self._torch.empty(
                CUDA_FLUSH_BYTES, dtype=self._torch.uint8, device=f"cuda:{self._device}"
            )
        self._buffer.zero_()

    def close(self) -> None:
        self._buffer = None


ClockFactory = Callable[["int | None"], BenchClock[object]]


@dataclass(frozen=True, slots=True)
class ClockChoice:
    """A registered device: the constructor of its clock, and whether the program uses it now."""

    make: ClockFactory
    in_use: Callable[[], bool]


_choices: dict[str, ClockChoice] = {}


def register_clock(device: str, make: ClockFactory, in_use: Callable[[], bool]) -> None:
    """Add or replace the clock of a device.

    `make(index)` builds it (index None: the current device of that kind). `in_use()` says whether
    the program is computing on such a device; it decides when no device is named, the latest
    registered first.
    """
    # a device that is replaced moves to the end, since the latest registered is preferred
    _choices.pop(device, None)
    _choices[device] = ClockChoice(make, in_use)


def clock_for(device: object = None) -> BenchClock[object]:
    """The clock of a device: a name such as `"cpu"` or `"cuda:1"`, a `torch.device`, or None to
    choose.

    None selects the device that the program uses: CUDA if PyTorch has a CUDA context, otherwise the
    CPU. Raises NotAvailableError for a device that is not registered or not present.
    """
    if device is None:
        return next(choice for choice in reversed(_choices.values()) if choice.in_use()).make(None)
    kind, _, index = str(device).partition(":")
    choice = _choices.get(kind)
    if choice is None or (index and not index.isdigit()):
        raise NotAvailableError(
            f"timing on device {str(device)!r}",
            "no clock is registered for it",
            f"use one of {', '.join(sorted(_choices))}",
        )
    return choice.make(int(index) if index else None)


def _cuda_in_use() -> bool:
    torch = loaded_torch()
    if torch is None:
        return backend_in_use("cuda") is not None
    return torch.cuda.is_available() and torch.cuda.is_initialized()


def _cuda_clock(index: int | None) -> BenchClock[object]:
    """Events of PyTorch if the program uses it, otherwise those of the backend."""
    backend = backend_in_use("cuda") if loaded_torch() is None else None
    if backend is None or backend.clock is None:
        return cast("BenchClock[object]", CudaEventClock(index))
    return cast("BenchClock[object]", backend.clock(index))


register_clock("cpu", lambda _index: cast("BenchClock[object]", CpuClock()), lambda: True)
register_clock("cuda", _cuda_clock, _cuda_in_use)
