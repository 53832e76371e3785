"""The lines whose tiles hold the most registers of a kernel that spills.

    tiles hold up to 192 registers per thread at line 21: acc 128 (line 18), p 64 (line 20)

Counts tiles only, by `register_model`; ptxas needs more for addresses and temporaries, and may move
code.
"""

from __future__ import annotations

from tilewright.backends.nvidia.register_model import register_count, register_pressure
from tilewright.ir import Block, Function, Op, Value

_NAMED = 4
"""Tiles that are named, the largest first."""


def pressure_text(function: Function) -> str:
    """The point with the most registers in tiles, and the largest of these."""
    most = register_pressure(function)
    place = "" if most.op is None or most.op.loc is None else f" at line {most.op.loc.line}"
    # by their texts among equals, since a set has no order
    largest = sorted(map(_text_of_tile, most.tiles))[:_NAMED]
    held = ", ".join(text for _, text in largest)
    return f"tiles hold up to {most.registers} registers per thread{place}: {held}"


def _text_of_tile(value: Value) -> tuple[int, str]:
    """The registers of a tile, negated, since the largest come first, and its text."""
    op = value.op
    if op is None and isinstance(value.owner, Block) and isinstance(value.owner.owner, Op):
        op = value.owner.owner
    place = "" if op is None or op.loc is None else f" (line {op.loc.outermost.line})"
    name = value.name or (op.opcode.rpartition(".")[2] if op is not None else "a tile")
    registers = register_count(value)
    return -registers, f"{name} {registers}{place}"
