"""Skew dots of computed operands into the next iteration, together with its first dot.

    cf.for %j = 0, %n (%acc) {                 cf.for %j = 0, %n (%acc, %p = zeros, %y = zeros) {
      %x = nvidia.share (a load)                 %x = nvidia.share (a load)
      %s = nvidia.wgmma %q, %x, 0                %s = nvidia.wgmma %q, %x, 0
      %w, %r = ... %s                            %b = nvidia.share %y
      %y = mem.load                              %o = nvidia.wgmma %p, %b, %acc, true, %j != 0
      %b = nvidia.share %y            ->         %w, %r = ... %s
      %a = arith.mul %acc, %r                    %z = mem.load
      %o = nvidia.wgmma %w, %b, %a               %a = arith.mul %o, %r
      cf.yield %o                                cf.yield %a, %w, %z
    }                                          }
                                               %b = nvidia.share %z
                                               %o = nvidia.wgmma %w, %b, %a, true, 0 < %n

A dot whose operand is computed from another dot waits for both, and the tensor cores idle. One
iteration later all its operands are available: it is issued together with that iteration's first
dot, and overlaps with the arithmetic on that dot (as in Shah et al., "FlashAttention-3", 2024,
section 3.2). In the first iteration it does not run.

Computed operands stay in registers until then, so a loop is left alone where these, the
accumulators and the rest exceed the registers per thread (register_model.py).
"""

from __future__ import annotations

from tilewright.analysis import Alignment, analyze_alignment
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.buffer_ops import ShareOp, WgmmaOp
from tilewright.backends.nvidia.register_model import (
    Overhead,
    live_registers,
    register_count,
)
from tilewright.backends.nvidia.schedule.schedule_loop import (
    MIN_COPY_BYTES,
    Load,
    form_obstacle,
    inputs,
)
from tilewright.ir import Builder, Function, Op, Pass, Rewriter, Trait, Value
from tilewright.ir.types import TileType, dtype_of, i1
from tilewright.ops import DescriptorLoadOp, ForOp, TransposeOp
from tilewright.support.data_class import dataclass
from tilewright.transforms import add_slot, set_operands, yield_more


