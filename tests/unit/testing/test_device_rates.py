"""What a device can do at most."""

from typing import Any

import pytest

import tilewright.language as tl
from tilewright.runtime import ActiveDriver, driver
from tilewright.support import errors
from tilewright.testing import get_dram_gbps, get_max_simd_tflops, get_max_tensorcore_tflops, nvsmi


@pytest.fixture(autouse=True)
def properties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of an H200, as its driver tells them."""
    told = {"multiprocessor_count": 132, "mem_clock_rate": 3_201_000, "mem_bus_width": 6144}
    utils: Any = driver.active.utils
    monkeypatch.setattr(type(utils), "get_device_properties", lambda _self, _device=0: told)


def test_rates_are_those_of_the_properties() -> None:
    assert isinstance(driver.active, ActiveDriver)
    assert get_dram_gbps() == get_dram_gbps(0) == pytest.approx(4916.7, rel=1e-3)
    assert get_max_tensorcore_tflops(tl.float16, 1e6) == pytest.approx(270.3, rel=1e-3)
    assert get_max_tensorcore_tflops("torch.int8", 1e6, 0) == pytest.approx(540.7, rel=1e-3)
    assert get_max_simd_tflops(tl.float32, 1e6) == pytest.approx(16.9, rel=1e-3)


def test_a_dtype_without_a_rate_is_refused() -> None:
    with pytest.raises(errors.InvalidValue, match="float64"):
        get_max_simd_tflops(tl.float64, 1e6)


def test_clocks_are_those_that_nvidia_smi_tells(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\necho "1980, 2619"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert nvsmi(["clocks.max.sm", "clocks.max.mem"]) == [1980, 2619]
