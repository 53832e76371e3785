"""Questions about the device under Triton's names."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tilewright.backends import GPUTarget
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
    with settings().cpu.scope(threads=3):
        assert driver.active.utils.get_device_properties(0)["multiprocessor_count"] == 3


def test_another_driver_can_be_active() -> None:
    own = Driver()
    one = ActiveDriver(driver.active.backend)
    own.set_active(one)
    assert own.active is one
    own.reset_active()


def test_torch_is_asked_but_never_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "torch", raising=False)
    with pytest.raises(errors.TilewrightError, match="not imported"):
        driver.active.get_active_torch_device()
    fake = SimpleNamespace(device=lambda *args: args, cpu="torch.cpu")
    monkeypatch.setitem(__import__("sys").modules, "torch", fake)  # type: ignore[arg-type]
    assert driver.active.get_active_torch_device() == ("cpu",)
    assert driver.active.get_device_interface() == "torch.cpu"


def test_benchmarker() -> None:
    assert driver.active.get_benchmarker()(lambda: None, warmup=0.01, rep=0.01) >= 0


def test_backends_of_devices() -> None:
    found = backend_of("cpu")
    assert found is not None
    assert found.name == "cpu"
    assert backend_of("meta") is None
