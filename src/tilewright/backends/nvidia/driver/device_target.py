"""The current device as a target."""

from __future__ import annotations

from tilewright.backends.manifest import GPUTarget
from tilewright.backends.nvidia.driver.cuda_driver import driver, unavailable_reason
from tilewright.backends.nvidia.driver.cuda_errors import CudaAfterFork, CudaCallFailed


def is_device_target(target: GPUTarget) -> bool:
    """Whether the driver's compiler can assemble for a target: it is the device here, and the
    driver works, unlike in a child that was forked after its start, or after a fault."""
    if unavailable_reason() is not None:
        return False
    try:
        return device_capability() == int(target.arch)
    except (CudaAfterFork, CudaCallFailed):
        return False


def device_capability() -> int:
    """Capability of the current device: 10 * major + minor. Errors: those of the driver."""
    return driver().device(driver().current_device()).capability
