"""Structured control flow as basic blocks; carried tiles are one phi for each register.

Tiles of bytes have one phi for four elements, tiles of 16 bits one for two: the phi of a byte would
take a register of its own, and halves would be packed again after a branch.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.layouts.tile_layout import register_count
from tilewright.backends.nvidia.lower.gpu_lowering import (
    BODY,
    GpuLowering,
    lowering,
    register_type,
)
from tilewright.backends.nvidia.lower.register_packing import pack, unpack
from tilewright.backends.nvidia.role_ops import is_over_programs
from tilewright.ir import Block, Op, Value
from tilewright.ir.types import dtype_of
from tilewright.llvm import Val
from tilewright.ops import (
    AssumeOp,
    ConditionOp,
    ForOp,
    IfOp,
    ReturnOp,
    WhileOp,
    YieldOp,
)


class _Phis:
    """The phis of a loop head: made first, completed once the body is lowered.

    inits: the registers that `_registers` gives of the values before the loop
    """

    def __init__(self, state: GpuLowering, args: Sequence[Value], inits: Sequence[Val]) -> None:
        self.state = state
        names = [Val(state.code.name("c"), init.type, BODY) for init in inits]
        self.lines = list(zip(names, inits, strict=True))
        self.position = len(state.code.sections[-1])
        _set_registers(state, args, names)

    def add(self, init: Val) -> Val:
        """A further register, carried by the loop alone."""
        phi = Val(self.state.code.name("c"), init.type, BODY)
        self.lines.append((phi, init))
        return phi

    def complete(self, following: Sequence[Val], before: str, latch: str) -> None:
        # The inputs are known only now, but phis must stand first in their block.
        text = [
            f"{phi} = phi {phi.type} [ {init}, %{before} ], [ {value}, %{latch} ]"
            for (phi, init), value in zip(self.lines, following, strict=True)
        ]
        self.state.code.sections[-1][self.position : self.position] = text


def _registers(state: GpuLowering, values: Sequence[Value]) -> list[Val]:
    """Registers that a block passes on for values."""
    passed: list[Val] = []
    for value in values:
        registers = state.registers_of(value)
        is_packed = _of_word(value) > 1
        passed += pack(state, registers, dtype_of(value.type)) if is_packed else registers
    return passed


def _set_registers(state: GpuLowering, values: Sequence[Value], passed: Sequence[Val]) -> None:
    """Set the registers of values from those that a block has passed on."""
    rest = list(passed)
    for value in values:
        count, of_word = register_count(value), _of_word(value)
        taken = count // of_word
        words, rest = rest[:taken], rest[taken:]
        registers = unpack(state, words, count, dtype_of(value.type)) if of_word > 1 else words
        state.set_registers(value, registers)


_OF_WORD = {"i8": 4, "half": 2, "bfloat": 2}
"""Elements in 32 bits."""


def _of_word(value: Value) -> int:
    """Elements of a tile that are passed on in one register."""
    count = _OF_WORD.get(register_type(value), 1)
    return count if register_count(value) % count == 0 else 1


def _labels(state: GpuLowering, *names: str) -> list[str]:
    return [state.code.label(name) for name in names]


def _open(state: GpuLowering, before: str, head: str) -> None:
    # A block of its own before the head: phis need the label of what precedes them.
    for line in (f"br label %{before}", f"{before}:", f"br label %{head}", f"{head}:"):
        state.code.line(line)


def _terminator(block: Block) -> list[Value]:
    return block.terminator.operands


_NO_UNROLL = r'call void asm sideeffect ".pragma \22nounroll\22;", ""()'
"""For ptxas, in the header of a loop."""


@lowering(ForOp)
def _for(state: GpuLowering, op: ForOp) -> None:
    """Lower a loop that counts the remaining iterations down to zero, in addition to the index.

    A test of the index would not do: ptxas unrolls loops by four as if three more steps could not
    overflow, so a loop that exits where `index != end` fails may never exit. See ADR 0017.
    """
    code = state.code
    before, head, body, latch, done = _labels(state, "before", "head", "body", "latch", "done")
    step, upper = state.scalar(op.step), state.scalar(op.upper)
    # A program should not begin with a division.
    trips = None if is_over_programs(op) else _trips(state, op)
    inits = _registers(state, [op.lower, *op.inits])
    _open(state, before, head)
    phis = _Phis(state, op.body.args, inits)
    left = None if trips is None else phis.add(trips)
    index = state.scalar(op.index)
    if op.unroll == 1:
        code.line(_NO_UNROLL)
    test = f"icmp ult {index.typed}, {upper}" if left is None else f"icmp ne {left.typed}, 0"
    continues = code.let_here(test, "i1")
    code.line(f"br i1 {continues}, label %{body}, label %{done}")
    code.line(f"{body}:")
    state.lower_block(state, op.body)
    yielded = _registers(state, _terminator(op.body))
    # The body may end in another block than its first: the latch has a label of its own.
    code.line(f"br label %{latch}")
    code.line(f"{latch}:")
    # No nsw: the index after the last iteration may wrap, and is not used.
    following = code.let_here(f"add {index.typed}, {step}", index.type)
    fewer = [] if left is None else [code.let_here(f"sub {left.typed}, 1", left.type)]
    code.line(f"br label %{head}")
    code.line(f"{done}:")
    phis.complete([following, *yielded, *fewer], before, latch)
    for arg, result in zip(op.carried, op.results, strict=True):
        state.set_registers(result, state.registers_of(arg))


def _trips(state: GpuLowering, loop: ForOp) -> Val:
    """ceil(max(upper - lower, 0) / step), unsigned, of the index's width; 1 for a step of 0.

    The steps of `transforms.trip_count`: LLVM sees that both are one number.
    """
    code, lower, upper, step = state.code, *map(state.scalar, (loop.lower, loop.upper, loop.step))
    type_ = lower.type
    largest = f"llvm.{'s' if dtype_of(loop.lower.type).is_signed else 'u'}max.{type_}"
    state.module.declare(largest, f"declare {type_} @{largest}({type_}, {type_})")
    highest = code.let_here(f"call {type_} @{largest}({lower.typed}, {upper.typed})", type_)
    span = code.let_here(f"sub {highest.typed}, {lower}", type_)
    if step.text == "1":
        return span
    if not step.constant:
        # A udiv by 0 would be undefined behaviour, of the whole kernel.
        is_zero = code.let_here(f"icmp eq {step.typed}, 0", "i1")
        step = code.let_here(f"select i1 {is_zero}, {type_} 1, {step.typed}", type_)
    # Not (span + step - 1) / step, which wraps for the largest spans.
    whole = code.let_here(f"udiv {span.typed}, {step}", type_)
    covered = code.let_here(f"mul {whole.typed}, {step}", type_)
    is_rest = code.let_here(f"icmp ult {covered.typed}, {span}", "i1")
    rest = code.let_here(f"zext i1 {is_rest} to {type_}", type_)
    return code.let_here(f"add {whole.typed}, {rest}", type_)


@lowering(WhileOp)
def _while(state: GpuLowering, op: WhileOp) -> None:
    code = state.code
    before, head, body, latch, done = _labels(state, "before", "head", "body", "latch", "done")
    inits = _registers(state, op.inits)
    _open(state, before, head)
    phis = _Phis(state, op.before.args, inits)
    state.lower_block(state, op.before)
    go, *passed = _terminator(op.before)
    for value, arg, result in zip(passed, op.body.args, op.results, strict=True):
        state.set_registers(arg, state.registers_of(value))
        state.set_registers(result, state.registers_of(value))
    code.line(f"br i1 {state.scalar(go)}, label %{body}, label %{done}")
    code.line(f"{body}:")
    state.lower_block(state, op.body)
    yielded = _registers(state, _terminator(op.body))
    code.line(f"br label %{latch}")
    code.line(f"{latch}:")
    code.line(f"br label %{head}")
    code.line(f"{done}:")
    phis.complete(yielded, before, latch)


@lowering(IfOp)
def _if(state: GpuLowering, op: IfOp) -> None:
    code = state.code
    then, orelse, join = _labels(state, "then", "else", "join")
    condition = state.scalar(op.condition)
    code.line(f"br i1 {condition}, label %{then}, label %{orelse}")
    ends: list[tuple[str, list[Val]]] = []
    for label, block in ((then, op.then), (orelse, op.orelse)):
        code.line(f"{label}:")
        state.lower_block(state, block)
        passed = _registers(state, _terminator(block))
        # As with latches: the branch may have ended in another block than it began.
        end = code.label("end")
        code.line(f"br label %{end}")
        code.line(f"{end}:")
        code.line(f"br label %{join}")
        ends.append((end, passed))
    code.line(f"{join}:")
    _merge(state, op, ends)


def _merge(state: GpuLowering, op: Op, ends: list[tuple[str, list[Val]]]) -> None:
    """The results of an op at the start of a block, from the registers at each end before it."""
    merged: list[Val] = []
    for position, one in enumerate(ends[0][1]):
        sources = ", ".join(f"[ {passed[position]}, %{end} ]" for end, passed in ends)
        merged.append(state.code.let_here(f"phi {one.type} {sources}", one.type))
    _set_registers(state, op.results, merged)


@lowering(YieldOp, ConditionOp, AssumeOp)
def _nothing(state: GpuLowering, op: YieldOp | ConditionOp | AssumeOp) -> None:
    """The region that it ends takes its operands; an assumption is not used."""


@lowering(ReturnOp)
def _return(state: GpuLowering, op: ReturnOp) -> None:
    state.code.line("ret void")
