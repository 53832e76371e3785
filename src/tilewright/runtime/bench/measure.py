"""`do_bench` and `do_bench_cudagraph`: milliseconds of one call of a function.

Both have Triton's signatures and meaning. `warmup` and `rep` are budgets of time, not counts: after
one call to compile and five to estimate, as many calls are made as fit. Each timed call starts with
cold caches (see `flushing`), as a kernel in a larger program does.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, cast, get_args, overload

from tilewright.runtime.bench.clocks import (
    BenchClock,
    CudaEvent,
    TorchCuda,
    clock_for,
    loaded_torch,
)
from tilewright.runtime.bench.flushing import Flushing
from tilewright.runtime.bench.unavailable import NotAvailableError

Fn = Callable[[], object]
ReturnMode = Literal["min", "max", "mean", "median", "all"]
SingleMode = Literal["min", "max", "mean", "median"]

ESTIMATE_CALLS = 5
GRAPH_REPLAYS = 10
# Unrolled calls when the estimate is too short for the events to resolve.
GRAPH_CALLS_UNRESOLVED = 1000


class HasGrad(Protocol):
    """A tensor whose gradient accumulates, such as `torch.Tensor`."""

    grad: object


@overload
def do_bench(
    fn: Fn,
    warmup: float = ...,
    rep: float = ...,
    grad_to_none: Iterable[HasGrad] | None = ...,
    quantiles: None = ...,
    return_mode: SingleMode = ...,
    device: object = ...,
    *,
    flush_cache: bool = ...,
    clock: BenchClock[object] | None = ...,
) -> float: ...


@overload
def do_bench(
    fn: Fn,
    warmup: float = ...,
    rep: float = ...,
    grad_to_none: Iterable[HasGrad] | None = ...,
    quantiles: Sequence[float] | None = ...,
    return_mode: ReturnMode = ...,
    device: object = ...,
    *,
    flush_cache: bool = ...,
    clock: BenchClock[object] | None = ...,
) -> float | list[float]: ...


def do_bench(
    fn: Fn,
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[HasGrad] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: ReturnMode = "mean",
    device: object = None,
    *,
    flush_cache: bool = True,
    clock: BenchClock[object] | None = None,
) -> float | list[float]:
    """Time `fn()` and return milliseconds per call.

    warmup, rep: milliseconds to spend on warming up and on timing.
    grad_to_none: tensors whose `grad` is set to None before each timed call, outside the timed
        span.
    quantiles: numbers in [0, 1]; the result is then those quantiles of the samples (linear between
        samples) as a list, or as one float if there is one quantile; return_mode is ignored.
    return_mode: "mean", "median", "min", "max", or "all" for the list of samples.
    device: the device of the clock: "cpu", "cuda", "cuda:1", a torch.device; None selects CUDA
        events if PyTorch has a CUDA context in this process, otherwise the host's clock.
    flush_cache: start the calls with cold caches, outside the timed span; False times a call whose
        data may still be in a cache. Cold means: on a GPU, its second-level cache is overwritten.
        On a CPU, the arrays that are passed to `fn`'s launches are in no cache of any core; code,
        stack and scratch memory are not evicted. If `fn` launches no kernel of this package, uses
        more memory than the caches have, or creates new arrays in each call, all caches are
        emptied, which takes longer (see `runtime.bench.flushing`).
    clock: another clock than that of the device.

    On a CPU, calls shorter than 0.01 ms are timed several at a time, and a sample is their mean;
    the caches are then emptied before each sample, not before each call. The time to
    empty them counts towards the budgets, so few samples of a short function fit; raise `rep` for
    more.

    Raises ValueError for a quantile or return_mode that does not exist, NotAvailableError for a
    device that is not present.
    """
    _check_request(quantiles, return_mode)
    # the caller closes its own clock
    owned = clock is None
    clock = clock_for(device) if clock is None else clock
    try:
        samples = _measure(fn, clock, (warmup, rep), list(grad_to_none or ()), flush_cache)
    finally:
        if owned:
            clock.close()
    return summarize(samples, quantiles, return_mode)


def _measure(
    fn: Fn,
    clock: BenchClock[object],
    budgets_ms: tuple[float, float],
    cleared: Sequence[HasGrad],
    flush: bool,
) -> list[float]:
    """Milliseconds per call, one number per sample."""
    warmup_ms, rep_ms = budgets_ms
    empty = Flushing(clock, flush)
    empty.call(fn)
    clock.synchronize()
    call_ms, round_ms = _estimate(fn, clock, empty)
    calls = _at_least_one(clock.shortest_sample_ms, call_ms, rounding=math.ceil)
    # as many as would fit if caches were emptied
    _repeat(fn, _at_least_one(warmup_ms, round_ms))
    spans: list[tuple[object, object]] = []
    for _ in range(_at_least_one(rep_ms, round_ms + (calls - 1) * call_ms)):
        _clear_gradients(cleared)
        empty()
        start = clock.record()
        _repeat(fn, calls)
        # read after the last call: waiting for each would leave the device idle between calls
        spans.append((start, clock.record()))
    clock.synchronize()
    return [clock.elapsed_ms(start, end) / calls for start, end in spans]


def _estimate(fn: Fn, clock: BenchClock[object], empty: Flushing) -> tuple[float, float]:
    """Milliseconds of one call, and of one call including the emptying of caches."""
    empty()  # the first time also allocates
    stamps = [clock.record()]
    for _ in range(ESTIMATE_CALLS):
        empty()
        before = clock.record()
        empty.call(fn)
        stamps += [before, clock.record()]
    clock.synchronize()
    calls = [clock.elapsed_ms(a, b) for a, b in zip(stamps[1::2], stamps[2::2], strict=True)]
    return statistics.median(calls), clock.elapsed_ms(stamps[0], stamps[-1]) / ESTIMATE_CALLS


def _repeat(fn: Fn, calls: int) -> None:
    for _ in range(calls):
        fn()


def _clear_gradients(tensors: Sequence[HasGrad]) -> None:
    for tensor in tensors:
        tensor.grad = None


def _at_least_one(
    budget_ms: float, each_ms: float, rounding: Callable[[float], int] = math.floor
) -> int:
    """The number of calls that fit into the budget; one if the clock measured no time."""
    return max(1, rounding(budget_ms / each_ms)) if each_ms > 0 else 1


def _check_request(quantiles: Sequence[float] | None, return_mode: str) -> None:
    if return_mode not in get_args(ReturnMode):
        modes = ", ".join(map(repr, get_args(ReturnMode)))
        raise ValueError(f"return_mode must be one of {modes}, not {return_mode!r}")
    for q in quantiles or ():
        if not 0 <= q <= 1:
            raise ValueError(f"a quantile must be between 0 and 1, not {q!r}")


def summarize(
    samples_ms: Sequence[float],
    quantiles: Sequence[float] | None = None,
    return_mode: ReturnMode = "mean",
) -> float | list[float]:
    """Reduce samples by quantiles or return_mode (see `do_bench`)."""
    if quantiles is not None:
        values = [quantile(samples_ms, q) for q in quantiles]
        return values[0] if len(values) == 1 else values
    if return_mode == "all":
        return list(samples_ms)
    reduce: dict[str, Callable[[Sequence[float]], float]] = {
        "min": min,
        "max": max,
        "mean": statistics.mean,
        "median": statistics.median,
    }
    return reduce[return_mode](samples_ms)


def quantile(samples: Sequence[float], q: float) -> float:
    """The q-th quantile, linear between the two nearest of the sorted samples."""
    ordered = sorted(samples)
    position = q * (len(ordered) - 1)
    low, high = math.floor(position), math.ceil(position)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


class GradTensor(HasGrad, Protocol):
    """A leaf tensor of autograd."""

    def detach_(self) -> object: ...

    def requires_grad_(self, requires_grad: bool) -> object: ...


class CudaGraph(Protocol):
    """The part of `torch.cuda.CUDAGraph` that is used here."""

    def replay(self) -> None: ...


class GraphTorchCuda(TorchCuda, Protocol):
    """The part of `torch.cuda` that captures graphs."""

    def Stream(self) -> object: ...

    def stream(self, stream: object) -> AbstractContextManager[object]: ...

    def CUDAGraph(self) -> CudaGraph: ...

    def graph(self, graph: CudaGraph) -> AbstractContextManager[object]: ...


def do_bench_cudagraph(
    fn: Fn,
    rep: float = 20,
    grad_to_none: Sequence[GradTensor] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: ReturnMode = "mean",
) -> float | list[float]:
    """Time `fn()` without its launch overhead: `rep` milliseconds of calls in one CUDA graph.

    The graph is replayed ten times; each sample is one replay divided by its calls. Caches are not
    emptied between calls. Arguments and result are those of `do_bench`.
    Raises NotAvailableError unless PyTorch is imported and sees a CUDA device.
    """
    _check_request(quantiles, return_mode)
    cuda = _graph_capable_cuda()
    cleared = list(grad_to_none or ())

    def call() -> None:
        _clear_gradients(cleared)
        fn()

    # a separate stream, since CUDA cannot capture the default stream
    with cuda.stream(cuda.Stream()):
        fn()
        for tensor in cleared:
            tensor.detach_()
            tensor.requires_grad_(True)
        total_ms = _event_span_ms(cuda, lambda: _repeat(call, ESTIMATE_CALLS))
        calls = int(rep * ESTIMATE_CALLS / total_ms) if total_ms > 0 else GRAPH_CALLS_UNRESOLVED
        calls = max(1, calls)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            _repeat(call, calls)
        cuda.synchronize(cuda.current_device())
        samples = [_event_span_ms(cuda, graph.replay) / calls for _ in range(GRAPH_REPLAYS)]
    return summarize(samples, quantiles, return_mode)


def _graph_capable_cuda() -> GraphTorchCuda:
    torch = loaded_torch()
    if torch is None or not torch.cuda.is_available():
        raise NotAvailableError(
            "do_bench_cudagraph",
            "it needs an imported PyTorch that sees a CUDA device",
            "use do_bench, which also times on the CPU",
        )
    return cast("GraphTorchCuda", torch.cuda)


def _event_span_ms(cuda: TorchCuda, work: Callable[[], object]) -> float:
    """Milliseconds on the current stream of the work that `work` issues."""
    device = cuda.current_device()
    stream = cuda.current_stream(device)
    start: CudaEvent = cuda.Event(enable_timing=True)
    end = cuda.Event(enable_timing=True)
    start.record(stream)
    work()
    end.record(stream)
    cuda.synchronize(device)
    return start.elapsed_time(end)
