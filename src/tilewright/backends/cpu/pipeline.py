"""The passes between the frontend's tile IR and CPU code, in order: read this first."""

from __future__ import annotations

from tilewright.backends.base import StageContext
from tilewright.backends.cpu.prepare import prepare
from tilewright.backends.cpu.reciprocal import use_reciprocals
from tilewright.backends.cpu.select_transposes import select_transposes
from tilewright.ir import Module
from tilewright.llvm import host_cpu


def run_pipeline(module: Module, context: StageContext) -> None:
    """Run every pass on the kernel."""
    use_reciprocals(module.kernel)
    prepare(module.kernel, fma=host_cpu().has_fma)
    select_transposes(module.kernel)
