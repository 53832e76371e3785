"""Which clock is chosen, and what the CUDA clock asks of PyTorch."""

from __future__ import annotations

import sys

import pytest

from tests.unit.runtime.bench.fake_torch import FakeCuda, FakeTorch
from tests.unit.testing.fake_clock import FakeClock
from tilewright.runtime.bench import clocks
from tilewright.testing import (
    CpuClock,
    CudaEventClock,
    NotAvailableError,
    clock_for,
    do_bench,
    do_bench_cudagraph,
    register_clock,
)


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def use_torch(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda) -> FakeCuda:
    monkeypatch.setitem(sys.modules, "torch", FakeTorch(cuda))  # type: ignore[arg-type]
    return cuda


@pytest.mark.usefixtures("no_torch")
def test_without_torch_the_host_clock_is_chosen_and_torch_stays_unimported() -> None:
    assert isinstance(clock_for(), CpuClock)
    assert "torch" not in sys.modules


@pytest.mark.parametrize("cuda", [FakeCuda(available=False), FakeCuda(initialized=False)])
def test_torch_without_a_cuda_context_means_the_host_clock(
    monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda
) -> None:
    use_torch(monkeypatch, cuda)
    assert isinstance(clock_for(), CpuClock)


def test_a_cuda_context_means_cuda_events(monkeypatch: pytest.MonkeyPatch) -> None:
    use_torch(monkeypatch, FakeCuda())
    assert isinstance(clock_for(), CudaEventClock)
    assert isinstance(clock_for("cpu"), CpuClock)


def test_the_device_index_reaches_stream_buffer_and_synchronize(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuda = use_torch(monkeypatch, FakeCuda())
    clock = clock_for("cuda:1")
    clock.flush_cache()
    clock.flush_cache()
    clock.record()
    clock.synchronize()
    assert cuda.log == [
        "allocate 256000000 uint8 on cuda:1",
        "flush",
        "flush",
        "record stream of 1",
        "synchronize 1",
    ]


def test_do_bench_on_cuda_reads_events_after_one_synchronize(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuda = use_torch(monkeypatch, FakeCuda())
    assert do_bench(cuda.spend(2.0), warmup=2, rep=6, return_mode="all") == [2.0] * 3
    assert cuda.log.count("synchronize 0") == 3  # after the first call, the estimate, the samples


def test_cudagraph_divides_each_replay_by_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = use_torch(monkeypatch, FakeCuda())
    assert do_bench_cudagraph(cuda.spend(0.5), rep=20, return_mode="all") == [0.5] * 10
    (graph,) = cuda.graphs
    assert graph.captured_ms == 20.0
    assert graph.replays == 10
    assert cuda.log[0] == "enter side stream"


def test_cuda_without_a_device_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    use_torch(monkeypatch, FakeCuda(available=False))
    with pytest.raises(NotAvailableError, match="sees no CUDA device"):
        clock_for("cuda")


@pytest.mark.usefixtures("no_torch")
def test_cuda_without_torch_says_so() -> None:
    with pytest.raises(NotAvailableError, match="PyTorch is not imported"):
        clock_for("cuda")


@pytest.mark.parametrize("device", ["tpu", "cuda:first", ""])
def test_unknown_devices_name_the_known_ones(device: str) -> None:
    with pytest.raises(NotAvailableError, match="use one of .*cpu, cuda"):
        clock_for(device)


def test_a_registered_clock_is_preferred_while_its_device_is_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clocks, "_choices", dict(clocks._choices))  # type: ignore[attr-defined]
    used = [False]
    fake = FakeClock()
    register_clock("driver", lambda _index: fake, lambda: used[0])
    assert clock_for() is not fake
    used[0] = True
    assert clock_for() is fake
    assert clock_for("driver:3") is fake
    assert isinstance(clock_for("cpu"), CpuClock)


def test_do_bench_closes_the_clock_it_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "_choices", dict(clocks._choices))  # type: ignore[attr-defined]
    fake = FakeClock()
    register_clock("driver", lambda _index: fake, lambda: True)

    def fails_while_timed() -> None:
        fake.spend(1.0)
        if fake.now > 3.0:
            raise RuntimeError("kernel failed")

    with pytest.raises(RuntimeError, match="kernel failed"):
        do_bench(fails_while_timed)
    assert fake.closed


def test_the_host_clock_counts_milliseconds() -> None:
    clock = CpuClock()
    assert clock.elapsed_ms(1_000_000, 3_500_000) == 2.5
    start = clock.record()
    assert clock.elapsed_ms(start, clock.record()) >= 0.0


def test_without_torch_the_backend_has_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once its kernels run; before, the host's clock is the one in use."""

    class Backend:
        clock = staticmethod(lambda index: ("clock of", index))

    in_use: dict[str, type[Backend]] = {}
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(clocks, "backend_in_use", in_use.get)
    assert isinstance(clock_for(), CpuClock)
    with pytest.raises(NotAvailableError, match="PyTorch"):
        clock_for("cuda")
    in_use["cuda"] = Backend
    assert clock_for() == ("clock of", None)
    assert clock_for("cuda:1") == ("clock of", 1)
