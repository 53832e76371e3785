"""Direct launches on GPUs, by a fake driver: device, stream and addresses; other architectures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.backends.nvidia.fake_cuda import DEVICE_BASE, FakeCuda
from tests.unit.backends.nvidia.fake_launch import DEVICE
from tilewright.backends import GPUTarget
from tilewright.backends.nvidia import backend
from tilewright.backends.nvidia.driver import gpu_launcher
from tilewright.backends.nvidia.driver.gpu_launcher import NvidiaLauncher
from tilewright.jax.direct_launch import DirectLaunch

STREAM = 0x57
METADATA = {"name": "add", "num_warps": 4, "shared": 0, "num_ctas": 1}


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    cuda = FakeCuda((90,) * DEVICE + (90, 80))
    monkeypatch.setattr(gpu_launcher, "device_and_stream", lambda: (0, 0))
    return cuda


def launch_on(cuda: FakeCuda, current: int) -> DirectLaunch:
    """A launch of two pointers and a number, compiled for the first device."""
    cuda.machine.expect(3)
    launcher = NvidiaLauncher(b"\x7fELF", dict(METADATA), ["ptr<f32>"] * 2 + ["i32"], cuda.driver())
    here = GPUTarget("cuda", cuda.devices[current], 32)
    served = SimpleNamespace(memory=backend.BACKEND.memory, target=lambda: here)
    compiled: Any = SimpleNamespace(
        backend=served, target=GPUTarget("cuda", 90, 32), launcher=launcher
    )
    kernel: Any = SimpleNamespace(pre_run_hooks=[])
    return DirectLaunch(kernel, compiled, (2, 3, 1), [1, 0, (7,)], set())


def test_a_launch_is_on_the_device_and_in_the_stream_of_the_call(cuda: FakeCuda) -> None:
    launch = launch_on(cuda, DEVICE)
    batch = [[DEVICE_BASE, DEVICE_BASE + 64]]
    assert launch.takes(batch, DEVICE)
    launch.launch(batch, DEVICE, STREAM)
    got = cuda.machine.launched()
    assert (got.grid, got.stream, got.slots) == (
        (2, 3, 1), STREAM, [DEVICE_BASE + 64, DEVICE_BASE, 7],
    )  # fmt: skip
    assert cuda.machine.calls == 1 and [device for device, _ in cuda.images] == [0, DEVICE]


def test_gpus_of_another_architecture_and_cpus_take_none(cuda: FakeCuda) -> None:
    launch = launch_on(cuda, DEVICE + 1)
    assert not launch.takes([[DEVICE_BASE, DEVICE_BASE]], DEVICE + 1)
    assert not launch.takes([[DEVICE_BASE, DEVICE_BASE]], None)
