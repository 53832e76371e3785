"""Contracts: legal tile IR between the passes for NVIDIA GPUs.

A contract is one object for all steps and kernels that keep it: it caches legal types.

the front end               shared ops; no layouts
nvidia-legalize-shapes      shapes are powers of two
nvidia-legalize-dots        dots that tensor cores compute, or nvidia.dot_fma
nvidia-legalize-arithmetic  and arithmetic that is an instruction
nvidia-legalize-casts       and casts that are instructions
nvidia-select-mma           and wgmma dots, with their operands in buffers
nvidia-assign-layouts       and every tile has a layout, as the lowering of its op requires
nvidia-software-pipeline    and buffers that are copied ahead
nvidia-lower-exchanges      and those of conversions, also without pipelines
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

from tilewright.backends.manifest import legal_ops
from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.buffer_ops import (
    AllocOp,
    AsyncCopyOp,
    CommitOp,
    PartOp,
    ReadOp,
    ShareOp,
    TransposeViewOp,
    ViewOp,
    WaitOp,
    WgmmaOp,
    WgmmaWaitOp,
    WriteOp,
)
from tilewright.backends.nvidia.bulk_ops import (
    BulkCopyOp,
    BulkStoreWaitOp,
    MbarrierArriveOp,
    MbarriersOp,
    MbarrierWaitOp,
    ProxyFenceOp,
    StorePanelOp,
    WritePanelOp,
)
from tilewright.backends.nvidia.exchange_ops import (
    CountOp,
    KeepBetterOp,
    MergeRunsOp,
    OrderPairsOp,
    ReadAtOp,
    ReadPartnerOp,
    ScanJoinOp,
    SharedFmaDotOp,
    WriteLastOp,
)
from tilewright.backends.nvidia.layouts.layout_rules import broken_rule
from tilewright.backends.nvidia.ops import ConvertOp, FmaDotOp, WarpBarrierOp
from tilewright.backends.nvidia.passes.legalize_arithmetic import illegal_arithmetic
from tilewright.backends.nvidia.passes.legalize_casts import illegal_cast
from tilewright.backends.nvidia.passes.legalize_dots import illegal_dot
from tilewright.backends.nvidia.role_ops import BlockOp, BlocksOp, NeighbourOp, RolesOp
from tilewright.ir import Contract, Op
from tilewright.ir.types import TileType, Type, shape_of
from tilewright.ops import CastOp, DotOp
from tilewright.transforms import layout_problem
from tilewright.transforms.expand import missing_instruction

_OpProblem = Callable[[Op], str | None]
_Checks = Mapping[type[Op], _OpProblem]


def _extent_problem(type_: Type) -> str | None:
    """Layouts are linear maps of bits: of indices below powers of two."""
    if any(extent & (extent - 1) for extent in shape_of(type_)):
        return f"extents are powers of two on GPUs, unlike those of {type_}"
    return layout_problem(type_)


@cache
def front_end() -> Contract:
    """Before the first pass; also for texts of the first stage, after its passes."""
    return Contract("the front end", legal_ops(FmaDotOp), layout_problem, missing_instruction)


@cache
def legal_shapes() -> Contract:
    """After nvidia-legalize-shapes."""
    return Contract("nvidia-legalize-shapes", legal_ops(FmaDotOp), _extent_problem)


@cache
def legal_dots(arch: Arch) -> Contract:
    """After nvidia-legalize-dots."""
    checks: _Checks = {DotOp: partial(illegal_dot, arch=arch)}
    return Contract("nvidia-legalize-dots", legal_ops(FmaDotOp), _extent_problem, _by_class(checks))


@cache
def legal_arithmetic(arch: Arch) -> Contract:
    """After nvidia-legalize-arithmetic."""
    checks: _Checks = {DotOp: partial(illegal_dot, arch=arch)}
    problem = _by_class(checks, partial(illegal_arithmetic, arch=arch))
    ops = legal_ops(FmaDotOp)
    return Contract("nvidia-legalize-arithmetic", ops, _extent_problem, problem)


@cache
def legal_instructions(arch: Arch) -> Contract:
    """After nvidia-legalize-casts."""
    ops = legal_ops(FmaDotOp)
    return Contract("nvidia-legalize-casts", ops, _extent_problem, _is_no_instruction(arch))


@cache
def selected_mma(arch: Arch) -> Contract:
    """After nvidia-select-mma."""
    ops = legal_ops(FmaDotOp, ShareOp, WgmmaOp)
    return Contract("nvidia-select-mma", ops, _extent_problem, _is_no_instruction(arch))


@cache
def legal_layouts(arch: Arch, warps: int) -> Contract:
    """After nvidia-assign-layouts; warps: of a program instance."""
    ops = legal_ops(FmaDotOp, ConvertOp, ShareOp, WgmmaOp)
    return Contract("nvidia-assign-layouts", ops, _missing_layout, _unlowerable(arch, warps))


@cache
def legal_copies(arch: Arch, warps: int) -> Contract:
    """After nvidia-software-pipeline, and nvidia-lower-exchanges; warps: of an instance."""
    buffers = (AllocOp, ViewOp, TransposeViewOp, WriteOp, ReadOp, PartOp)
    exchanges = (ReadAtOp, CountOp, SharedFmaDotOp, WriteLastOp, ScanJoinOp)
    steps_of_sorts = (ReadPartnerOp, OrderPairsOp, MergeRunsOp, KeepBetterOp)
    copies = (AsyncCopyOp, CommitOp, WaitOp, BulkCopyOp)
    stores = (WritePanelOp, StorePanelOp, BulkStoreWaitOp, ProxyFenceOp)
    barriers = (WarpBarrierOp, MbarriersOp, MbarrierWaitOp, MbarrierArriveOp)
    roles = (RolesOp, BlockOp, BlocksOp, NeighbourOp)
    dots = (FmaDotOp, ConvertOp, ShareOp, WgmmaOp, WgmmaWaitOp)
    ops = legal_ops(
        *dots, *buffers, *exchanges, *steps_of_sorts, *copies, *stores, *barriers, *roles
    )
    return Contract("nvidia-software-pipeline", ops, _missing_layout, _unlowerable(arch, warps))


def _missing_layout(type_: Type) -> str | None:
    return f"{type_} has no layout" if isinstance(type_, TileType) and not type_.layout else None


def _is_no_instruction(arch: Arch) -> _OpProblem:
    checks: _Checks = {
        DotOp: partial(illegal_dot, arch=arch),
        CastOp: partial(illegal_cast, arch=arch),
    }
    return _by_class(checks, partial(illegal_arithmetic, arch=arch))


def _unlowerable(arch: Arch, warps: int) -> _OpProblem:
    """Instructions and layouts stay legal."""
    is_no_instruction = _is_no_instruction(arch)
    return lambda op: is_no_instruction(op) or broken_rule(op, warps)


def _by_class(checks: _Checks, others: _OpProblem | None = None) -> _OpProblem:
    def problem(op: Op) -> str | None:
        check = checks.get(type(op), others)
        return None if check is None else check(op)

    return problem
