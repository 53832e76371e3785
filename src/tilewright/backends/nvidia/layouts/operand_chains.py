"""Chains of ops between loads and a dot's operand, whose layout the dot decides.

    %w = mem.load ... : tile<64x128xi8>          made in the layout of its addresses
    %f = arith.cast %w : tile<64x128xf16>        made in F, which the dot requires of %s
    %s = arith.mul %f, %scales                   made in F
    %c = nvidia.wgmma %x, %s, %acc

So loaded values move between threads, not values computed from them: they can be copied ahead to
shared memory, and read from there in F.

Several warps hold an operand of `tile.dot` (mma.sync), and would each compute the chain. So the
chain is computed in F only where its loads are copied ahead, and none has fewer bits than the
operand: such a load is copied ahead, but widened once, in the layout of its addresses (ADR 0027).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.backends.nvidia.buffer_ops import WgmmaOp
from tilewright.backends.nvidia.layouts.layout_rules import rule_of
from tilewright.backends.nvidia.layouts.mma_layouts import DotLayouts
from tilewright.backends.nvidia.layouts.select_wgmma import WARPS, wgmma_left
from tilewright.ir import Block, Function, Op, Trait, Value
from tilewright.ir.types import TileType, element_of, shape_of
from tilewright.layout import (
    REGISTER,
    SWIZZLE_BYTES,
    SYNC_COST,
    WARP,
    LinearLayout,
    plan_shared_access,
    shared_swizzled,
)
from tilewright.ops import (
    BroadcastOp,
    ConstantOp,
    DescriptorLoadOp,
    ExpandDimsOp,
    ForOp,
    JoinOp,
    LoadOp,
    RangeOp,
    ReshapeOp,
    SplatOp,
    TransposeOp,
)
from tilewright.support.data_class import dataclass

_ROW_LANES = 3
"""Bits of a lane's number that name rows of a fragment."""

_MADE_ANYWHERE = (ConstantOp, SplatOp, RangeOp, ExpandDimsOp, BroadcastOp)
"""Tiles that are recomputed in each layout."""


@dataclass(frozen=True, slots=True)
class Source:
    """A loaded tile that an operand is computed from.

    dim: of the tile, along which the requested dim of the operand lies; None if along several."""

    tile: Value
    load: LoadOp | DescriptorLoadOp
    dim: int | None


@dataclass(frozen=True, slots=True)
class OperandChain:
    """The ops between loads and an operand.

    operands: of all dots that share the chain, as the parts of fp32 do; values: of the chain, users
    first; sources: loaded tiles, at least one."""

    operands: tuple[Value, ...]
    values: tuple[Value, ...]
    sources: tuple[Source, ...]

    def layouts(self, layout: LinearLayout) -> dict[Value, LinearLayout]:
        """Layouts of the chain's values for that of the operands; none if a value needs two."""
        needed = self.needed(layout)
        return {value: needed[value] for value in self.values} if needed else {}

    def needed(self, layout: LinearLayout) -> dict[Value, LinearLayout]:
        """The same, with the layouts of operands and sources."""
        needed = dict.fromkeys(self.operands, layout)
        for value in self.values:
            assert value.op is not None
            tiles = [
                (i, x) for i, x in enumerate(value.op.operands) if isinstance(x.type, TileType)
            ]
            for index, x in tiles:
                its = rule_of(value.op).operand(value.op, index, needed[value])
                if its is None or needed.setdefault(x, its) != its:
                    return {}
        return needed


def operand_chain(dot: Op, index: int, dim: int = 0) -> OperandChain | None:
    """The chain of an operand; None if it is not computed from loads alone, or used elsewhere."""
    alone = _chain((dot,), index, dim)
    return alone or _chain(tuple(_alike(dot, index)), index, dim)


def _alike(dot: Op, index: int) -> Iterator[Op]:
    """The dots of a block that have such an operand in the same layout."""
    assert dot.parent is not None
    own = [_layout_of_operand(dot, index), dot.operands[index].type]
    for op in dot.parent:
        if not isinstance(op, type(dot)):
            continue
        if [_layout_of_operand(op, index), op.operands[index].type] == own:
            yield op


def _layout_of_operand(dot: Op, index: int) -> object:
    """Key of an operand's layout, in addition to its type."""
    if isinstance(dot, WgmmaOp):
        sharing = dot.columns, dot.rows, dot.swapped
        numbering = dot.interleaved, dot.lanes_last
        return sharing, numbering, register_operand(dot) == index
    return dot.operands[2].type


