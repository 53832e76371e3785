"""Reports of profilers of backends: times of lines and runs of kernels."""

from __future__ import annotations

from typing import Protocol, Self

from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class LineCost:
    """The time of one line of a kernel. line: 0 for code without a place in the source"""

    kernel: str
    file: str
    line: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """One run of a kernel on a device, in nanoseconds of `time.perf_counter_ns`."""

    kernel: str
    stream: int
    begin: int
    end: int


class KernelProfiler(Protocol):
    """Observes the kernels that run while it is entered as a context.

    Afterwards: costs, the most expensive line first; events: in order; elsewhere: seconds of
    observed time that no kernel took; note: a limit of the figures, in one line
    """

    costs: list[LineCost]
    events: list[DeviceEvent]
    elsewhere: float
    note: str

    def __enter__(self) -> Self: ...
    def __exit__(self, *_error: object) -> None: ...
