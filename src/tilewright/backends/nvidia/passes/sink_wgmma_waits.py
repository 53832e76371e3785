"""Sink waits for wgmma to the first use of its result, where other work can overlap: other dots, or
exchanges and arithmetic that no dot needs.

    %s = nvidia.wgmma %q, %x, 0          %s = nvidia.wgmma %q, %x, 0 {pending = none}
    %o = nvidia.wgmma %p, %y, %acc       %o = nvidia.wgmma %p, %y, %acc {pending = none}
    %w = math.exp2 %s              ->    %t = nvidia.wgmma_wait %s {pending = 1}
    %a = arith.mul %o, %r                %w = math.exp2 %t
                                         %u = nvidia.wgmma_wait %o {pending = 0}
                                         %a = arith.mul %u, %r

The operands of a dot are released when it completes: `nvidia.mbarrier_arrive` after it moves along.
The tensor cores have the second dot when the first one completes, while threads compute.

    %t = nvidia.convert %s               %o = nvidia.wgmma %x, %y, 0 {pending = none}
    %o = nvidia.wgmma %x, %y, 0   ->     %t = nvidia.convert %s
    %b = tile.broadcast %t               %u = nvidia.wgmma_wait %o {pending = 0}
    %a = arith.mul %o, %b                %b = tile.broadcast %t

The pass works within one block: no dot is in flight before a loop or a branch, nor at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.backends.nvidia.buffer_ops import WgmmaOp, WgmmaWaitOp
from tilewright.backends.nvidia.bulk_ops import MbarrierArriveOp
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.backends.nvidia.shared_memory.shared_accesses import conversion
from tilewright.ir import Block, Builder, Effect, Function, Op, Pass, Rewriter, Trait, Value
from tilewright.ir.types import TileType
from tilewright.layout import SharedMemory, WarpShuffle
from tilewright.ops import ancestor_in
from tilewright.support.data_class import dataclass


@dataclass(frozen=True)
class SinkWgmmaWaits(Pass, name="nvidia-sink-wgmma-waits"):
    """Wait for dots where their results are used."""

    def run(self, function: Function) -> bool:
        dots = [op for op in function.walk() if isinstance(op, WgmmaOp)]
        blocks = dict.fromkeys(op.parent for op in dots if op.pending == 0)
        return any([_sink(block) for block in blocks if block is not None])


def _sink(block: Block) -> bool:
    """Sink the waits of one block; whether there were any."""
    _move_work_after(block)
    _move_operands_after(block)
    ops = list(block)
    dots = [i for i, op in enumerate(ops) if isinstance(op, WgmmaOp)]
    # Deferred waits of a loop are in its next iteration.
    if any(ops[i].attrs["pending"] != 0 for i in dots):
        return False
    delayed: dict[int, int] = {}
    for i in dots:
        end = _first_use(ops, i)
        is_followed = any(i < other < end for other in dots)
        is_beside = any(end_of > i for end_of in delayed.values())
        if is_followed or is_beside or any(_is_exchange(op) for op in ops[i:end]):
            delayed[i] = end
    for i, end in delayed.items():
        _wait_at(ops[end], ops[i], sum(i < other < end for other in dots))
        # A slot is released once the dots that read it have completed, in order.
        following = next((other for other in dots if other > i), end)
        for release in ops[i : min(following, end)]:
            if isinstance(release, MbarrierArriveOp):
                Rewriter.move_before(release, ops[end])
    return bool(delayed)


def _move_work_after(block: Block) -> None:
    """Move ops that only users after a block's only dot need past the dot, if lanes exchange some.

    Otherwise they stay: operands would live longer for the sake of a few instructions.
    """
    dots = [op for op in block if isinstance(op, WgmmaOp)]
    if len(dots) != 1:
        return
    ops = list(block)
    number = ops.index(dots[0])
    after, moved = set(ops[number + 1 :]), list[Op]()
    for op in reversed(ops[:number]):
        if _is_computed(op) and all(
            ancestor_in(block, user) in after for user in op.results[0].uses
        ):
            after.add(op)
            moved.append(op)
    if any(_is_exchange(op) for op in moved):
        for op in reversed(moved):
            Rewriter.move_before(op, ops[number + 1])


def _move_operands_after(block: Block) -> None:
    """Exchange operands between lanes after the previous dot, so that both overlap."""
    last: Op | None = None
    for op in [op for op in block if isinstance(op, WgmmaOp)]:
        made = op.a.op
        if last is not None and made is not None and _is_sole_exchange(made, op) and last.next:
            if made in _before(last):
                Rewriter.move_before(made, last.next)
        last = op


def _is_sole_exchange(made: Op, dot: Op) -> bool:
    alone = made.parent is dot.parent and list(made.results[0].uses) == [dot]
    return alone and isinstance(made, ConvertOp) and _is_computed(made)


def _before(op: Op) -> Iterator[Op]:
    """The ops of a block before one."""
    while op.prev is not None:
        op = op.prev
        yield op


def _is_computed(op: Op) -> bool:
    """Whether an op computes a tile in registers, without a barrier of all warps."""
    if Trait.PURE not in op.traits or op.regions or not isinstance(op.results[0].type, TileType):
        return False
    if not isinstance(op, ConvertOp):
        return True
    chosen = conversion(op, matrix_stores=True)
    return not isinstance(chosen, SharedMemory) or chosen.is_inside_warps


def _is_exchange(op: Op) -> bool:
    return isinstance(op, ConvertOp) and isinstance(
        conversion(op, matrix_stores=True), SharedMemory | WarpShuffle
    )


def _first_use(ops: list[Op], number: int) -> int:
    """Where a dot must be complete: at its first use, a loop, a branch, or the block's end."""
    result = ops[number].results[0]
    later = range(number + 1, len(ops) - 1)
    return next((i for i in later if _needs(ops[i], result)), len(ops) - 1)


def _needs(op: Op, result: Value) -> bool:
    """Whether a dot must be complete: an op uses it, or shared memory in regions."""
    return any(
        result in inner.operands or (op.regions and Effect.SHARED in inner.effects)
        for inner in op.walk()
    )


def _wait_at(place: Op, dot: Op, pending: int) -> None:
    dot.attrs["pending"] = None
    users = list(dot.results[0].uses)
    ended = Builder.at(place).value(WgmmaWaitOp(dot.results[0], pending=pending))
    for user in users:
        Rewriter.replace_operand(user, dot.results[0], ended)
