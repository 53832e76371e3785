"""Launches on a GPU: arguments, grids, streams, graphs, threads, mistakes and faults."""

import os
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tests.unit.backends.nvidia.gpu_kernels import (
    ADD,
    ADD_PARAMETERS,
    CLUSTER,
    SHARED,
    THREADS,
    build,
    needs_gpu,
    ptx_of,
    store_all,
)
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.driver.cuda_driver import driver
from tilewright.backends.nvidia.driver.cuda_errors import LaunchRefused
from tilewright.backends.nvidia.driver.event_timer import DeviceMemory
from tilewright.backends.nvidia.driver.gpu_launcher import NvidiaLauncher, synchronize
from tilewright.support import errors

pytestmark = needs_gpu


def on_device(values: np.ndarray) -> DeviceMemory:
    memory = DeviceMemory(values.nbytes, 0)
    memory.write(values.tobytes())
    return memory


def poisoned(count: int) -> DeviceMemory:
    return on_device(np.full(count, np.nan, np.float32))


def floats(memory: DeviceMemory) -> np.ndarray:
    return np.frombuffer(memory.read(), np.float32)


def add_one_block(kernel: NvidiaLauncher, scale: float = 2.0) -> None:
    """Launch over one block and compare."""
    x, y = np.random.default_rng(0).standard_normal((2, THREADS), np.float32)
    out = poisoned(THREADS)
    kernel.launch((1, 1, 1), (on_device(x), on_device(y), out, THREADS, scale))
    np.testing.assert_allclose(floats(out), x + scale * y, rtol=1e-6)


