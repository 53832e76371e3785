"""The CPU that a target names."""

from __future__ import annotations

from tilewright.backends.manifest import GPUTarget
from tilewright.llvm import CPU_NAMES, TargetCpu, cpu_named, host_cpu
from tilewright.support import errors


def target_cpu(target: GPUTarget) -> TargetCpu:
    """The CPU that a target names. Errors: UnknownTarget."""
    cpu = cpu_named(str(target.arch))
    if cpu is None:
        raise errors.UnknownTarget(f"cpu:{target.arch}", (host_cpu().name, *CPU_NAMES))
    return cpu
