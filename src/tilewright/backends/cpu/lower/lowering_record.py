"""Record of the choices of a lowering, for `kernel.explain()`: accesses, loop nests, matmuls.

A lowering without a record pays a test for None. Trial emissions, which only count instructions,
have none.
"""

from __future__ import annotations

from dataclasses import field

from tilewright.backends.cpu.lower.fusion import LoopNest
from tilewright.backends.cpu.lower.lane_values import Address
from tilewright.backends.cpu.lower.vector_access import Access, lane_stride, useful_mask
from tilewright.backends.cpu.microkernel import DotSpec
from tilewright.ir import Op, Value
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class AccessForm:
    """One form in which a load or store was emitted: an op may have several, such as whole steps
    and a masked one.

    lanes: elements of a step; stride: of consecutive lanes in elements, None where addresses are a
    vector; masked: whether lanes may be off
    """

    lanes: int
    stride: int | None
    masked: bool


@dataclass(frozen=True, slots=True)
class NestForm:
    """A fused loop nest. dim: the dimension of the lanes; axis: of its reductions; streams: whether
    its stores may be non-temporal"""

    shape: tuple[int, ...]
    dim: int
    lanes: int
    axis: int | None
    sinks: tuple[Op, ...]
    written: tuple[Value, ...]
    streams: bool


@dataclass(frozen=True, slots=True)
class DotForm:
    """The micro-kernel of a dot. from_memory: whether a whole loop is one matmul of matrices in
    memory; programs: rows and columns of programs that it computes together"""

    spec: DotSpec
    from_memory: bool
    programs: tuple[int, int] = (1, 1)


@dataclass(slots=True)
class LoweringRecord:
    """The choices of one lowering, in the order of the code. refused: why loops are not matmuls
    from memory, by the dots in them; transposed: rows of the blocks
    of transpositions in registers."""

    accesses: dict[Op, list[AccessForm]] = field(default_factory=dict[Op, list[AccessForm]])
    nests: list[NestForm] = field(default_factory=list[NestForm])
    dots: dict[Op, list[DotForm]] = field(default_factory=dict[Op, list[DotForm]])
    refused: dict[Op, str] = field(default_factory=dict[Op, str])
    transposed: dict[Op, int] = field(default_factory=dict[Op, int])

    def access(self, op: Op, access: Access, lanes: int) -> None:
        """Record a form of a load or store, once."""
        address = access.address
        stride = lane_stride(address) if isinstance(address, Address) else None
        form = AccessForm(lanes, stride, useful_mask(access.mask) is not None)
        forms = self.accesses.setdefault(op, [])
        if form not in forms:
            forms.append(form)

    def nest(self, nest: LoopNest, dim: int, lanes: int, streams: bool) -> None:
        """Record a fused nest."""
        sinks, written = tuple(nest.sinks), tuple(nest.materialized)
        self.nests.append(NestForm(nest.shape, dim, lanes, nest.axis, sinks, written, streams))

    def dot(self, op: Op, form: DotForm) -> None:
        """Record the micro-kernel of a dot."""
        self.dots.setdefault(op, []).append(form)