@dataclass(frozen=True)
class SkewDependentDots(Pass, name="nvidia-skew-dependent-dots"):
    """Skew dependent wgmma dots to overlap with the first dot of the next iteration.

    stages: slots of a loop's buffers, for loops without a number of their own; warps: of a program
    instance; capability: of the architecture; registers: the maximum per thread
    """

    stages: int = 3
    warps: int = 4
    capability: int = 90
    registers: int = 255

    def run(self, function: Function) -> bool:
        loops = [op for op in function.walk() if isinstance(op, ForOp)]
        candidates = {loop: _candidates(loop) for loop in loops if self._is_pipelined(loop)}
        if not any(candidates.values()):
            return False
        facts = analyze_alignment(function)
        changed = False
        for loop, rotations in candidates.items():
            fit = [r for r in rotations if _is_copied(r.load, facts)]
            if fit and self._has_registers(loop, fit):
                slots: dict[Value, int] = {}
                for rotation in fit:
                    rotation.apply(slots)
                changed = True
        return changed

    def _is_pipelined(self, loop: ForOp) -> bool:
        return (self.stages if loop.stages is None else loop.stages) > 1

    def _has_registers(self, loop: ForOp, rotations: list[_Rotation]) -> bool:
        operands = {rotation.dot.a for rotation in rotations}
        carried = sum(register_count(operand, self.warps) for operand in operands)
        used = live_registers(loop, self.warps) + carried + Overhead.LEAST
        arch = row_for(self.capability)
        return used <= min(self.registers, arch.registers_sm // (32 * self.warps))


@dataclass(frozen=True, slots=True)
class _Rotation:
    """One dot to be skewed.

    first: the dot that it then follows; share, load: its operand in shared memory and the load of
    it; carried: its accumulator of the previous iteration
    """

    loop: ForOp
    first: WgmmaOp
    dot: WgmmaOp
    share: ShareOp
    load: Load
    carried: Value

    def apply(self, slots: dict[Value, int]) -> None:
        """slots: of operands that are carried already, for other dots."""
        dot, slot = self.dot, self.carried.index - 1
        if dot.a not in slots:
            slots[dot.a] = self._carry(dot.a, "left")
        left = slots[dot.a]
        right = self._carry(self.load.result, "right")
        body = Builder.after(self.first)
        operand = self._shared(body, self.loop.body.args[right + 1])
        runs = body.ne(self.loop.index, self.loop.lower)
        moved = self._dot(body, self.loop.body.args[left + 1], operand, self.carried, runs)
        for user in [user for user in self.carried.uses if user is not moved]:
            Rewriter.replace_operand(user, self.carried, moved.result)
        acc = dot.acc
        self.loop.body.terminator.set_operand(slot, moved.result if acc is self.carried else acc)
        self._finish(slot, left, right)
        Rewriter.erase(dot)
        Rewriter.erase(self.share)
        _move_to_end(self.loop.body.terminator.operands[left].op, self.loop)

    def _carry(self, value: Value, name: str) -> int:
        """Carry a value of the body to the next iteration, zeros to the first; returns the slot."""
        zeros = Builder.at(self.loop).constant(0, value.type)
        add_slot(self.loop, zeros, name)
        yield_more(self.loop, value)
        return len(self.loop.results) - 1

    def _shared(self, builder: Builder, loaded: Value) -> Value:
        """A loaded tile in shared memory, as the dot reads it."""
        source = self.share.x.op
        if isinstance(source, TransposeOp):
            loaded = builder.value(TransposeOp(loaded, order=source.order))
        return builder.value(ShareOp(loaded, result_type=self.share.result.type))

    def _dot(self, builder: Builder, left: Value, right: Value, acc: Value, runs: Value) -> Op:
        """The dot of the previous iteration, predicated by whether it exists."""
        moved = builder.emit(self.dot.clone({}))
        keep = Builder.at(moved).constant(True, i1)
        set_operands(moved, (left, right, acc, keep, runs))
        return moved

    def _finish(self, slot: int, left: int, right: int) -> None:
        """Emit the dot of the last iteration after the loop."""
        results = self.loop.results
        after = Builder.after(self.loop)
        operand = self._shared(after, results[right])
        users = list(results[slot].uses)
        runs = after.lt(self.loop.lower, self.loop.upper)
        last = self._dot(after, results[left], operand, results[slot], runs)
        for user in users:
            Rewriter.replace_operand(user, results[slot], last.result)


def _candidates(loop: ForOp) -> list[_Rotation]:
    """The dots of a loop that may be skewed: they need the result of another dot."""
    found = [_rotation(op, loop) for op in loop.body if isinstance(op, WgmmaOp)]
    return [rotation for rotation in found if rotation is not None]


def _rotation(dot: WgmmaOp, loop: ForOp) -> _Rotation | None:
    if not isinstance(dot.a.type, TileType) or dot.keep is not None:
        return None
    first = _first_dot(dot.a, loop)
    source = _sole_load(dot, loop)
    carried = _rescaled(dot, loop)
    if first is None or source is None or carried is None:
        return None
    return _Rotation(loop, first, dot, *source, carried)


def _first_dot(value: Value, loop: ForOp) -> WgmmaOp | None:
    """The first dot of the iteration on which a value depends."""
    needed, stack = set[Op](), [value]
    while stack:
        op = stack.pop().op
        if op is not None and op.parent is loop.body and op not in needed:
            needed.add(op)
            stack += inputs(op)
    return next((op for op in loop.body if op in needed and isinstance(op, WgmmaOp)), None)


def _sole_load(dot: WgmmaOp, loop: ForOp) -> tuple[ShareOp, Load] | None:
    """The copy of operand B to shared memory and its load, if only the dot uses them."""
    share = dot.b.op
    if not isinstance(share, ShareOp) or list(share.result.uses) != [dot]:
        return None
    tile, user = share.x, share
    if isinstance(tile.op, TransposeOp) and list(tile.uses) == [share]:
        tile, user = tile.op.x, tile.op
    load = tile.op
    if not isinstance(load, Load) or load.parent is not loop.body or list(tile.uses) != [user]:
        return None
    return share, load


def _rescaled(dot: WgmmaOp, loop: ForOp) -> Value | None:
    """The carried accumulator of a dot, also rescaled element by element, if nothing else in the
    loop uses it or the result."""
    end = loop.body.terminator
    if list(dot.result.uses.items()) != [(end, 1)]:
        return None
    carried = loop.carried[end.operands.index(dot.result)]
    value = carried
    while value is not dot.acc:
        user = _sole_user(value)
        if user is None or user.parent is not loop.body or Trait.ELEMENTWISE not in user.traits:
            return None
        value = user.results[0]
    return carried if _sole_user(value) is dot else None


def _sole_user(value: Value) -> Op | None:
    """The only user of a value, if it uses it once."""
    return next(iter(value.uses)) if list(value.uses.values()) == [1] else None


def _is_copied(load: Load, facts: dict[Value, Alignment]) -> bool:
    """Whether a load, which has no layout yet, will be an asynchronous copy."""
    if isinstance(load, DescriptorLoadOp):
        return load.bulk
    if form_obstacle(load):
        return False
    pointer, size = facts[load.pointer], dtype_of(load.type).bytes
    masked = [MIN_COPY_BYTES] * 2 if load.mask is None else facts[load.mask].constancy
    runs = zip(pointer.contiguity, pointer.divisibility, masked, strict=True)
    bytes_of_runs = (min(run * size, aligned, same * size) for run, aligned, same in runs)
    return max(bytes_of_runs) >= MIN_COPY_BYTES


def _move_to_end(op: Op | None, loop: ForOp) -> None:
    """Move ops that only the next iteration uses to the end: operands must not change while dots
    run."""
    if op is not None and op.parent is loop.body and _sole_user(op.results[0]) is not None:
        Rewriter.move_before(op, loop.body.terminator)
