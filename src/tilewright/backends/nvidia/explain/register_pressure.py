"""Register pressure of a function with layouts: the op where threads hold most, and the tiles
there.

    registers at line 21: acc 128 (line 18), p 64 (line 20)

Counts tiles only, each from its definition to its last use; ptxas needs more for addresses and
temporaries, and may move code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from tilewright.backends.nvidia.register_model import register_count
from tilewright.ir import Block, Function, Op, Value
from tilewright.ir.types import DType, TileType, element_of
from tilewright.ops import ConstantOp
from tilewright.support.data_class import dataclass

_INDEX_BITS = 32

_NAMED = 4
"""Tiles that are named, the largest first."""


@dataclass(slots=True)
class Pressure:
    """The most pressure of a function. registers: per thread; op: where; tiles: those held there,
    the largest first"""

    registers: int = 0
    op: Op | None = None
    tiles: list[Value] = field(default_factory=list[Value])

    def text(self) -> str:
        """The lines that hold the registers."""
        place = "" if self.op is None or self.op.loc is None else f" at line {self.op.loc.line}"
        held = ", ".join(map(_text_of_tile, self.tiles[:_NAMED]))
        return f"tiles hold up to {self.registers} registers per thread{place}: {held}"


def register_pressure(function: Function) -> Pressure:
    """The op with the most registers in tiles."""
    order = {op: number for number, op in enumerate(_in_order(function.body))}
    ends = _ends(function.body, order)
    first: dict[int, list[Value]] = {}
    last: dict[int, list[Value]] = {}
    for value, (begin, end) in ends.items():
        first.setdefault(begin, []).append(value)
        last.setdefault(end, []).append(value)
    most, held, registers = Pressure(), dict[Value, None](), 0
    for op, number in order.items():
        for value in last.get(number, ()):
            if value in held:
                registers -= register_count(value)
                del held[value]
        for value in first.get(number, ()):
            if ends[value][1] > number:
                held[value] = None
                registers += register_count(value)
        if registers > most.registers:
            tiles = sorted(held, key=register_count, reverse=True)
            most = Pressure(registers, op, tiles)
    return most


def _in_order(block: Block) -> Iterator[Op]:
    """The ops of a block, those with regions before and after what is in these."""
    for op in block:
        yield op
        for region in op.regions:
            yield from _in_order(region)


def _ends(block: Block, order: dict[Op, int]) -> dict[Value, tuple[int, int]]:
    """By tile in registers, the numbers of the op that defines it and of its last use."""
    found: dict[Value, tuple[int, int]] = {}
    for op in _in_order(block):
        values = [*op.results, *(arg for region in op.regions for arg in region.args)]
        for value in values:
            if _is_counted(value):
                begin = _last_inside(op, order) if value in op.results else order[op]
                uses = (_seen_from(user, value, order) for user in value.uses)
                found[value] = (begin, max(uses))
    return found


def _is_counted(value: Value) -> bool:
    """Whether a value is a tile of numbers with uses. Constants, addresses, indices and masks,
    which are cheap to compute again, are not kept."""
    if isinstance(value.op, ConstantOp):
        return False
    element = element_of(value.type)
    if not (isinstance(value.type, TileType) and value.uses and isinstance(element, DType)):
        return False
    return element.is_float or 1 < element.bits < _INDEX_BITS


def _seen_from(user: Op, value: Value, order: dict[Op, int]) -> int:
    """The number of a use: for one in a loop that the value is defined before, the loop's end."""
    home = value.block
    number, op = order[user], user
    while op.parent is not home:
        owner = None if op.parent is None else op.parent.owner
        if not isinstance(owner, Op):
            break
        op = owner
        number = max(number, _last_inside(op, order))
    return number


def _last_inside(op: Op, order: dict[Op, int]) -> int:
    """The number of the last op in the regions of an op, or its own."""
    inner = [region.terminator for region in op.regions if region.last is not None]
    return max([order[op], *(_last_inside(end, order) for end in inner)])


def _text_of_tile(value: Value) -> str:
    op = value.op
    if op is None and isinstance(value.owner, Block) and isinstance(value.owner.owner, Op):
        op = value.owner.owner
    place = "" if op is None or op.loc is None else f" (line {op.loc.outermost.line})"
    name = value.name or (op.opcode.rpartition(".")[2] if op is not None else "a tile")
    return f"{name} {register_count(value)}{place}"
