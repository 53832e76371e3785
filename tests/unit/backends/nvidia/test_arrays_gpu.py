"""Arrays of every protocol and library in the memory of a GPU, and the streams that they are of."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.backends.nvidia.gpu_kernels import needs_gpu
from tests.unit.backends.nvidia.gpu_tiles import add
from tilewright.runtime import Spec, argument_key

pytestmark = needs_gpu

N = 1000
SLEEP = 100_000_000
"""Cycles: 50 to 100 ms."""


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy")


class Interface:
    """A tensor that speaks `__cuda_array_interface__` only."""

    def __init__(self, tensor: Any, **more: Any) -> None:
        self._tensor, self._more = tensor, more

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self._tensor.__cuda_array_interface__, **self._more}


class Dlpack:
    """A tensor that speaks DLPack only."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self.asked: list[dict[str, Any]] = []

    def __dlpack__(self, **words: Any) -> Any:
        self.asked.append(words)
        return self._tensor.__dlpack__(**words)

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()


class OldDlpack(Dlpack):
    """As before version 1."""

    def __dlpack__(self, **words: Any) -> Any:
        if set(words) - {"stream"}:
            raise TypeError("__dlpack__() takes a stream only")
        return super().__dlpack__(**words)


class Pointer:
    """A tensor with what Triton asks for only."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self.dtype = tensor.dtype

    def data_ptr(self) -> int:
        return self._tensor.data_ptr()


class PointerWithDevice(Pointer):
    def __init__(self, tensor: Any) -> None:
        super().__init__(tensor)
        self.device = tensor.device


def launch(*arrays: Any, n: int = N) -> None:
    """One sum; the second time by the paths for launches like earlier ones."""
    for _ in range(2):
        kernel = add[(-(-n // 128),)](*arrays, n=n, BLOCK=128)
        assert kernel.target.backend == "cuda"


@pytest.mark.parametrize("wrap", [Interface, Dlpack, OldDlpack, Pointer, PointerWithDevice])
def test_protocols(torch: Any, wrap: Callable[[Any], Any]) -> None:
    x, y = torch.randn(2, N, device="cuda")
    out = torch.zeros(N, device="cuda")
    assert argument_key(wrap(x)) == argument_key(x)
    launch(wrap(x), wrap(y), wrap(out))
    assert torch.equal(out, x + y)
    out.zero_()
    launch(x, wrap(y), out)
    assert torch.equal(out, x + y)


@pytest.mark.parametrize("wrap", [Interface, Dlpack, Pointer])
@pytest.mark.parametrize("dtype", ["float16", "int32", "int8", "float64"])
def test_types_and_parts(torch: Any, wrap: Callable[[Any], Any], dtype: str) -> None:
    x = torch.arange(2 * N, device="cuda").to(getattr(torch, dtype))[3::1]
    out = torch.zeros(N + 1, device="cuda", dtype=x.dtype)[1:]
    launch(wrap(x), wrap(x), wrap(out))
    assert torch.equal(out, x[:N] + x[:N])


@pytest.mark.parametrize("wrap", [Dlpack, Pointer])
def test_types_without_a_word_in_interfaces(torch: Any, wrap: Callable[[Any], Any]) -> None:
    x = torch.randn(N, device="cuda").to(torch.bfloat16)
    out = torch.zeros_like(x)
    launch(wrap(x), wrap(x), wrap(out))
    assert torch.equal(out, x + x)


def test_arrays_without_elements(torch: Any) -> None:
    empty = torch.zeros(0, device="cuda")
    for wrap in (Interface, Dlpack, PointerWithDevice):
        add[(1,)](wrap(empty), wrap(empty), wrap(empty), 0, BLOCK=128)
        assert argument_key(wrap(empty)) == argument_key(empty)


# --- memory of the host ---------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda tensor: tensor, Dlpack, Pointer])
def test_pinned_memory_among_arrays_of_a_gpu(torch: Any, wrap: Callable[[Any], Any]) -> None:
    x = torch.randn(N, device="cuda")
    pinned = torch.ones(N).pin_memory()
    out = torch.zeros(N, device="cuda")
    launch(x, wrap(pinned), out)
    assert torch.equal(out, x + 1)
    launch(wrap(pinned), x, out)
    assert torch.equal(out, x + 1)
    back = torch.zeros(N).pin_memory()
    launch(x, x, wrap(back))
    torch.cuda.synchronize()
    assert torch.equal(back, (x + x).cpu())


def test_memory_of_the_host_alone_is_worked_on_by_the_cpu(torch: Any) -> None:
    x, out = torch.randn(N), torch.zeros(N)
    for wrap in (Dlpack, Pointer, PointerWithDevice):
        kernel = add[(8,)](wrap(x), wrap(x), wrap(out), N, BLOCK=128)
        assert kernel.target.backend == "cpu"
        assert torch.equal(out, x + x)


# --- streams --------------------------------------------------------------------------------------


def test_a_launch_comes_after_the_stream_of_an_array(torch: Any) -> None:
    x, y = torch.zeros(2, N, device="cuda")
    out = torch.zeros(N, device="cuda")
    launch(Interface(x, stream=1), y, out)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(SLEEP)
        x.fill_(3.0)
    add[(8,)](Interface(x, stream=side.cuda_stream), y, out, N, BLOCK=128)
    assert torch.equal(out, torch.full_like(out, 3.0))


def test_what_follows_in_the_stream_of_an_array_comes_after_the_launch(torch: Any) -> None:
    x, y = torch.ones(2, N, device="cuda")
    out = torch.zeros(N, device="cuda")
    side = torch.cuda.Stream()
    launch(x, y, out)
    torch.cuda.synchronize()
    torch.cuda._sleep(SLEEP)
    add[(8,)](Interface(x, stream=side.cuda_stream), y, out, N, BLOCK=128)
    with torch.cuda.stream(side):
        x.fill_(100.0)
    torch.cuda.synchronize()
    assert torch.equal(out, torch.full_like(out, 2.0))


def test_arrays_of_one_other_stream_are_worked_on_there(torch: Any) -> None:
    x, y = torch.ones(2, N, device="cuda")
    out = torch.zeros(N, device="cuda")
    side = torch.cuda.Stream()
    launch(x, y, out)
    out.zero_()
    torch.cuda.synchronize()
    current = torch.cuda.Stream()
    with torch.cuda.stream(current):
        torch.cuda._sleep(20 * SLEEP)
        arrays = [Interface(t, stream=side.cuda_stream) for t in (x, y, out)]
        add[(8,)](*arrays, n=N, BLOCK=128)
    with torch.cuda.stream(side):
        found = out.cpu()
    assert not current.query(), "the launch has waited for the current stream"
    assert torch.equal(found, torch.full((N,), 2.0))
    torch.cuda.synchronize()


def test_dlpack_is_told_the_stream_of_the_launch(torch: Any) -> None:
    x = torch.ones(N, device="cuda")
    stream = torch.cuda.Stream()
    for expected, context in (
        (1, torch.cuda.stream(torch.cuda.default_stream())),
        (stream.cuda_stream, torch.cuda.stream(stream)),
    ):
        array = Dlpack(x)
        with context:
            add[(8,)](array, x, torch.zeros_like(x), N, BLOCK=128)
        assert {words["stream"] for words in array.asked} == {expected}


# --- CuPy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "uint8", "int64"])
def test_arrays_of_cupy(cupy: Any, dtype: str) -> None:
    x = cupy.arange(2 * N).astype(dtype)
    y, out = x[5 : 5 + N], cupy.zeros(N, dtype)
    launch(x, y, out)
    cupy.testing.assert_array_equal(out, x[:N] + y)
    key, address = argument_key(x)
    assert isinstance(key, Spec) and key.device == f"cuda:{x.device.id}"
    assert address == x.data.ptr


def test_bfloat16_of_cupy(cupy: Any) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    try:
        x = cupy.arange(N).astype(ml_dtypes.bfloat16)
    except (TypeError, ValueError, NotImplementedError) as error:
        pytest.skip(f"this CuPy has no bfloat16: {error}")
    out = cupy.zeros_like(x)
    launch(x, x, out)
    cupy.testing.assert_array_equal(out.astype("float32"), 2 * x.astype("float32"))


def test_managed_memory(cupy: Any) -> None:
    def managed() -> Any:
        return cupy.ndarray((N,), "float32", memptr=cupy.cuda.malloc_managed(4 * N))

    x, out = managed(), managed()
    x[...] = cupy.arange(N)
    for wrap in (lambda array: array, Interface, Dlpack):
        out[...] = 0
        launch(wrap(x), wrap(x), wrap(out))
        cupy.testing.assert_array_equal(out, 2 * x)


def test_cupy_and_torch_in_one_launch(cupy: Any, torch: Any) -> None:
    x, y = cupy.arange(N, dtype="float32"), torch.ones(N, device="cuda")
    out = torch.zeros(N, device="cuda")
    launch(x, y, out)
    assert torch.equal(out, torch.arange(N, device="cuda") + 1.0)


STREAMS = """
import sys
import cupy
from tests.unit.backends.nvidia.gpu_tiles import add
if WITH_TORCH:
    import torch
    torch.zeros(1, device="cuda")