@pytest.mark.parametrize("count", [1, 128, 100_003])
def test_vector_add(count: int) -> None:
    kernel = build(ADD, "add", ADD_PARAMETERS)
    x, y = np.random.default_rng(count).standard_normal((2, count), np.float32)
    dx, dy, out = on_device(x), on_device(y), poisoned(count)
    kernel.launch((-(-count // THREADS), 1, 1), (dx, dy.address, out, count, -1.5))
    np.testing.assert_allclose(floats(out), x - 1.5 * y, rtol=1e-6, atol=1e-6)
    assert kernel.n_regs > 0 and kernel.n_spills == 0


SCALARS = {
    "i1": (True, "?"), "i8": (-7, "b"), "i16": (-30_000, "h"), "i32": (-(2**31), "i"),
    "i64": (-(2**63), "q"), "u8": (250, "B"), "u16": (65_000, "H"), "u32": (2**32 - 3, "I"),
    "u64": (2**64 - 9, "Q"), "f16": (1.5, "e"), "f32": (0.15625, "f"), "f64": (2.7182818, "d"),
}  # fmt: skip


def test_every_type_of_scalar_arrives() -> None:
    kinds = [*SCALARS, "bf16"]
    kernel = build(store_all(kinds), "store_all", [*kinds, "ptr<i64>"])
    out = DeviceMemory(8 * len(kinds), 0)
    out.fill(0xCC)
    kernel.launch((1, 1, 1), (*(value for value, _ in SCALARS.values()), -2.75, out))
    data = out.read()
    for i, (value, code) in enumerate(SCALARS.values()):
        assert struct.unpack_from(f"<{code}", data, 8 * i) == (value,)
    bits = struct.unpack_from("<H", data, 8 * len(SCALARS))[0]
    assert struct.unpack("<f", struct.pack("<I", bits << 16)) == (-2.75,)


def test_empty_grid_runs_nothing() -> None:
    kernel = build(ADD, "add", ADD_PARAMETERS)
    out = poisoned(THREADS)
    kernel.launch((0, 1, 1), (out, out, out, THREADS, 1.0))
    synchronize()
    assert np.isnan(floats(out)).all()


def test_all_the_shared_memory_there_is() -> None:
    limit = row_for(driver().device(0).capability).shared_optin
    kernel = build(SHARED, "shared", ["ptr<i32>", "i32"], shared=limit)
    out = DeviceMemory(4, 0)
    kernel.launch((1, 1, 1), (out, limit - 4))
    assert out.read() == struct.pack("<i", 77)
    with pytest.raises(errors.OutOfResources, match="shared memory"):
        build(SHARED, "shared", ["ptr<i32>", "i32"], shared=limit + 16)


def clusters_seen(kernel: NvidiaLauncher, programs: int) -> list[int]:
    """Blocks of the cluster that each block of `programs` programs is in."""
    blocks = programs * kernel.shape.cluster[0]
    out = DeviceMemory(4 * blocks, 0)
    out.fill(0xCC)
    kernel.launch((programs, 1, 1), (out,))
    return list(struct.unpack(f"<{blocks}i", out.read()))


def test_clusters_cooperative_and_dependent_launches() -> None:
    if not row_for(driver().device(0).capability).clusters:
        pytest.skip("this GPU has no clusters")
    assert clusters_seen(build(CLUSTER, "cluster", ["ptr<i32>"], num_ctas=2), 7) == [2] * 14
    assert clusters_seen(build(CLUSTER, "cluster", ["ptr<i32>"], num_ctas=16), 1) == [16] * 16
    dependent = build(CLUSTER, "cluster", ["ptr<i32>"], launch_pdl=True)
    assert clusters_seen(dependent, 4) == clusters_seen(dependent, 4) == [1] * 4
    cooperative = build(CLUSTER, "cluster", ["ptr<i32>"], launch_cooperative_grid=True)
    assert clusters_seen(cooperative, 16) == [1] * 16
    with pytest.raises(LaunchRefused, match="must fit on the device"):
        clusters_seen(cooperative, 100_000)
    add_one_block(build(ADD, "add", ADD_PARAMETERS))


def test_thread_without_a_context() -> None:
    kernel = build(ADD, "add", ADD_PARAMETERS)
    seen: list[object] = []

    def work() -> None:
        seen.append(driver().has_context())
        add_one_block(kernel)
        seen.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False, "done"]


# --- mistakes -------------------------------------------------------------------------------------


def test_host_pointer_is_named_and_harmless() -> None:
    kernel = build(ADD, "add", ADD_PARAMETERS, names=["x", "y", "out", "n", "scale"])
    out, host = poisoned(THREADS), np.ones(THREADS, np.float32)
    with pytest.raises(errors.DeviceMismatch, match="'y' is on the host.*runs on cuda:0"):
        kernel.launch((1, 1, 1), (out, host.ctypes.data, out, THREADS, 1.0))
    add_one_block(kernel)


def test_grid_that_is_too_large() -> None:
    kernel = build(ADD, "add", ADD_PARAMETERS)
    out = poisoned(THREADS)
    with pytest.raises(LaunchRefused, match="65535"):
        kernel.launch((1, 65536, 1), (out, out, out, THREADS, 1.0))
    add_one_block(kernel)


FAULT = """
import time
from tests.unit.backends.nvidia.gpu_kernels import ADD, ADD_PARAMETERS, THREADS, WRITE_TO, build
from tests.unit.backends.nvidia.driver.test_gpu_launcher_gpu import add_one_block, poisoned
from tilewright.backends.nvidia.driver.cuda_errors import KernelFault
from tilewright.backends.nvidia.driver.gpu_launcher import synchronize
add, write = build(ADD, "add", ADD_PARAMETERS), build(WRITE_TO, "write_to", ["i64"])
add_one_block(add)
out = poisoned(THREADS)
synchronize()
try:
    write.launch((3, 1, 1), (16,))
    print("launched")
    time.sleep(0.5)
    add.launch((1, 1, 1), (out, out, out, THREADS, 1.0))
    print("no error at all")
except KernelFault as error:
    print(error)
"""


@pytest.mark.parametrize("blocking", [False, True])
def test_illegal_address_is_an_exception_that_names_the_launch(blocking: bool) -> None:
    env = {**os.environ, "TILEWRIGHT_LAUNCH_BLOCKING": str(int(blocking))}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", FAULT], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("launched" in done.stdout) != blocking
    assert "an access to an illegal address in the launch write_to[(3, 1, 1)]" in done.stdout
    assert "context of this process is lost" in done.stdout


ASSERTS = """
import time
import torch
from tests.kernels.test_printing import assert_kernel
import tilewright
x = torch.arange(1, 101, dtype=torch.int32, device="cuda")
out = torch.zeros_like(x)
x[70] = -1
def launch():
    assert_kernel[4, ](x, out, 100, BLOCK=32, debug=True)
try:
    launch()
except tilewright.errors.DeviceAssertionFailure as error:
    print("waited for:", error)
print("alive:", out[:64].tolist() == x[:64].tolist())
compiled = assert_kernel.warmup(x, out, 100, BLOCK=32, debug=True, grid=(4,))
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    launch()
x[70] = 1
graph.replay()
print("replayed:", torch.equal(out, x))
x[70] = -1
launcher = compiled.launcher
stream = torch.cuda.current_stream().cuda_stream
launcher.launch_on_stream(4, 1, 1, stream, x, out, 100)
try:
    torch.cuda.synchronize()
except RuntimeError as error:
    print("torch:", type(error).__name__)
try:
    launcher.launch_on_stream(4, 1, 1, stream, x, out, 100)
except tilewright.errors.DeviceAssertionFailure as error:
    print("trapped:", error)
"""


def test_assertions_of_launches_that_are_waited_for_and_of_others() -> None:
    pytest.importorskip("torch")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", ASSERTS], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    message = "device assertion failed in program (2, 0, 0): values must be positive, at (6)"
    assert f"waited for: {message}" in " ".join(done.stdout.split())
    assert "alive: True" in done.stdout and "replayed: True" in done.stdout
    assert "torch: " in done.stdout
    assert f"trapped: {message}" in " ".join(done.stdout.split())


# --- beside PyTorch -------------------------------------------------------------------------------


def test_torch_tensors_and_the_current_stream() -> None:
    torch = pytest.importorskip("torch")
    kernel = build(ADD, "add", ADD_PARAMETERS)
    x, y = torch.randn(2, THREADS, device="cuda")
    out = torch.full((THREADS,), float("nan"), device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(10_000_000)
        filled = torch.full((THREADS,), 3.0, device="cuda")
        kernel.launch((1, 1, 1), (x, filled, out, THREADS, 1.0))
        assert torch.equal(out, x + 3.0)
    with pytest.raises(errors.DeviceMismatch, match="on the host"):
        kernel.launch((1, 1, 1), (x, y.cpu(), out, THREADS, 1.0))
    pinned = torch.ones(THREADS).pin_memory()
    kernel.launch((1, 1, 1), (x, pinned, out, THREADS, 1.0))
    assert torch.equal(out, x + 1.0)


def test_kernel_loaded_and_launched_while_a_graph_is_captured() -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.randn(2, THREADS, device="cuda")
    out = torch.zeros(THREADS, device="cuda")
    cubin = driver().compile_ptx(ptx_of(ADD), "add", 0).cubin
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel = NvidiaLauncher(cubin, {"name": "add", "num_warps": 4}, ADD_PARAMETERS)
        kernel.launch((1, 1, 1), (x, y, out, THREADS, 1.0))
    del kernel
    assert not out.any()
    x.normal_()
    graph.replay()
    assert torch.equal(out, x + y)


def test_cost_of_a_launch() -> None:
    """At most 1.5 us over the driver's own launch, here taken as a launch of nothing to convert."""
    kernel = build(ADD, "add", ADD_PARAMETERS)
    out = poisoned(THREADS)
    address, entry = out.address, kernel.entry(0)
    empty = build("define ptx_kernel void @empty() {\n  ret void\n}\n", "empty", []).entry(0)

    def best(launch: object) -> float:
        rounds: list[float] = []
        for _ in range(10):
            synchronize(0)
            start = time.perf_counter()
            for _ in range(300):
                if launch is entry:
                    entry(1, 1, 1, 0, address, address, address, THREADS, 1.0)
                else:
                    empty(1, 1, 1, 0)
            rounds.append((time.perf_counter() - start) / 300)
        return min(rounds) * 1e6

    assert best(entry) - best(empty) < 1.5
