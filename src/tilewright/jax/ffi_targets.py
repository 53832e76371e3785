"""The foreign functions that XLA calls: one for CPUs, one for NVIDIA GPUs."""

from __future__ import annotations

from functools import cache
from typing import Any

from tilewright.jax.call_frame import CallFrame, Function
from tilewright.jax.launch_plan import LaunchPlan
from tilewright.support import import_late

TARGET = "tilewright_launch"
PLAN = "plan"
"""The attribute that names a plan."""


def _handle(address: int, on_gpu: bool) -> int | None:
    frame = CallFrame(address)
    if frame.answers_query():
        return None
    try:
        plan = LaunchPlan.known[frame.text(PLAN)]
        stream = frame.stream() if on_gpu else None
        plan.launch(frame.arguments(), frame.results(), stream)
    except BaseException as problem:  # nothing above this frame is Python
        return frame.error(f"{type(problem).__name__}: {problem}")
    return None


@Function
def _on_cpu(address: int) -> int | None:
    return _handle(address, on_gpu=False)


@Function
def _on_gpu(address: int) -> int | None:
    return _handle(address, on_gpu=True)


@cache
def registered() -> str:
    """The name of the foreign functions, which are registered at the first call."""
    ffi: Any = import_late("jax.ffi")
    for platform, handler in (("cpu", _on_cpu), ("CUDA", _on_gpu)):
        ffi.register_ffi_target(TARGET, ffi.pycapsule(handler), platform=platform, api_version=1)
    return TARGET
