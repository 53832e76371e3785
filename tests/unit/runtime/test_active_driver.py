"""Questions about the device under Triton's names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.backends.nvidia.fake_cuda import FakeCuda
from tilewright.backends import DEVICE_PROPERTIES, GPUTarget
from tilewright.backends.nvidia import backend
from tilewright.backends.nvidia.driver import current_stream, device_target, driver_library
from tilewright.runtime import ActiveDriver, Driver, driver, errors
from tilewright.runtime.active_driver import backend_of
from tilewright.support import settings


@pytest.fixture(autouse=True)
def cpu() -> Iterator[ActiveDriver]:
    driver.set_active_to_cpu()
    yield driver.active
    driver.reset_active()


def test_target_and_device() -> None:
    target = driver.active.get_current_target()
    assert isinstance(target, GPUTarget)
    assert (target.backend, target.warp_size) == ("cpu", 1)
    assert driver.active.get_current_device() == 0
    assert driver.active.get_current_stream(0) == 0


def test_properties() -> None:
    properties = driver.active.utils.get_device_properties(0)
    assert properties["multiprocessor_count"] >= 1
    assert properties["max_shared_mem"] > 0
    assert properties.keys() == set(DEVICE_PROPERTIES)
    with settings().cpu.scope(threads=3):
        assert driver.active.utils.get_device_properties(0)["multiprocessor_count"] == 3


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> ActiveDriver:
    """The driver of a machine with two GPUs, of which the second is the current device."""
    api = FakeCuda().driver()
    api.make_current(1)
    monkeypatch.setattr(driver_library, "has_driver", lambda: True)
    monkeypatch.setattr(backend, "unavailable_reason", lambda: None)
    for module in (backend, device_target, current_stream):
        monkeypatch.setattr(module, "driver", lambda: api)
    monkeypatch.setattr(current_stream, "_source", current_stream._choose)
    for library in ("torch", "cupy"):
        monkeypatch.delitem(sys.modules, library, raising=False)
    return Driver().active


def test_a_usable_gpu_is_the_active_device(gpus: ActiveDriver) -> None:
    assert gpus.get_current_target() == GPUTarget("cuda", 90, 32)
    assert (gpus.get_current_device(), gpus.get_current_stream(1)) == (1, 0)
    assert gpus.utils.get_device_properties(0) == {
        "max_shared_mem": 232448,
        "max_num_regs": 1012,
        "multiprocessor_count": 132,
        "max_threads_per_sm": 1039,
        "warpSize": 32,
        "sm_clock_rate": 1013,
        "mem_clock_rate": 2619000,
        "mem_bus_width": 5120,
    }
    assert set(DEVICE_PROPERTIES) == set(gpus.utils.get_device_properties(1))


def test_torch_and_cupy_tell_the_streams_of_a_gpu(
    gpus: ActiveDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def current_stream(device: int) -> SimpleNamespace:
        return SimpleNamespace(ptr=0x70 + device)

    cupy = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=current_stream))
    monkeypatch.setitem(sys.modules, "cupy", cupy)  # type: ignore[arg-type]
    assert [gpus.get_current_stream(device) for device in (0, 1)] == [0x70, 0x71]
    internals = SimpleNamespace(
        _cuda_getDevice=lambda: 0, _cuda_getCurrentRawStream=lambda device: 0x90 + device
    )
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_initialized=lambda: True),
        _C=internals,
        device=lambda *args: args,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    assert gpus.get_current_device() == 0
    assert [gpus.get_current_stream(device) for device in (0, 1)] == [0x90, 0x91]
    assert gpus.get_active_torch_device() == ("cuda", 0)
    assert gpus.get_device_interface() is torch.cuda


@pytest.mark.gpu
def test_the_properties_of_a_gpu_are_those_that_its_driver_tells() -> None:
    active = Driver().active
    assert active.backend.name == "cuda"
    assert isinstance(active.get_current_target().arch, int)
    properties = active.utils.get_device_properties(active.get_current_device())
    assert properties.keys() == set(DEVICE_PROPERTIES)
    assert properties["max_num_regs"] == 65536
    assert properties["warpSize"] == 32
    assert properties["max_threads_per_sm"] in (1024, 1536, 2048)
    assert properties["max_shared_mem"] >= 64 * 1024
    assert all(value > 0 for value in properties.values())


@pytest.mark.gpu
@pytest.mark.torch
def test_the_properties_of_a_gpu_are_those_that_torch_tells() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    torch.cuda.init()
    active = Driver().active
    properties = active.utils.get_device_properties(0)
    told = torch.cuda.get_device_properties(0)
    assert properties["multiprocessor_count"] == told.multi_processor_count
    assert properties["max_shared_mem"] == told.shared_memory_per_block_optin
    assert properties["max_threads_per_sm"] == told.max_threads_per_multi_processor
    assert active.get_current_stream(0) == torch.cuda.current_stream(0).cuda_stream
    assert active.get_active_torch_device() == torch.device("cuda", 0)


def test_another_driver_can_be_active() -> None:
    own = Driver()
    one = ActiveDriver(driver.active.backend)
    own.set_active(one)
    assert own.active is one
    own.reset_active()


def test_torch_is_asked_but_never_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(errors.TilewrightError, match="not imported"):
        driver.active.get_active_torch_device()
    fake = SimpleNamespace(device=lambda *args: args, cpu="torch.cpu")
    monkeypatch.setitem(sys.modules, "torch", fake)  # type: ignore[arg-type]
    assert driver.active.get_active_torch_device() == ("cpu",)
    assert driver.active.get_device_interface() == "torch.cpu"


def test_benchmarker() -> None:
    assert driver.active.get_benchmarker()(lambda: None, warmup=0.01, rep=0.01) >= 0


def test_backends_of_devices() -> None:
    found = backend_of("cpu")
    assert found is not None
    assert found.name == "cpu"
    assert backend_of("meta") is None


@tilewright.jit
def rows_of_a_program(x, y, stride, rows, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        v = tl.load(x + row * stride + i, mask=i < n, other=-float("inf"))
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + row * stride + i, e / tl.sum(e, 0), mask=i < n)


def test_programs_choose_a_grid_by_registers_and_shared_memory() -> None:
    """As tutorials do, which divide by both of a kernel."""
    properties = driver.active.utils.get_device_properties(driver.active.get_current_device())
    x = np.random.default_rng(0).normal(size=(37, 100)).astype("f")
    y = np.zeros_like(x)
    kernel = rows_of_a_program.warmup(x, y, 100, 37, 100, B=128, num_warps=8, grid=(1,))
    assert kernel.n_regs >= 1 and kernel.metadata.shared >= 1
    assert kernel.n_spills is None  # torch.compile skips configurations by numbers only
    occupancy = properties["max_num_regs"] // (kernel.n_regs * properties["warpSize"] * 8)
    occupancy = min(occupancy, properties["max_shared_mem"] // kernel.metadata.shared)
    programs = min(properties["multiprocessor_count"] * occupancy, 37)
    assert programs >= 1
    kernel[(programs, 1, 1)](x, y, 100, 37, 100, 128)
    exact = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, exact / exact.sum(1, keepdims=True), rtol=1e-5)
