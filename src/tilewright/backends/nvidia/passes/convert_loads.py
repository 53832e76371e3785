"""Moves conversions for products up to the loads, through element-wise code.

    %a = mem.load ... : tile<i8, A>                 %a = mem.load ... : tile<i8, A>
    %f = arith.cast %a : tile<f16, A>       ->      %x = nvidia.convert %a : tile<i8, B>
    %x = nvidia.convert %f : tile<f16, B>           %f = arith.cast %x : tile<f16, B>
    %c = tile.dot %x, ...                           %c = tile.dot %f, ...

A load that a conversion follows at once can be copied ahead through shared memory, see
software_pipeline.py; the code between runs on the operands, in the layout of the product. Only in
loops that are pipelined, and where all that is made of the load goes to this one conversion.

Several warps hold the same operands, so they do what moved several times. What is loaded in fewer
bits than it is multiplied in stays where it is, to be widened once; such a load gets a conversion
to its own layout, which only copies it ahead. TFLOP/s of products of 4096 on an H200:

                              not copied ahead    moved    stays
    fp32, cast to fp16                     125      245      211
    int8, cast to fp16                     154      165      207
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.ir import Builder, Function, Op, Pass, Rewriter, Trait, Value
from tilewright.ir.types import TileType, element_of
from tilewright.layout import LinearLayout
from tilewright.ops import ConstantOp, DotOp, ForOp, LoadOp, SplatOp


@dataclass(frozen=True)
class ConvertLoads(Pass, name="nvidia-convert-loads"):
    """Move conversions of operands up to their loads. stages: of loops that do not say."""

    stages: int = 3

    def run(self, function: Function) -> bool:
        conversions = [op for op in function.walk() if isinstance(op, ConvertOp)]
        movable = [(op, _load_slice(op, self.stages)) for op in conversions]
        changed = False
        for op, path in movable:
            if path is None:
                continue
            load, between = path
            if element_of(load.type).bits < element_of(op.type).bits:
                _convert_in_place(load)
            else:
                _move(op, load, between)
            changed = True
        return changed


def _load_slice(op: ConvertOp, stages: int) -> tuple[LoadOp, list[Op]] | None:
    """The load behind a conversion and the ops between in order; None if it must stay."""
    block = op.parent
    loop = block.owner if block is not None else None
    if not isinstance(loop, ForOp) or (stages if loop.stages is None else loop.stages) < 2:
        return None
    if not op.result.uses or not all(isinstance(user, DotOp) for user in op.result.uses):
        return None
    behind: set[Op] = set()
    stack = [op.x]
    while stack:
        maker = stack.pop().op
        if maker is None:
            return None
        if maker in behind:
            continue
        behind.add(maker)
        if isinstance(maker, LoadOp | SplatOp | ConstantOp):
            continue
        if maker.parent is not block or Trait.ELEMENTWISE not in maker.traits:
            return None
        stack += maker.operands
    return _checked(op, behind)


def _checked(op: ConvertOp, behind: set[Op]) -> tuple[LoadOp, list[Op]] | None:
    """The slice in order, if it has one load and nobody else uses what comes of it."""
    loads = [maker for maker in behind if isinstance(maker, LoadOp)]
    # Nothing needs to move if the load is the only op behind the conversion.
    if len(loads) != 1 or len(behind) < 2 or loads[0].parent is not op.parent:
        return None
    for maker in behind:
        # Constants are cloned, so that others may use them.
        leaf = isinstance(maker, SplatOp | ConstantOp)
        if not leaf and not all(user in behind or user is op for user in maker.results[0].uses):
            return None
    assert op.parent is not None
    ordered = [o for o in op.parent if o in behind and o is not loads[0]]
    return loads[0], [m for m in behind if m.parent is not op.parent] + ordered


def _convert_in_place(load: LoadOp) -> None:
    """Convert a load to its own layout: the copy ahead will take the place of that conversion."""
    # Before the conversion is a user itself.
    users = list(load.result.uses)
    same = Builder.after(load).value(ConvertOp(load.result, load.type))
    for user in users:
        Rewriter.replace_operand(user, load.result, same)


def _move(op: ConvertOp, load: LoadOp, between: list[Op]) -> None:
    """Convert right behind the load, and clone what stood between in the new layout."""
    target = cast("TileType", op.result.type)
    layout = cast("LinearLayout", target.layout)
    builder = Builder.at(op)
    loaded = TileType(target.shape, element_of(load.type), layout)
    mapping: dict[Value, Value] = {load.result: builder.value(ConvertOp(load.result, loaded))}
    for old in between:
        new = old.clone(mapping)
        type_ = old.results[0].type
        if isinstance(type_, TileType):
            new.results[0].type = TileType(type_.shape, type_.element, layout)
            # Some ops keep their type as an attribute, too.
            if "result_type" in new.attrs:
                new.attrs["result_type"] = new.results[0].type
        builder.emit(new)
        mapping[old.results[0]] = new.results[0]
    Rewriter.replace(op, mapping[op.x])
