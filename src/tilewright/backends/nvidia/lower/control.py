"""Structured control flow as basic blocks; carried tiles are one phi for each register."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tilewright.backends.nvidia.lower.state import (
    BODY,
    State,
    lowering,
    register_count,
    register_type,
)
from tilewright.ir import Block, Op, Value
from tilewright.ir.types import dtype_of
from tilewright.llvm import Val
from tilewright.ops import AssumeOp, ConditionOp, ForOp, IfOp, ReturnOp, WhileOp, YieldOp


class _Phis:
    """The phis of a loop head: made first, completed when the body is known."""

    def __init__(self, state: State, args: Sequence[Value], inits: Sequence[Value]) -> None:
        self.state = state
        self.lines: list[tuple[Val, Val]] = []
        for arg, init in zip(args, inits, strict=True):
            type_ = register_type(arg)
            names = [Val(state.code.name("c"), type_, BODY) for _ in range(register_count(arg))]
            self.lines += zip(names, state.of(init), strict=True)
            state.set(arg, names)
        self.position = len(state.code.sections[-1])

    def complete(self, following: Sequence[Val], before: str, latch: str) -> None:
        text = [
            f"{phi} = phi {phi.type} [ {init}, %{before} ], [ {value}, %{latch} ]"
            for (phi, init), value in zip(self.lines, following, strict=True)
        ]
        self.state.code.sections[-1][self.position : self.position] = text


def _registers(state: State, values: Sequence[Value]) -> list[Val]:
    return [register for v in values for register in state.of(v)]


def _labels(state: State, *names: str) -> list[str]:
    return [state.code.label(name) for name in names]


def _open(state: State, before: str, head: str) -> None:
    for line in (f"br label %{before}", f"{before}:", f"br label %{head}", f"{head}:"):
        state.code.line(line)


def _terminator(block: Block) -> list[Value]:
    return block.terminator.operands


@lowering(ForOp)
def _for(state: State, op: Op) -> None:
    loop, code = cast("ForOp", op), state.code
    before, head, body, latch, done = _labels(state, "before", "head", "body", "latch", "done")
    upper, step = state.scalar(loop.upper), state.scalar(loop.step)
    _open(state, before, head)
    phis = _Phis(state, loop.body.args, [loop.lower, *loop.inits])
    index = state.scalar(loop.index)
    signed = "s" if dtype_of(loop.lower.type).is_signed else "u"
    go = code.let_here(f"icmp {signed}lt {index.typed}, {upper}", "i1")
    code.line(f"br i1 {go}, label %{body}, label %{done}")
    code.line(f"{body}:")
    state.lower_block(state, loop.body)
    code.line(f"br label %{latch}")
    code.line(f"{latch}:")
    following = code.let_here(f"add nsw {index.typed}, {step}", index.type)
    code.line(f"br label %{head}")
    code.line(f"{done}:")
    phis.complete([following, *_registers(state, _terminator(loop.body))], before, latch)
    for arg, result in zip(loop.carried, loop.results, strict=True):
        state.set(result, state.of(arg))


@lowering(WhileOp)
def _while(state: State, op: Op) -> None:
    loop, code = cast("WhileOp", op), state.code
    before, head, body, latch, done = _labels(state, "before", "head", "body", "latch", "done")
    _open(state, before, head)
    phis = _Phis(state, loop.before.args, loop.inits)
    state.lower_block(state, loop.before)
    go, *passed = _terminator(loop.before)
    for value, arg, result in zip(passed, loop.body.args, loop.results, strict=True):
        state.set(arg, state.of(value))
        state.set(result, state.of(value))
    code.line(f"br i1 {state.scalar(go)}, label %{body}, label %{done}")
    code.line(f"{body}:")
    state.lower_block(state, loop.body)
    code.line(f"br label %{latch}")
    code.line(f"{latch}:")
    code.line(f"br label %{head}")
    code.line(f"{done}:")
    phis.complete(_registers(state, _terminator(loop.body)), before, latch)


@lowering(IfOp)
def _if(state: State, op: Op) -> None:
    branch, code = cast("IfOp", op), state.code
    then, orelse, join = _labels(state, "then", "else", "join")
    condition = state.scalar(branch.condition)
    code.line(f"br i1 {condition}, label %{then}, label %{orelse}")
    ends: list[tuple[str, list[Val]]] = []
    for label, block in ((then, branch.then), (orelse, branch.orelse)):
        code.line(f"{label}:")
        state.lower_block(state, block)
        end = code.label("end")
        code.line(f"br label %{end}")
        code.line(f"{end}:")
        code.line(f"br label %{join}")
        ends.append((end, _registers(state, _terminator(block))))
    code.line(f"{join}:")
    _join(state, branch, ends)


def _join(state: State, branch: IfOp, ends: list[tuple[str, list[Val]]]) -> None:
    position = 0
    for result in branch.results:
        type_ = register_type(result)
        merged: list[Val] = []
        for _ in range(register_count(result)):
            sources = ", ".join(f"[ {values[position]}, %{end} ]" for end, values in ends)
            merged.append(state.code.let_here(f"phi {type_} {sources}", type_))
            position += 1
        state.set(result, merged)


@lowering(YieldOp, ConditionOp, AssumeOp)
def _nothing(state: State, op: Op) -> None:
    """The region that it ends takes its operands; an assumption is not used."""


@lowering(ReturnOp)
def _return(state: State, op: Op) -> None:
    state.code.line("ret void")
