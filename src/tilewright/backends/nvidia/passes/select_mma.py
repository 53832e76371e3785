"""Select the dots that wgmma computes, with operands in shared memory or registers.

    %c = tile.dot %a, %b, %acc      ->      %m = nvidia.share %a : buffer<128x64xf16, ...>
                                            %n = nvidia.share %b : buffer<64x256xf16, ...>
                                            %c = nvidia.wgmma %m, %n, %acc

The instruction reads B from shared memory, and A from there or from registers. Operands in shared
memory have the widest swizzle that fits. Buffers are allocated where their tiles are defined: those
of loop invariants before the loop.

An operand that is computed, or whose order in memory wgmma does not read, comes from registers: A
directly, B by the transposed dot, whose A it is:

    %w = mem.load ... : tile<64x128xi8>      ->     %m = nvidia.share %a
    %b = arith.cast %w                              %c = nvidia.wgmma %m, %b, %acc {swapped = true}
    %c = tile.dot %a, %b, %acc

Where that holds for both operands of fp32, the copy of the other one transposes it
(transposed_loads.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.buffer_ops import ShareOp, WgmmaOp
from tilewright.backends.nvidia.layouts.operand_chains import (
    Source,
    best_lanes_last,
    loaded_by,
    operand_chain,
)
from tilewright.backends.nvidia.layouts.select_wgmma import WARPS, wgmma_obstacle, wgmma_sharing
from tilewright.backends.nvidia.layouts.transposed_loads import TRANSPOSED_BYTES
from tilewright.backends.nvidia.passes._elementwise_uses import elementwise_uses
from tilewright.ir import Block, Builder, Function, Pass, Rewriter, Trait, Value
from tilewright.ir.types import BufferType, dtype_of, element_of, shape_of
from tilewright.layout import wgmma_shared_layout
from tilewright.ops import DescriptorLoadOp, DotOp, ForOp, LoadOp, TransposeOp
from tilewright.support import SourceLoc
from tilewright.support.data_class import dataclass
from tilewright.support.reachable import reachable

Facts = dict[Value, Alignment]


@dataclass(frozen=True)
class SelectMma(Pass, name="nvidia-select-mma"):
    """Select wgmma for the dots that it can compute.

    warps: of a program instance; capability: of the architecture
    """

    warps: int = 4
    capability: int = 90

    def run(self, function: Function) -> bool:
        arch = row_for(self.capability)
        dots = [op for op in function.walk() if isinstance(op, DotOp)]
        if not arch.wgmma or not dots:
            return False
        facts = analyze_alignment(function)
        # Before any is replaced: one may read the result of another.
        plans = [(op, _plan(op, facts, arch, self.warps)) for op in dots]
        shared: dict[tuple[Value, BufferType], Value] = {}
        chosen: list[WgmmaOp] = []
        for op, plan in plans:
            if isinstance(plan, _Plan):
                a, b = (
                    value if type_ is None else _shared(value, type_, shared)
                    for value, type_ in zip((op.a, op.b), plan.buffers, strict=True)
                )
                dot = WgmmaOp(a, b, op.acc, *plan.sharing, plan.swapped, plan.interleaved)
                Rewriter.replace(op, Builder.at(op).value(dot))
                chosen.append(dot)
        # After all: dots may share an operand, which has one layout.
        lanes = [best_lanes_last(dot, self.warps) for dot in chosen]
        for dot, last in zip(chosen, lanes, strict=True):
            dot.attrs["lanes_last"] = last
        return bool(chosen)


def mma_obstacles(function: Function, arch: Arch, warps: int) -> dict[SourceLoc | None, str]:
    """Why wgmma does not compute the dots of each line; "" where it does."""
    facts = analyze_alignment(function)
    dots = (op for op in function.walk() if isinstance(op, DotOp))
    plans = {op.loc: _plan(op, facts, arch, warps) for op in dots}
    return {loc: plan if isinstance(plan, str) else "" for loc, plan in plans.items()}


@dataclass(frozen=True, slots=True)
class _Plan:
    """How wgmma computes a dot. buffers: of A and B, None for operands in registers; sharing: see
    `wgmma_sharing`; swapped, interleaved: see `WgmmaOp`."""

    buffers: tuple[BufferType | None, BufferType | None]
    sharing: tuple[int, int]
    swapped: bool = False
    interleaved: bool = False


def _plan(op: DotOp, facts: Facts, arch: Arch, warps: int) -> _Plan | str:
    """How wgmma computes a dot, or why it does not."""
    if len(shape_of(op.type)) != 2:
        return wgmma_obstacle(op, arch, warps)
    swapped = _swapped(op, facts, arch, warps)
    obstacle, right = wgmma_obstacle(op, arch, warps), _buffer(op.b, 0, facts)
    is_direct = not obstacle and right is not None
    # Warpgroups beyond the rows would compute the same operand in their registers. Other uses of a
    # dot in a loop, such as row maxima, prefer rows in few threads.
    if swapped is not None and (
        not is_direct or (swapped.sharing[1] == warps // WARPS and _only_adds(op))
    ):
        return swapped
    copied = None if is_direct else _with_transposing_copies(op, facts, arch, warps)
    if copied is not None:
        return copied
    if obstacle:
        return obstacle
    right = right or _written_transposed(op.b, facts)
    if right is None:
        return "wgmma reads B contiguous along N for 16-bit types only"
    sharing = wgmma_sharing(op, arch, warps)
    assert sharing is not None, op
    left = _buffer(op.a, 1, facts) if _is_shared(op) else None
    interleaved = left is None and _is_interleaved(op, 0, facts)
    return _Plan((left, right), sharing, interleaved=interleaved)


def _is_shared(op: DotOp) -> bool:
    """Whether A is best read from shared memory: it is loaded, or is exchanged through it in any
    case since other threads hold it; or it is defined before the loop, where ptxas 13.0 may assign
    its registers to an operand of one iteration."""
    value = _transposed(op.a)[0]
    made_in = value.block
    return loaded_by(value) is not None or value is not op.a or made_in is not op.parent


def _only_adds(op: DotOp) -> bool:
    """Whether the only uses of a dot are the next iteration, dots that add to it, and element-wise
    code with such uses."""
    assert op.parent is not None
    block, end = op.parent, op.parent.last
    return all(
        user is end or (isinstance(user, DotOp) and user.acc is value)
        for value, user in elementwise_uses(op.result, block)
    )


def _swapped(op: DotOp, facts: Facts, arch: Arch, warps: int) -> _Plan | None:
    """The transposed dot, with B in registers, if B is computed from loads or not contiguous as
    wgmma reads it."""
    left = _buffer(op.a, 0, facts, transposed=True)
    sharing = wgmma_sharing(op, arch, warps, swapped=True)
    chain = operand_chain(op, 1)
    if left is None or sharing is None or chain is None or not loaded_by(_transposed(op.a)[0]):
        return None
    # Transposed loads are read directly.
    is_loaded = loaded_by(_transposed(op.b)[0]) is not None
    if is_loaded and _buffer(op.b, 0, facts) is not None:
        return None
    return _Plan((left, None), sharing, swapped=True, interleaved=_is_interleaved(op, 1, facts))


def _with_transposing_copies(op: DotOp, facts: Facts, arch: Arch, warps: int) -> _Plan | None:
    """The dot of fp32 with neither operand contiguous along K: one is in registers; copies of
    single elements transpose the other, the smaller one if possible."""
    m, n = shape_of(op.type)[-2:]
    for swapped in (n > m, n <= m):
        value, index = (op.a, 1) if swapped else (op.b, 0)
        sharing = wgmma_sharing(op, arch, warps, swapped)
        if (
            sharing is None
            or not _can_be_transposed(value, op.parent)
            or not operand_chain(op, index)
        ):
            continue
        type_ = _buffer(value, 0, facts, transposed=swapped, along_k=True)
        buffers = (type_, None) if swapped else (None, type_)
        if type_ is not None:
            interleaved = _is_interleaved(op, index, facts)
            return _Plan(buffers, sharing, swapped, interleaved=interleaved)
    return None


def _written_transposed(value: Value, facts: Facts) -> BufferType | None:
    """The buffer of B contiguous along K, if threads write it, as they do outside of loops whose
    loads are copied: element by element, which costs less than a dot without wgmma."""
    block = value.block
    in_loop = isinstance(block, Block) and isinstance(block.owner, ForOp)
    if in_loop or dtype_of(value.type).bytes != TRANSPOSED_BYTES:
        return None
    return _buffer(value, 0, facts, along_k=True)


def _can_be_transposed(value: Value, block: Block | None) -> bool:
    """Whether a loop loads a tile in its body, in elements that can be copied one by one."""
    load = value.op
    if not isinstance(load, LoadOp) or load.parent is not block or block is None:
        return False
    return isinstance(block.owner, ForOp) and dtype_of(value.type).bytes == TRANSPOSED_BYTES


def _is_interleaved(op: DotOp, index: int, facts: Facts) -> bool:
    """Whether threads read the tiles of a register operand from shared memory in runs along M or N.

    16-bit elements are read by ldmatrix, in any order.
    """
    chain = operand_chain(op, index, dim=index)
    return chain is not None and all(
        source.dim is not None
        and element_of(source.tile.type).bits != 16
        and _is_contiguous(source, facts)
        for source in chain.sources
    )


def _is_contiguous(source: Source, facts: Facts) -> bool:
    """Whether a loaded tile is contiguous along a dim."""
    if isinstance(source.load, DescriptorLoadOp):
        return source.dim == source.load.rank - 1
    contiguity = facts[source.load.pointer].contiguity
    return source.dim == max(reversed(range(len(contiguity))), key=lambda dim: contiguity[dim])


def _shared(
    value: Value, type_: BufferType, shared: dict[tuple[Value, BufferType], Value]
) -> Value:
    """A tile in shared memory, from its definition on. shared: the existing buffers."""
    if (value, type_) not in shared:
        if value.op is not None:
            builder = Builder.after(value.op)
        else:
            assert isinstance(value.owner, Block), value
            builder = Builder(value.owner, value.owner.first)
        shared[value, type_] = builder.value(ShareOp(value, result_type=type_))
    return shared[value, type_]


def _transposed(value: Value) -> tuple[Value, list[int]]:
    """A tile before its transpositions, and the order of its dims after them."""
    order = list(range(len(shape_of(value.type))))
    while isinstance(value.op, TransposeOp):
        order = [value.op.order[dim] for dim in order]
        value = value.op.x
    return value, order


def _buffer(
    value: Value, k_dim: int, facts: Facts, transposed: bool = False, along_k: bool = False
) -> BufferType | None:
    """The buffer of an operand; None if wgmma cannot read it.

    transposed: the operand is A of a dot (k_dim 0) that becomes B of the instruction; along_k: it
    is contiguous along K in any case
    """
    element, shape = dtype_of(value.type), shape_of(value.type)
    if transposed:
        shape = (shape[1], shape[0])
    own = 1 - k_dim if transposed else k_dim
    contiguous = own if along_k else _contiguous_dim(value, own, facts)
    if transposed:
        contiguous = 1 - contiguous
    layout = wgmma_shared_layout(shape, 8 * element.bytes, k_dim, contiguous)
    if layout is None:
        return None
    layout = layout.transpose((1, 0)) if transposed else layout
    return BufferType(shape_of(value.type), element, layout)


def _contiguous_dim(value: Value, k_dim: int, facts: Facts) -> int:
    """The dim along which a tile is contiguous in memory; K for tiles that are not loaded.

    Tiles that are computed from a loaded one have the same rows in the threads that write them.
    """
    computed, outer = _transposed(value)
    for source in _element_sources(computed):
        tile, inner = _transposed(source)
        order = [inner[dim] for dim in outer]
        load = loaded_by(tile)
        # For types other than 16-bit, only K may be contiguous.
        if load is not None and (source is computed or dtype_of(value.type).bits == 16):
            if isinstance(load, DescriptorLoadOp):
                return order.index(len(order) - 1)
            contiguity = facts[load.pointer].contiguity
            return max((k_dim, 1 - k_dim), key=lambda dim: contiguity[order[dim]])
    return k_dim


def _element_sources(value: Value) -> Iterator[Value]:
    """A tile, and the tiles from which it is computed element by element."""

    def sources(tile: Value) -> Iterator[Value]:
        if tile.op is not None and Trait.ELEMENTWISE in tile.op.traits:
            for operand in reversed(tile.op.operands):
                if shape_of(operand.type) == shape_of(value.type):
                    yield operand

    return reachable([value], sources)