def _chain(dots: tuple[Op, ...], index: int, dim: int) -> OperandChain | None:
    """The chain of an operand of each of some dots."""
    operands = tuple(dict.fromkeys(dot.operands[index] for dot in dots))
    block = dots[0].parent
    dims: dict[Value, int | None] = dict.fromkeys(operands, dim)
    between: set[Op] = set()
    sources: list[Source] = []
    # Grows during the iteration.
    for value in (found := list(operands)):
        load, op = loaded_by(value), value.op
        if load is not None and isinstance(value.type, TileType):
            sources.append(Source(value, load, dims[value]))
        elif has_layout(value):
            if op is None or op.parent is not block or not follows(op):
                return None
            between.add(op)
            new = [x for x in dict.fromkeys(op.operands) if x not in dims]
            dims |= dict.fromkeys(new, _source_dim(op, dims[value]))
            found += new
    made = [op.results[0] for op in between]
    users = [(user, value) for value in made for user in value.uses if user not in between]
    others = [u for u, v in users if u not in dots or _indices(u, v) != [index]]
    if not sources or others:
        return None
    assert block is not None
    values = (op.results[0] for op in reversed(block) if op in between)
    return OperandChain(operands, tuple(values), tuple(sources))


def carried_tile(load: LoadOp | DescriptorLoadOp) -> Value | None:
    """Carried value of the next iteration that a loaded tile becomes, if that is its only use."""
    block = load.parent
    if block is None or not isinstance(block.owner, ForOp):
        return None
    if list(load.result.uses) != [block.last]:
        return None
    pairs = zip(block.args[1:], block.terminator.operands, strict=True)
    carried = [arg for arg, value in pairs if value is load.result]
    return carried[0] if len(carried) == 1 else None


def _indices(user: Op, value: Value) -> list[int]:
    """Which operands of an op a value is."""
    return [i for i, operand in enumerate(user.operands) if operand is value]


def loaded_by(value: Value) -> LoadOp | DescriptorLoadOp | None:
    """The load of a tile, in this iteration or the one before."""
    source, loop = value, value.owner
    if isinstance(loop, Block) and isinstance(loop.owner, ForOp) and value.index:
        source = loop.terminator.operands[value.index - 1]
    load = source.op
    if isinstance(load, LoadOp) and (source is value or carried_tile(load) is value):
        return load
    return load if isinstance(load, DescriptorLoadOp) else None


def register_operand(dot: WgmmaOp) -> int | None:
    """The index of the operand of a dot that is in registers; None if both are in buffers."""
    found = (i for i in (0, 1) if isinstance(dot.operands[i].type, TileType))
    return next(found, None)


def best_lanes_last(dot: WgmmaOp, warps: int) -> int:
    """The number of lane bits after those of warps (see `WgmmaOp`) with which threads read an
    operand in the fewest passes from shared memory, where TMA puts its sources."""
    index = register_operand(dot)
    chain = None if index is None else operand_chain(dot, index, dim=index)
    if chain is None or not dot.interleaved:
        return 0
    costs = [_read_cost(chain, wgmma_left(dot, warps, last)) for last in range(_ROW_LANES + 1)]
    return costs.index(min(costs))


def _read_cost(chain: OperandChain, layout: LinearLayout) -> int:
    """Issue slots and passes of a warp that reads the sources of operands in a layout."""
    needed, cost = chain.needed(layout), 0
    for source in chain.sources:
        shape, size = shape_of(source.tile.type), element_of(source.tile.type).bytes
        if source.tile not in needed or source.dim is None or len(shape) != len("mk"):
            return 0
        order = (source.dim, 1 - source.dim)
        width = next((w for w in SWIZZLE_BYTES[::-1] if shape[source.dim] * size >= w), None)
        if width is None:
            return 0
        shared = shared_swizzled(shape, 8 * size, width, order)
        cost += plan_shared_access(shared, needed[source.tile], 8 * size, matrix=True).cost
    return cost


def makes_register_operands(load: LoadOp | DescriptorLoadOp) -> bool:
    """Whether wgmma operands in registers are the only uses of a tile, through code that follows
    their layout."""
    dots: dict[WgmmaOp, int] = {}
    # Grows during the iteration.
    for value in (found := [load.result]):
        for user in value.uses:
            index = register_operand(user) if isinstance(user, WgmmaOp) else None
            if user.parent is not load.parent:
                return False
            if isinstance(user, WgmmaOp) and index is not None and _indices(user, value) == [index]:
                dots[user] = index
            elif follows(user):
                found.append(user.results[0])
            else:
                return False
    return bool(dots) and all(_is_source(load, *found) for found in dots.items())


