"""Peak rates of this machine, for the roofline of a launch.

Arithmetic: the clock that Linux states, times lanes, two FMA units and threads. Memory: measured
once per process, by copying arrays with all threads.
"""

from __future__ import annotations

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from tilewright.backends.cpu.microkernel import VectorUnit
from tilewright.backends.explanation import Bound
from tilewright.backends.launch_work import LaunchWork
from tilewright.ir.types import all_dtypes
from tilewright.llvm import TargetCpu

_UNITS = 2
"""FMA units of a core: of Intel's and AMD's server cores, and of Arm's with 128 bits or more."""

_COPIED = 1 << 25
"""Bytes of each thread's array: more than its part of usual last-level caches."""

_AMX_FLOPS = {"bf16": 2048, "i8": 4096, "u8": 4096}
"""Operations of AMX per core and cycle."""

_USUAL_CLOCK = 2.5e9


def host_bound(work: LaunchWork, cpu: TargetCpu, unit: VectorUnit, threads: int) -> Bound | None:
    """The bound of a launch here; None for the code of another machine."""
    if not cpu.runs_here:
        return None
    clock, source = _clock()
    cycles = sum(flops / _per_cycle(kind, unit) for kind, flops in work.dots.items())
    cycles += work.other / _per_cycle("f32", unit)
    bandwidth = _copy_bandwidth(threads)
    device = (
        f"{threads} thread{'s' * (threads != 1)} of this CPU ({clock / 1e9:.1f} GHz {source}, "
        f"{bandwidth / 1e9:.0f} GB/s measured by copying)"
    )
    return Bound(
        device, sum(work.dots.values()), work.other, work.requested, work.distinct,
        cycles / (clock * threads), work.distinct / bandwidth,
    )  # fmt: skip


def _per_cycle(kind: str, unit: VectorUnit) -> float:
    """Operations of a core per cycle, by the type of operands; those of f16 are computed in f32."""
    amx = {"bf16": "bfloat"}.get(kind, kind)
    if amx in unit.tiles:
        return _AMX_FLOPS[kind]
    bits = {dtype.name: dtype.bits for dtype in all_dtypes()}.get(kind, 32)
    return 2 * _UNITS * unit.bits / max(bits, 32)


@functools.cache
def _clock() -> tuple[float, str]:
    """Hz of the first core, and where they are from."""
    most = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    if most.is_file():
        return float(most.read_text()) * 1e3, "at most"
    now = Path("/proc/cpuinfo")
    lines = now.read_text().splitlines() if now.is_file() else []
    found = [float(x.partition(":")[2]) * 1e6 for x in lines if x.startswith("cpu MHz")]
    return (max(found), "now") if found else (_USUAL_CLOCK, "assumed")


@functools.cache
def _copy_bandwidth(threads: int) -> float:
    """Bytes per second read and written by all threads."""
    arrays = [np.ones((2, _COPIED // 8)) for _ in range(threads)]

    def copy(pair: np.ndarray) -> None:
        np.copyto(pair[1], pair[0])

    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(4):
            start = time.perf_counter()
            list(pool.map(copy, arrays))
            best = min(best, time.perf_counter() - start)
    return 2 * _COPIED * threads / best
