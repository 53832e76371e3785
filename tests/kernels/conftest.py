"""The devices that every kernel test runs on, and repeatable random numbers."""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.kernels.devices import DEVICES, Device


@pytest.fixture(
    params=[
        "interpreter",
        "cpu",
        "emulated",
        pytest.param("nvidia", marks=pytest.mark.gpu),
    ]
)
def device(request: pytest.FixtureRequest) -> Device:
    """One of the devices; see `tests/kernels/devices.py`."""
    return DEVICES[request.param]()


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
