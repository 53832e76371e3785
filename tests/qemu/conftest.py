"""The devices of `tests/qemu`, and what tests of kernels need."""

import pytest

from tests.kernels.conftest import _quiet_references, rng
from tests.qemu import MACHINES, ForeignCpu, missing

__all__ = ["_quiet_references", "rng"]


@pytest.fixture(params=MACHINES)
def device(request: pytest.FixtureRequest) -> ForeignCpu:
    """Each machine whose programs can be run here."""
    reason = missing(request.param)
    if reason is not None:
        pytest.skip(reason)
    return ForeignCpu(request.param)
