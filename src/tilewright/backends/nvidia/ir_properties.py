"""Properties of tile IR by which the steps of the NVIDIA pipeline are ordered.

contracts.py checks ops and types for properties that limit them; `bound` joins both for a target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from tilewright.backends.nvidia import contracts
from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.passes.insert_shared_barriers import unordered_uses
from tilewright.ir import Contract, Property

FRONT_END = Property("ops are those that front ends make, without layouts")
POWERS_OF_TWO = Property("tiles have power-of-two shapes")
LEGAL_DOTS = Property("dots are those of tensor cores, or FMA dots")
LEGAL_ARITHMETIC = Property("arithmetic is that of the architecture")
LEGAL_CASTS = Property("casts are those of the architecture")
OWN_BARRIERS = Property("barriers are those of the kernel")
PROGRAM_ADDRESSES = Property("addresses derive from program ids by plain divisions")
SELECTED_MMA = Property("each dot has its MMA instruction")
TMA_ONLY = Property("descriptor accesses are those by TMA")
LAYOUTS = Property("every tile has a layout")
MERGED = Property("equal values are computed once")
ROLES = Property("warps have their roles")
SCHEDULED = Property("loads of loops are issued ahead, where they can be")
WGMMA_WAITS = Property("waits for wgmma are before the first use of their results")
GLOBAL_ORDER = Property("accesses of threads to the same global memory are ordered")
STORE_WAITS = Property("TMA stores are waited for before their buffers are written again")
NO_EXCHANGES = Property("exchanges between warps are reads and writes of buffers")
SHARED_ORDER = Property("every shared-memory hazard is separated by a barrier")

_CONTRACTS: Mapping[Property, Callable[[Arch, int], Contract]] = {
    FRONT_END: lambda arch, warps: contracts.front_end(),
    POWERS_OF_TWO: lambda arch, warps: contracts.legal_shapes(),
    LEGAL_DOTS: lambda arch, warps: contracts.legal_dots(arch),
    LEGAL_ARITHMETIC: lambda arch, warps: contracts.legal_arithmetic(arch),
    LEGAL_CASTS: lambda arch, warps: contracts.legal_instructions(arch),
    SELECTED_MMA: lambda arch, warps: contracts.selected_mma(arch),
    LAYOUTS: contracts.legal_layouts,
    ROLES: contracts.legal_copies,
    SCHEDULED: contracts.legal_copies,
    NO_EXCHANGES: contracts.legal_copies,
}


def bound(each: Property, arch: Arch, warps: int) -> Property:
    """The property with its contract and check for an architecture. warps: of a program."""
    if each == SHARED_ORDER:
        return replace(each, check=partial(unordered_uses, arch=arch))
    contract = _CONTRACTS.get(each)
    return each if contract is None else replace(each, contract=contract(arch, warps))
