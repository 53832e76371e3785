"""Divides long straight-line code into basic blocks.

LLVM's scheduler and instruction selection compare every access to memory of a block with those
before it: 3,000 stores in one block take 3 s, in blocks of 500 lines 0.3. LLVM joins blocks that
follow each other, so a condition parts them that is never true, but of which LLVM does not
know that:

    %never = icmp eq i32 %grid0, -7        a grid has no negative size
    br i1 %never, label %out, label %on
"""

from __future__ import annotations

from tilewright.backends.cpu.lower.cpu_state import State
from tilewright.llvm import integer_literal

LONG = 500
"""Lines of straight-line code from which it is divided; the comparison and branch cost nothing."""


def divide(state: State) -> None:
    """End the block if much has been emitted, and stored, since the last time."""
    code = state.code
    section = code.sections[-1]
    start = state.divided if state.dividing is section else 0
    if len(section) - start < LONG:
        return
    stores = any(line.startswith(("store ", "call void ")) for line in section[start:])
    if stores:
        state.divisions += 1
        size = integer_literal(-state.divisions)
        never = code.let_here(f"icmp eq {state.grid[0].typed}, {size}", "i1")
        out, on = code.label("out"), code.label("on")
        code.line(f"br {never.typed}, label %{out}, label %{on}")
        code.line(f"{out}:")
        code.line("ret void")
        code.line(f"{on}:")
    state.dividing, state.divided = section, len(section)
