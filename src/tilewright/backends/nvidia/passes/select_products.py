"""Chooses the products that whole warpgroups compute: these read shared memory themselves.

    %c = tile.dot %a, %b, %acc      ->      %m = nvidia.share %a : buffer<128x64xf16, ...>
                                            %n = nvidia.share %b : buffer<64x256xf16, ...>
                                            %c = nvidia.wgmma %m, %n, %acc

B must be in shared memory, as the instruction reads it, with the widest swizzle that fits. So must
A, unless it is computed where it is used: then it comes from registers. Buffers are made where
their tiles are: those of loop invariants before the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.buffer_ops import ShareOp, WgmmaOp
from tilewright.backends.nvidia.layouts.select_wgmma import wgmma_obstacle, wgmma_sharing
from tilewright.backends.nvidia.passes.schedule_loop import Load, carried_tile
from tilewright.ir import Block, Builder, Function, Pass, Rewriter, Trait, Value
from tilewright.ir.types import BufferType, dtype_of, f32, shape_of
from tilewright.layout import wgmma_shared_layout
from tilewright.ops import DescriptorLoadOp, DotOp, ForOp, LoadOp, TransposeOp
from tilewright.support import SourceLoc

Facts = dict[Value, Alignment]


@dataclass(frozen=True)
class SelectProducts(Pass, name="nvidia-select-products"):
    """Let warpgroups compute the products that they can.

    warps: of a program instance; capability: of the architecture.
    """

    warps: int = 4
    capability: int = 90

    def run(self, function: Function) -> bool:
        arch = row_for(self.capability)
        products = [op for op in function.walk() if isinstance(op, DotOp)]
        sharing = {op: wgmma_sharing(op, arch, self.warps) for op in products}
        chosen = {op: share for op, share in sharing.items() if share is not None}
        facts = analyze_alignment(function) if chosen else {}
        shared: dict[tuple[Value, int], Value] = {}
        changed = False
        for op, share in chosen.items():
            operands = _operands(op, facts, shared)
            if operands is not None:
                product = WgmmaOp(*operands, op.acc, *share)
                Rewriter.replace(op, Builder.at(op).value(product))
                changed = True
        return changed


def product_obstacles(function: Function, arch: Arch, warps: int) -> dict[SourceLoc | None, str]:
    """Why warpgroups do not compute the products of each line; "" where they do."""
    facts = analyze_alignment(function)
    products = (op for op in function.walk() if isinstance(op, DotOp))
    return {
        op.loc: wgmma_obstacle(op, arch, warps) or operand_obstacle(op, facts) for op in products
    }


def operand_obstacle(op: DotOp, facts: Facts) -> str:
    """Why the operands of a product cannot be where the instruction reads them; "" if they can."""
    # The tensor cores truncate f32 to tf32: rounded on the way through registers, as mma.sync has
    # its operands, products are 2.6 times as exact (2.9e-4 beside 7.7e-4 for K = 1024).
    if dtype_of(op.a.type) is f32:
        return "wgmma truncates fp32, mma.sync gets it rounded to tf32"
    types = [_buffer(value, index, facts) for index, value in enumerate((op.a, op.b))]
    if types[1] is None:
        return "wgmma reads B contiguous along N for 16-bit types only"
    if types[0] is None and _is_loaded(op.a):
        return "wgmma reads A contiguous along M for 16-bit types only"
    return ""


def _operands(
    op: DotOp, facts: Facts, shared: dict[tuple[Value, int], Value]
) -> tuple[Value, Value] | None:
    """The operands of a product as the instruction reads them; None if it cannot.

    shared: what is in shared memory already, as operand 0 or 1.
    """
    if operand_obstacle(op, facts):
        return None
    from_registers = not _is_loaded(op.a)
    types = [_buffer(value, index, facts) for index, value in enumerate((op.a, op.b))]
    operands: list[Value] = []
    for index, (value, type_) in enumerate(zip((op.a, op.b), types, strict=True)):
        if index == 0 and from_registers:
            operands.append(value)
            continue
        if (value, index) not in shared:
            shared[value, index] = _shared(value, type_)
        operands.append(shared[value, index])
    return operands[0], operands[1]


def _shared(value: Value, type_: BufferType | None) -> Value:
    """A tile in shared memory, from where it is made on."""
    assert type_ is not None
    if value.op is not None:
        builder = Builder.after(value.op)
    else:
        assert isinstance(value.owner, Block), value
        builder = Builder(value.owner, value.owner.first)
    return builder.value(ShareOp(value, result_type=type_))


def _is_loaded(value: Value) -> bool:
    """Whether a tile is what a load gives, perhaps transposed."""
    return _load_of(value)[0] is not None


def _load_of(value: Value) -> tuple[Load | None, list[int]]:
    """The load of a tile, in this iteration or the one before; its dims behind transpositions."""
    order = [0, 1]
    while isinstance(value.op, TransposeOp):
        order = [value.op.order[dim] for dim in order]
        value = value.op.x
    source, loop = value, value.owner
    if isinstance(loop, Block) and isinstance(loop.owner, ForOp) and value.index:
        source = loop.terminator.operands[value.index - 1]
    load = source.op
    if isinstance(load, LoadOp) and (source is value or carried_tile(load) is value):
        return load, order
    return (load if isinstance(load, DescriptorLoadOp) else None), order


def _buffer(value: Value, index: int, facts: Facts) -> BufferType | None:
    """The buffer of operand 0 or 1 of a product; None if the instruction cannot read it."""
    k_dim = 1 - index
    element = dtype_of(value.type)
    layout = wgmma_shared_layout(
        shape_of(value.type), 8 * element.bytes, k_dim, _contiguous_dim(value, k_dim, facts)
    )
    return None if layout is None else BufferType(shape_of(value.type), element, layout)


def _contiguous_dim(value: Value, k_dim: int, facts: Facts) -> int:
    """The dim along which a tile is contiguous in memory; K of what does not come from there.

    What is computed of a tile from there has the same rows in the threads that write it.
    """
    for source in _element_sources(value):
        load, order = _load_of(source)
        # Of other types than those of 16 bits only K may be contiguous.
        if load is not None and (source is value or dtype_of(value.type).bits == 16):
            if isinstance(load, DescriptorLoadOp):
                return order.index(len(order) - 1)
            contiguity = facts[load.pointer].contiguity
            return max((k_dim, 1 - k_dim), key=lambda dim: contiguity[order[dim]])
    return k_dim


def _element_sources(value: Value) -> Iterator[Value]:
    """A tile, and the tiles that it is computed of element by element."""
    shape, seen, stack = shape_of(value.type), set[Value](), [value]
    while stack:
        source = stack.pop()
        if source in seen or shape_of(source.type) != shape:
            continue
        seen.add(source)
        yield source
        if source.op is not None and Trait.ELEMENTWISE in source.op.traits:
            stack += reversed(source.op.operands)
