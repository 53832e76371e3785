"""The passes between the frontend's tile IR and CPU code, in order: read this first."""

from __future__ import annotations

from tilewright.backends.base import StageContext
from tilewright.backends.cpu.select_transposes import select_transposes
from tilewright.ir import Module


def run_pipeline(module: Module, context: StageContext) -> None:
    """Run every pass on the kernel."""
    select_transposes(module.kernel)
