"""Roofline: the least time of a launch, from its work and the peaks of a device.

Peaks of one multiprocessor are those of its architecture; number, clock and bandwidth are those of
the device here, if it has this architecture, otherwise of a common one.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.backends.explanation import Bound, LaunchSizes
from tilewright.backends.launch_work import LaunchWork, launch_work
from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.driver.cuda_driver import driver, unavailable_reason
from tilewright.backends.nvidia.driver.cuda_errors import CudaAfterFork, CudaCallFailed
from tilewright.ir import Function
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class _Chip:
    """A chip: name, multiprocessors, boost clock in Hz, bandwidth in bytes per second. f16, f32:
    FLOPs of dense 16-bit dots and of FMAs, per multiprocessor and cycle; f64: of double dots on
    tensor cores, 0 without."""

    name: str
    multiprocessors: int
    clock: float
    bandwidth: float
    f16: int
    f32: int
    f64: int = 0


_CHIPS = {
    75: _Chip("T4", 40, 1.59e9, 320e9, 1024, 128),
    80: _Chip("A100", 108, 1.41e9, 2039e9, 2048, 128, 128),
    86: _Chip("A10", 72, 1.695e9, 600e9, 1024, 256),
    89: _Chip("L40S", 142, 2.52e9, 864e9, 1024, 256),
    90: _Chip("H100 SXM", 132, 1.83e9, 3352e9, 4096, 256, 256),
    100: _Chip("B200", 148, 1.85e9, 8000e9, 8192, 256, 128),
    120: _Chip("RTX PRO 6000", 188, 2.617e9, 1792e9, 1024, 256),
}
"""Chips by capability, from NVIDIA's data sheets: dense FLOP/s over multiprocessors and clock."""

_SPEEDUP = {"f16": 1.0, "bf16": 1.0, "i8": 2.0, "u8": 2.0, "f8e4m3": 2.0, "f8e5m2": 2.0, "f32": 0.5}
"""Speed of tensor cores by operand type, relative to f16; f32 is tf32."""


def bound_of(function: Function, sizes: LaunchSizes, arch: Arch) -> Bound:
    """The bound of a kernel in the front end's form. Errors: InvalidOption, see `launch_work`."""
    work, chip = launch_work(function, sizes), _chip(arch)
    rate = chip.multiprocessors * chip.clock
    cycles = _dot_cycles(work, chip, arch) + work.other / chip.f32
    return Bound(
        chip.name,
        sum(work.dots.values()),
        work.other,
        work.requested,
        work.distinct,
        cycles / rate,
        work.distinct / chip.bandwidth,
    )


def _dot_cycles(work: LaunchWork, chip: _Chip, arch: Arch) -> float:
    """Cycles of the work on one multiprocessor."""
    cycles = 0.0
    for kind, flops in work.dots.items():
        operand = "tf32" if kind == "f32" else kind
        if not any(form.operand == operand for form in arch.mma):
            cycles += flops / chip.f32
        elif kind == "f64":
            cycles += flops / (chip.f64 or chip.f32 / 32)
        else:
            cycles += flops / (chip.f16 * _SPEEDUP[kind])
    return cycles


def _chip(arch: Arch) -> _Chip:
    """The device here, if code for the architecture runs on it."""
    usual = _CHIPS.get(arch.capability) or _CHIPS[arch.capability // 10 * 10]
    if unavailable_reason() is not None:
        return usual
    try:
        device = driver().device(driver().current_device())
    except (CudaAfterFork, CudaCallFailed):
        return usual
    if device.capability != arch.capability:
        return usual
    return replace(
        usual,
        name=device.name,
        multiprocessors=device.multiprocessors,
        clock=device.clock * 1e3,
        bandwidth=device.bandwidth,
    )
