"""As much of `torch.cuda` as the clocks use, over a counter in place of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager


class FakeEvent:
    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda
        self.at: float | None = None

    def record(self, stream: object) -> None:
        self.cuda.log.append(f"record {stream}")
        self.at = self.cuda.now

    def elapsed_time(self, end: FakeEvent) -> float:
        assert self.at is not None
        assert end.at is not None
        assert self.cuda.synchronized_at >= end.at, "read an event before synchronize"
        return end.at - self.at


class FakeGraph:
    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda
        self.captured_ms = 0.0
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1
        self.cuda.now += self.captured_ms


class FakeCuda:
    """Time in milliseconds; `spend` is what a kernel would call."""

    def __init__(self, available: bool = True, initialized: bool = True) -> None:
        self.available = available
        self.initialized = initialized
        self.now = 0.0
        self.synchronized_at = -1.0
        self.log: list[str] = []
        self.graphs: list[FakeGraph] = []

    def is_available(self) -> bool:
        return self.available

    def is_initialized(self) -> bool:
        return self.initialized

    def current_device(self) -> int:
        return 0

    def current_stream(self, device: int) -> object:
        return f"stream of {device}"

    def synchronize(self, device: int) -> None:
        self.log.append(f"synchronize {device}")
        self.synchronized_at = self.now

    def Event(self, *, enable_timing: bool) -> FakeEvent:
        assert enable_timing
        return FakeEvent(self)

    def Stream(self) -> object:
        return "side stream"

    @contextmanager
    def stream(self, stream: object) -> Generator[None]:
        self.log.append(f"enter {stream}")
        yield

    def CUDAGraph(self) -> FakeGraph:
        self.graphs.append(FakeGraph(self))
        return self.graphs[-1]

    @contextmanager
    def graph(self, graph: FakeGraph) -> Generator[None]:
        before = self.now
        yield
        graph.captured_ms, self.now = self.now - before, before  # capturing runs nothing

    def spend(self, ms: float) -> Callable[[], None]:
        def kernel() -> None:
            self.now += ms

        return kernel


class FakeBuffer:
    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda

    def zero_(self) -> None:
        self.cuda.log.append("flush")


class FakeTorch:
    uint8 = "uint8"

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda

    def empty(self, size: int, *, dtype: object, device: str) -> FakeBuffer:
        self.cuda.log.append(f"allocate {size} {dtype} on {device}")
        return FakeBuffer(self.cuda)
