"""The reference page of all tile ops, from their declarations and docstrings."""

from __future__ import annotations

import importlib
import inspect
import textwrap

from tilewright.ir import OPS, Op
from tilewright.ir import op_definition as declaration

OP_MODULES = (
    ("Arithmetic", "tilewright.ops.arith"),
    ("Shapes", "tilewright.ops.shape"),
    ("Memory", "tilewright.ops.memory"),
    ("Tensor descriptors", "tilewright.ops.descriptor_access"),
    ("Contractions", "tilewright.ops.contraction"),
    ("Order", "tilewright.ops.order"),
    ("Functions of elements", "tilewright.ops.mapped"),
    ("Control flow and the program", "tilewright.ops.control"),
)
"""Headings and modules, in the order of the page. Ops of back ends are not on it."""


def op_reference() -> str:
    """The page, as Markdown."""
    parts = [_HEAD]
    for heading, name in OP_MODULES:
        module = importlib.import_module(name)
        parts.append(f"## {heading}\n\n{_prose(module.__doc__ or '')}")
        parts += [_entry(op) for op in OPS.values() if op.__module__ == name]
    return "\n\n".join(parts) + "\n"


_HEAD = """\
# Tile ops

<!-- made by scripts/generate_docs.py from the declarations in src/tilewright/ops -->

Each entry: the equation, the operands with what they must be, attributes with their defaults or
choices, regions with nothing but their names, and what generic code may assume. The syntax is
described in [README.md](README.md)."""


def _entry(op: type[Op]) -> str:
    lines = [f"### `{op.opcode}`", "", "```text", inspect.cleandoc(op.__doc__ or ""), "```", ""]
    lines += [f"* {fact}" for fact in _facts(op)]
    return "\n".join(lines).rstrip()


def _facts(op: type[Op]) -> list[str]:
    facts = [f"{_role(field)} `{field.name}`{_details(field)}" for field in op.fields]
    if op.traits:
        traits = sorted(op.traits, key=lambda trait: trait.name)
        facts.append("traits: " + ", ".join(trait.name.lower() for trait in traits))
    if op.effects:
        effects = sorted(op.effects, key=lambda effect: effect.name)
        facts.append("effects: " + "; ".join(effect.value for effect in effects))
    return facts


def _role(field: declaration.Field) -> str:
    return {
        "operand": "operand",
        "optional": "optional operand",
        "variadic": "operands",
        "attr": "attribute",
        "region": "region",
    }[field.role]


def _details(field: declaration.Field) -> str:
    if field.role == "attr":
        choices = ", ".join(f"`{choice!r}`" for choice in field.choices)
        default = f"default `{field.default!r}`" if field.has_default else ""
        details = "; ".join(part for part in (choices and f"one of {choices}", default) if part)
        return f": {details}" if details else ""
    return "" if field.role == "region" else f": {field.constraint.name}"


def _prose(doc: str) -> str:
    return textwrap.dedent(doc).strip()