def _is_source(load: LoadOp | DescriptorLoadOp, dot: WgmmaOp, index: int) -> bool:
    """Whether an operand in registers is computed from a load in the layout that it needs."""
    chain = operand_chain(dot, index)
    if chain is None or load not in [source.load for source in chain.sources]:
        return False
    # With the fewest warps: whether layouts contradict does not depend on their number.
    return bool(chain.needed(wgmma_left(dot, WARPS * dot.rows)))


def chained_layouts(
    function: Function, warps: int, dots: Mapping[Op, DotLayouts], stages: int
) -> dict[Value, LinearLayout]:
    """The layouts of the values between loads and dots.

    dots: their layouts, but for those of warpgroups; stages: slots of a loop's buffers, where
    the loop does not say; 0: loads are not copied ahead
    """
    layouts: dict[Value, LinearLayout] = {}
    for op in function.walk():
        if isinstance(op, WgmmaOp):
            index = register_operand(op)
            if index is not None and (chain := operand_chain(op, index)):
                layouts |= chain.layouts(wgmma_left(op, warps))
        elif op in dots and _is_pipelined(op.parent, stages):
            layouts |= _chained_to(op, 0, dots[op].a) | _chained_to(op, 1, dots[op].b)
    return layouts


def _chained_to(dot: Op, index: int, layout: LinearLayout) -> dict[Value, LinearLayout]:
    """The layouts of the values between loads and an operand of an mma.sync dot."""
    chain = operand_chain(dot, index)
    if chain is None or _widens(chain):
        return {}
    needed = chain.needed(layout)
    is_cheap = needed and _cost_in_each_warp(chain, needed) <= _cost_once(chain, needed)
    return {value: needed[value] for value in chain.values} if is_cheap else {}


_WORD = 1.25
"""Cost of a word of 32 bits between registers and shared memory: four take an issue slot, and a
pass each."""


def _cost_in_each_warp(chain: OperandChain, needed: Mapping[Value, LinearLayout]) -> float:
    """Issue slots and passes of a warp that reads the sources and computes the chain."""
    read = sum(_words(source.tile, needed) for source in chain.sources)
    return _WORD * read + sum(_words(value, needed) for value in chain.values)


def _cost_once(chain: OperandChain, needed: Mapping[Value, LinearLayout]) -> float:
    """The same where each element is computed by one warp, and exchanged through shared memory."""
    layout = needed[chain.operands[0]]
    copies = 2 ** sum(not any(basis) for basis in layout.bases(WARP))
    moved = _WORD * sum(_words(operand, needed) for operand in chain.operands)
    return (_cost_in_each_warp(chain, needed) + moved) / copies + moved + 2 * SYNC_COST


def _words(value: Value, needed: Mapping[Value, LinearLayout]) -> float:
    """Registers of 32 bits of a thread for a value."""
    return needed[value].in_size(REGISTER) * element_of(value.type).bits / 32


def _is_pipelined(block: Block | None, stages: int) -> bool:
    """Whether a block is the body of a loop whose loads may be copied ahead."""
    loop = block.owner if block is not None else None
    if not stages or not isinstance(loop, ForOp):
        return False
    return (stages if loop.stages is None else loop.stages) > 1


def _widens(chain: OperandChain) -> bool:
    """Whether a load has fewer bits than the operand."""
    bits = element_of(chain.operands[0].type).bits
    return any(element_of(source.tile.type).bits < bits for source in chain.sources)


def follows(op: Op) -> bool:
    """Whether an op can be made in any layout of its result, its operands in layouts of theirs."""
    return Trait.ELEMENTWISE in op.traits or isinstance(op, JoinOp | ReshapeOp | TransposeOp)


def has_layout(value: Value) -> bool:
    """Whether a tile is computed once, in a layout of its own."""
    if not isinstance(value.type, TileType) or isinstance(value.op, _MADE_ANYWHERE):
        return False
    return value.op is None or not follows(value.op) or any(map(has_layout, value.op.operands))


def _source_dim(op: Op, dim: int | None) -> int | None:
    """The dim of an operand that a dim of the result lies along."""
    if dim is None or Trait.ELEMENTWISE in op.traits or isinstance(op, JoinOp):
        return dim
    if isinstance(op, TransposeOp):
        return op.order[dim]
    assert isinstance(op, ReshapeOp)
    there, here = shape_of(op.x.type), shape_of(op.type)
    if dim == 0 and there[0] == here[0]:
        return 0
    return len(there) - 1 if dim == len(here) - 1 and there[-1] == here[-1] else None
