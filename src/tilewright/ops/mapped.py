"""Ops that apply a region or inline assembly to each element, or to groups of elements.

A group is `pack` consecutive elements along the last dimension.
"""

from __future__ import annotations

import re

from tilewright.ir import Block, Effect, Op, Trait, Value, any_type, attr, region, variadic
from tilewright.ir.types import Type, element_of, shape_of, with_shape
from tilewright.ops.region_checks import op_with_effects, wrong_args


def _wrong_groups(inputs: tuple[Value, ...], pack: int) -> str | None:
    shapes = {shape_of(x.type) for x in inputs}
    if len(shapes) != 1:
        return f"the operands must have one shape, not {sorted(shapes)}"
    shape = shapes.pop()
    if pack < 1 or (pack > 1 and (not shape or shape[-1] % pack)):
        return f"groups of {pack} do not divide {inputs[0].type}"
    return None


class MapOp(Op, opcode="tile.map", traits=(Trait.PURE,)):
    """results[i] = function(inputs[i]); with pack > 1 once for each group of elements

    `function` takes the group of the first input, then that of the second, and so on, as scalars;
    it yields the groups of the results in the same way.
    """

    inputs: tuple[Value, ...] = variadic(any_type)
    function: Block = region()
    pack: int = attr(default=1)

    def infer(self) -> tuple[Type, ...]:
        shape = shape_of(self.inputs[0].type)
        yielded = self.function.terminator.operands[:: self.pack]
        return tuple(with_shape(value.type, shape) for value in yielded)

    def verify(self) -> str | None:
        elements = tuple(element_of(x.type) for x in self.inputs for _ in range(self.pack))
        effect = op_with_effects(self.function)
        if effect is not None:
            return f"`function` must be free of effects; it contains {effect.opcode}"
        return _wrong_groups(self.inputs, self.pack) or wrong_args(
            "`function`", self.function, elements
        )


_PLACEHOLDER = re.compile(r"\$(?:(\$)|(\d+)|\{(\d+)(?::r)?\})?")
"""`$$`, `$0`, `${0}` and `${0:r}`; any other `$`, on which LLVM aborts."""


def wrong_assembly(text: str, constraints: str) -> tuple[str, str] | None:
    """The expected text and the one found, if LLVM rejects the assembly; otherwise None."""
    for char in text:
        if not (" " <= char <= "~" or char in "\t\n\r"):
            return "assembly in ASCII", repr(char)
    parts = (part.strip() for part in constraints.split(","))
    count = sum(bool(part) and part[0] != "~" for part in parts)
    for match in _PLACEHOLDER.finditer(text):
        number = match[2] or match[3]
        if match[1] is None and (number is None or int(number[:9]) >= count):
            found = text[match.start() : match.start() + max(2, len(match[0]))]
            return f"assembly with operands $0 to ${count - 1}, and $$ for a dollar", repr(found)
    return None


class _Assembly(Op):
    """Base class of assembly with and without effects."""

    inputs: tuple[Value, ...] = variadic(any_type)
    text: str = attr()
    constraints: str = attr()
    result_types: tuple[Type, ...] = attr()
    pack: int = attr(default=1)

    def verify(self) -> str | None:
        if not self.result_types:
            return "assembly has at least one result"
        if (wrong := wrong_assembly(self.text, self.constraints)) is not None:
            return f"the text must be {wrong[0]}, found {wrong[1]}"
        return _wrong_groups(self.inputs, self.pack) if self.inputs else None


class AsmOp(_Assembly, opcode="tile.asm", traits=(Trait.PURE,)):
    """results[i] = assembly(inputs[i]), for groups of `pack` elements

    text and constraints are those of LLVM's inline assembly: first the results, then the inputs,
    each as a group; elements of less than 32 bits are packed into registers of up to 32.
    """


class VolatileAsmOp(_Assembly, opcode="cf.asm", effects=(Effect.OBSERVE, Effect.BARRIER)):
    """As `tile.asm`, with effects: it is not moved, and orders memory accesses"""