n = 1 << 26
big, out = cupy.zeros(n, "float32"), cupy.zeros(n, "float32")
add[(n // 1024,)](big, big, out, n, BLOCK=1024)
cupy.cuda.Device().synchronize()
for blocking in (False, True):
    stream = cupy.cuda.Stream(non_blocking=not blocking)
    with stream:
        big[...] = 0
        for _ in range(30):
            big += 1
        add[(n // 1024,)](big, big, out, n, BLOCK=1024)
        big[...] = -1
        assert (out == 60).all(), "not in the order of CuPy's stream"
    stream.synchronize()

x, out = cupy.ones(1024, "float32"), cupy.zeros(1024, "float32")
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    stream.begin_capture()
    add[(1,)](x, x, out, 1024, BLOCK=1024)
    graph = stream.end_capture()
    stream.synchronize()
    assert not out.any(), "not captured"
    x[...] = 21
    graph.launch(stream)
    assert (out == 42).all()
assert ("torch" in sys.modules) == WITH_TORCH
print("done")
"""


@pytest.mark.parametrize("with_torch", [False, True])
def test_streams_and_graphs_of_cupy(cupy: Any, with_torch: bool) -> None:
    if with_torch:
        pytest.importorskip("torch")
    code = STREAMS.replace("WITH_TORCH", str(with_torch))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr
