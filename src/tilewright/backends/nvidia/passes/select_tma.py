"""Select the accesses that TMA issues, once MMAs are selected; lower the other descriptor accesses.

    %x = mem.descriptor_load %p, ... {bulk = true}     as it is, where TMA issues it
    %y = mem.load %q, %m, 0                       ->   mem.descriptor_load %b, ... {bulk = true}
    %z = mem.descriptor_load %r, ... {bulk = true}     mem.load, which threads issue

Candidates are marked (lower_non_tma_descriptors.py); affine pointer loads of wgmma operands become
descriptor loads (_promote_loads.py). TMA issues loads that only wgmma reads (_tma_loads.py), and
stores of tiles that dots compute: accumulator fragments go through shared memory in any case, other
tiles have a layout in which threads store wide lines themselves. `select` returns the reason for
each access that TMA does not issue, which `kernel.explain()` prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.passes._promote_loads import promote_loads
from tilewright.backends.nvidia.passes._tma_loads import TmaLoads
from tilewright.ir import Function, Pass, Value
from tilewright.ir.types import TileType
from tilewright.ops import (
    DescriptorLoadOp,
    DescriptorStoreOp,
    DotOp,
    LoadOp,
    ReduceOp,
    ScanOp,
    incoming_values,
)
from tilewright.support import SourceLoc
from tilewright.support.data_class import dataclass
from tilewright.support.reachable import reachable
from tilewright.transforms import LowerDescriptors, remove_dead


@dataclass(frozen=True)
class SelectTma(Pass, name="nvidia-select-tma"):
    """Decide for every access.

    pointers: whether pointer loads are promoted; stages, capability, roles: see TmaLoads
    """

    stages: int = 3
    capability: int = 90
    roles: bool = True
    pointers: bool = True

    def run(self, function: Function) -> bool:
        return self.select(function).changed

    def select(self, function: Function) -> TmaSelection:
        """Rewrite the function; returns the reasons."""
        decision = TmaLoads(self.stages, self.capability, self.roles)
        decided: dict[_Access, str] = {**_store_obstacles(function)}
        _keep(decided)
        promoted = promote_loads(function, decision) if self.pointers else {}
        changed = "" in promoted.values()
        if changed:
            # Addresses and masks of promoted loads, which scheduling would take for the loop's.
            remove_dead(function)
        decided |= decision.obstacles(function)
        _keep(decided)
        reasons = promoted | {op.loc: obstacle for op, obstacle in decided.items()}
        # Not canonicalized afterwards: that would merge legalized casts.
        lowered = LowerDescriptors().run(function)
        return TmaSelection(changed or lowered, reasons)


class TmaSelection(NamedTuple):
    """reasons: by the place of an access, why TMA does not issue it, "" where TMA does."""

    changed: bool
    reasons: Mapping[SourceLoc | None, str]


NOT_MADE_BY_DOT = "threads store whole lines of a tile that no dot computes"

_Access = DescriptorLoadOp | DescriptorStoreOp


def _keep(decided: Mapping[_Access, str]) -> None:
    """Leave the mark where there is no obstacle."""
    for op, obstacle in decided.items():
        op.attrs["bulk"] = not obstacle


def _store_obstacles(function: Function) -> dict[DescriptorStoreOp, str]:
    """For each marked store the reason why TMA does not issue it. Reductions are not among them:
    threads would combine elements one by one."""
    stores = (op for op in function.walk() if isinstance(op, DescriptorStoreOp) and op.bulk)
    return {op: "" if _is_made_by_dot(op.stored) else NOT_MADE_BY_DOT for op in stores}


def _is_made_by_dot(tile: Value) -> bool:
    """Whether a tile is computed from a dot, element by element."""

    def sources(value: Value) -> list[Value]:
        passes = value.op is not None and not isinstance(value.op, LoadOp | ReduceOp | ScanOp)
        operands = value.op.operands if value.op is not None and passes else ()
        return [x for x in (*incoming_values(value), *operands) if isinstance(x.type, TileType)]

    return any(isinstance(value.op, DotOp | WgmmaOp) for value in reachable([tile], sources))
