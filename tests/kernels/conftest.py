"""The devices that every kernel test runs on, and repeatable random numbers."""

import os
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.kernels.devices import DEVICES, Device
from tests.qemu import MACHINES, ForeignCpu

_USUAL = ["interpreter", "cpu", "emulated", pytest.param("nvidia", marks=pytest.mark.gpu)]
_CHOSEN = os.environ.get("KERNEL_TEST_DEVICES", "").split()
"""Devices to test instead of the usual ones, such as `aarch64`: see `tests/qemu`."""


@pytest.fixture(params=_CHOSEN or _USUAL)
def device(request: pytest.FixtureRequest) -> Device:
    """One of the devices; see `tests/kernels/devices.py`."""
    name: str = request.param
    return ForeignCpu(name) if name in MACHINES else DEVICES[name]()


@pytest.fixture(autouse=True)
def _quiet_references() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """References are computed for infinities and NaNs too."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers of the test's own: other tests get others, another run gets the same."""
    case: Any = request.node
    return np.random.default_rng(zlib.crc32(case.nodeid.encode()))
