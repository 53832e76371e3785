"""Occupancy: resident programs of a multiprocessor, and the resource that limits them.

The rules are those of the CUDA occupancy calculator: registers are allocated to warps in units,
shared memory to programs in units of 128 bytes, with the driver's share for each.
"""

from __future__ import annotations

from tilewright.backends.explanation import Resources
from tilewright.backends.nvidia.arch import Arch

_SHARED_UNIT = 128


def resources_of(arch: Arch, warps: int, registers: int, spills: int, shared: int) -> Resources:
    """registers: per thread; spills: words per thread; shared: bytes per program."""
    # The first of equal limits is named.
    limits = {
        "warps": arch.warps_sm // warps,
        "programs": arch.blocks_sm,
        "registers": _by_registers(arch, warps, registers),
        "shared memory": arch.shared_sm // max(1, _shared_bytes(arch, shared)),
    }
    limit = min(limits, key=lambda name: limits[name])
    programs = limits[limit]
    occupancy = programs * warps / arch.warps_sm
    return Resources(registers, spills, shared, warps, programs, limit, occupancy)


def _by_registers(arch: Arch, warps: int, registers: int) -> int:
    each = max(1, registers) * arch.warp_size
    each += -each % arch.register_unit
    return arch.registers_sm // each // warps


def _shared_bytes(arch: Arch, shared: int) -> int:
    used = shared + arch.shared_reserved
    return used + -used % _SHARED_UNIT
