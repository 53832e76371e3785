"""Splits long straight-line code into basic blocks, and separates loops of long sequences.

LLVM's scheduler and instruction selection compare every access to memory of a block with those
before it, in quadratic time (figures in ADR 0033). LLVM joins blocks that follow each other, so a
condition separates them that is never true, which LLVM cannot prove:

    %never = icmp eq i32 %grid0, -7        a grid has no negative size
    br i1 %never, label %out, label %on

To bound the iterations of a loop, LLVM examines all conditions above it, up to a block with two
predecessors. So such a block is inserted between loops, whose second predecessor is never executed;
it contains inline assembly without instructions, which keeps LLVM from removing it.

    br i1 %never, label %apart, label %on
    apart:
    call void asm sideeffect "", ""()
    br label %on
    on:
    %start = phi i32 [ %n, %ending ], [ 0, %apart ]
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.llvm import Val, integer_literal

LONG = 500
"""Lines of straight-line code from which it is split; the comparison and branch cost nothing."""

LOOPS = 16
"""Loops of a function between two such blocks; ordinary kernels have fewer."""


def split_long_block(state: CpuLowering) -> None:
    """End the block if many lines and stores have been emitted since the last time."""
    code = state.code
    section = code.sections[-1]
    start = state.split_line if state.split_section is section else 0
    if len(section) - start < LONG:
        return
    # Only accesses to memory are compared; masked stores are calls.
    stores = any(line.startswith(("store ", "call void ")) for line in section[start:])
    if stores:
        never = _never(state)
        out, on = code.label("out"), code.label("on")
        code.line(f"br {never.typed}, label %{out}, label %{on}")
        code.line(f"{out}:")
        code.line("ret void")
        code.line(f"{on}:")
    state.split_section, state.split_line = section, len(section)


def separate_loops(state: CpuLowering, starts: Sequence[Val]) -> Sequence[Val]:
    """Begin a block with two predecessors before every LOOPS-th loop.

    Returns the initial values of the loop as phis: LLVM would find them from the loops above.
    """
    state.loops_emitted += 1
    # Counted over the function, so nested loops count as well as consecutive ones.
    if state.loops_emitted % LOOPS:
        return starts
    code = state.code
    ending, apart, on = (code.label(name) for name in ("ending", "apart", "on"))
    code.line(f"br label %{ending}")
    code.line(f"{ending}:")
    code.line(f"br {_never(state).typed}, label %{apart}, label %{on}")
    code.line(f"{apart}:")
    code.line('call void asm sideeffect "", ""()')
    code.line(f"br label %{on}")
    code.line(f"{on}:")
    phis = [Val(code.name("start"), value.type) for value in starts]
    for phi, value in zip(phis, starts, strict=True):
        code.line(f"{phi} = phi {phi.type} [ {value}, %{ending} ], [ 0, %{apart} ]")
    return phis


def _never(state: CpuLowering) -> Val:
    """A condition that is false; always a new one, or LLVM would know it from the last branch."""
    state.split_count += 1
    size = integer_literal(-state.split_count)
    return state.code.let_here(f"icmp eq {state.grid[0].typed}, {size}", "i1")
