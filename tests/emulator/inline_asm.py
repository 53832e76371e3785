"""Inline assembly: its statements, operands and jumps, and the table of all instructions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.emulator import (
    barriers_ptx,
    bulk_copies_ptx,
    instructions,
    mbarriers_ptx,
    values,
    wgmma_ptx,
)
from tests.emulator.memory import EmulationError
from tests.emulator.pending import Pending
from tests.emulator.registers import Operand, Registers
from tests.emulator.text import dtype_of, split_commas
from tests.emulator.waiting import Blocked

__all__ = ["Operand", "run_asm"]

Step = Callable[[Any], None]

_TABLES = [instructions, barriers_ptx, mbarriers_ptx, bulk_copies_ptx, wgmma_ptx]
_INSTRUCTIONS = [row for table in _TABLES for row in table.INSTRUCTIONS]


@dataclass
class _Statement:
    """guard: a predicate, perhaps with a "!"; target: the line that a jump goes to."""

    guard: str | None
    run: Callable[[Registers], None] | None
    target: int | None = None


def run_asm(
    result: str, type_: str, template: str, constraints: str, operands: list[Operand]
) -> Step:
    """A function of the machine that executes the statements of a template."""
    parts = [c for c in constraints.split(",") if c and not c.startswith("~")]
    outputs = sum(c.startswith("=") for c in parts)
    ties = {outputs + i: int(c) for i, c in enumerate(parts[outputs:]) if c.isdigit()}
    wgmma = "wgmma" in template
    untied = [i for i in range(outputs) if wgmma and i not in ties.values()]
    statements = _statements(template)
    fields = split_commas(type_[1:-1]) if type_.startswith("{") else [type_]

    def step(m: Any) -> None:
        registers = Registers(m)
        for i in untied:
            # Whatever was there: no statement may use it, but wgmma names it where it adds nothing.
            registers.values[f"${i}"] = np.full(m.count, 0xA5A5A5A5, np.uint32)
            registers.names[f"${i}"] = "undef"
        for i, operand in enumerate(operands, outputs):
            bits = _bits(operand.read(m), operand.type)
            registers.values[f"${i}"] = bits
            registers.names[f"${i}"] = operand.text
            if i in ties:
                tied = bits if type(bits) is Pending else values.rows(bits, m.count)
                registers.values[f"${ties[i]}"] = tied
                registers.names[f"${ties[i]}"] = operand.text
        go_on(m, registers)

    def go_on(m: Any, r: Registers) -> None:
        while r.at < len(statements):
            m.event += 1
            statement = statements[r.at]
            r.take_part(statement.guard)
            try:
                _execute(r, statement)
            except Blocked as blocked:
                blocked.resume = lambda m: go_on(m, r.copy())
                raise
            r.at += 1
        if result:
            found = tuple(_typed(r, f"${i}", f) for i, f in enumerate(fields))
            m.set(result, found if type_.startswith("{") else found[0])

    return step


def _execute(r: Registers, statement: _Statement) -> None:
    if r.skipping is not None and not r.predicate.any():
        return
    if statement.run is not None:
        statement.run(r)
    if statement.target is not None:
        _jump(r, statement.target)


def _jump(r: Registers, target: int) -> None:
    """Forwards some threads may go alone, the others catch up; backwards only all."""
    if not r.predicate.any():
        return
    if r.skipping is None:
        r.skipping = np.zeros(r.m.count, np.int64)
    if target > r.at:
        r.skipping[r.predicate] = target
    elif (r.predicate == r.m.mask).all():
        r.at = target - 1
    else:
        raise EmulationError("threads part at a jump backwards in inline assembly")


def _bits(value: Any, type_: str) -> Any:
    if type(value) is Pending:
        return value.with_data(_bits(value.data, type_))
    if type_ == "i1":
        return value
    if type_.startswith("<"):
        size = values.size_of(type_)
        array = np.ascontiguousarray(value)
        return array.view(f"u{size}")[..., 0]
    return values.bits_of(value)


def _typed(r: Registers, token: str, type_: str) -> Any:
    """An output as a value of LLVM; what was never written is anything."""
    dtype = np.dtype(dtype_of(type_))
    bits = r.values.get(token)
    if bits is None:
        bits = np.full(r.m.count, 0xA5, f"u{values.size_of(type_)}")
    if type(bits) is Pending:
        return bits.with_data(bits.data.astype(f"u{dtype.itemsize}").view(dtype))
    if type_.startswith("<"):
        return np.ascontiguousarray(bits)[:, None].view(dtype)
    return bits.astype(f"u{dtype.itemsize}").view(dtype)


# ---- text ---------------------------------------------------------------------------------------

_BEFORE = re.compile(r"(?:[{}]|([A-Za-z_$][\w$]*)\s*:(?!:))\s*")
"""What may stand before a statement: braces and labels."""


@functools.lru_cache(1024)
def _statements(template: str) -> list[_Statement]:
    """Declarations and braces say nothing here; labels are numbers of statements."""
    text = re.sub(r"\\0[9AaDd]", " ", template).replace("$$", "$").replace("${:uid}", "")
    lines: list[str] = []
    labels: dict[str, int] = {}
    for part in text.split(";"):
        line = part.strip()
        while (match := _BEFORE.match(line)) is not None:
            if match[1]:
                labels[match[1]] = len(lines)
            line = line[match.end() :]
        if line and not line.startswith(".reg"):
            lines.append(line)
    return [_statement(line, labels) for line in lines]


def _statement(line: str, labels: dict[str, int]) -> _Statement:
    guard = None
    if line.startswith("@"):
        guard, line = line[1:].split(None, 1)
    name, _, rest = line.strip().partition(" ")
    if name in ("bra", "bra.uni"):
        return _Statement(guard, None, labels[rest.strip()])
    arguments = split_commas(rest)
    for pattern, make in _INSTRUCTIONS:
        match = re.fullmatch(pattern, name)
        if match is not None:
            return _Statement(guard, make(match, arguments))
    raise AssertionError(f"the emulator does not know {name}")
