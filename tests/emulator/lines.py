"""Lines of LLVM text, each as a function of the machine."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.emulator import values
from tests.emulator.inline_asm import Operand, run_asm
from tests.emulator.intrinsics import as_assembly
from tests.emulator.memory import EmulationError
from tests.emulator.pending import Pending
from tests.emulator.text import Block, Instruction, lanes_of, literal, split_commas, split_type

Step = Callable[[Any], None]
Reader = Callable[[Any], Any]
_SHARED = "ptr addrspace(3)"
END = 1 << 30
"""Where a thread goes that returns."""


def compile_block(kernel: Any, block: Block) -> list[tuple[str, Step]]:
    steps: list[tuple[str, Step]] = []
    phis = [i for i in block.instructions if i.word == "phi"]
    if phis:
        steps.append((block.label, _phis(kernel, phis)))
    for i in block.instructions:
        if i.word != "phi":
            line = f"{i.result} = {i.word} {i.rest}" if i.result else f"{i.word} {i.rest}"
            steps.append((line, _step(kernel, i)))
    return steps


def _settled(m: Any, value: Any) -> Any:
    """A value that an instruction uses, so it must not be on its way."""
    return value.read(m.mask) if type(value) is Pending else value


def _carried(kernel: Any, text: str, type_: str) -> Reader:
    """A reader of an operand that is passed on as it is, on its way or not."""
    name = text.strip()
    return (lambda m: m.env[name]) if name.startswith("%") else operand(kernel, name, type_)


def operand(kernel: Any, text: str, type_: str) -> Reader:
    """A reader of one operand."""
    text = text.strip()
    if text.startswith("%"):
        return lambda m: _settled(m, m.env[text])
    if text in kernel.constants or text in kernel.variables:
        data = kernel.constants.get(text)
        data = kernel.variables[text] if data is None else data
        address = np.uint64(data.ctypes.data)
        return lambda m: address
    if text.startswith(("getelementptr", "add (")):  # a constant distance from its start
        offset = int(re.findall(r"-?\d+", text)[-1])
        return lambda m: (_window(m) + np.uint32(offset)).astype(np.uint64)
    if text.startswith(("ptrtoint", "@")):
        return _window
    known = literal(text, type_)
    return lambda m: known


def _window(m: Any) -> Any:
    """Where the shared memory of each thread's block starts."""
    base = np.uint32(m.shared.base)
    return base if m.blocks == 1 else base + (m.rank << np.uint32(24))


def _typed(kernel: Any, text: str) -> tuple[Reader, str]:
    type_, rest = split_type(text)
    return operand(kernel, rest, type_), type_


def _asm_operand(kernel: Any, text: str) -> Operand:
    type_, rest = split_type(text)
    return Operand(_carried(kernel, rest, type_), type_, rest.strip())


def _phis(kernel: Any, phis: list[Instruction]) -> Step:
    plans: list[tuple[str, list[tuple[Reader, int]]]] = []
    for phi in phis:
        type_, rest = split_type(phi.rest)
        pairs = re.findall(r"\[ (.*?), %([\w.]+) \]", rest)
        ways = [(_carried(kernel, value, type_), kernel.index[label]) for value, label in pairs]
        plans.append((phi.result, ways))

    def step(m: Any) -> None:
        came = m.previous[m.mask]
        found: list[tuple[str, Any]] = []
        for name, ways in plans:
            if (came == came[0]).all():
                value = next(read(m) for read, source in ways if source == came[0])
            else:
                value = _merged(m, ways)
            found.append((name, value))
        for name, value in found:
            m.set(name, value)

    return step


def _merged(m: Any, ways: Any) -> Any:
    """The value of a phi whose threads came from several blocks."""
    value = None
    for read, source in ways:
        here = m.previous == source
        if (here & m.mask).any():
            new = read(m)
            value = new if value is None else values.merge(here, new, value)
    return value


_FLAGS = re.compile(r"^(?:(?:nuw|nsw|exact|contract|afn|arcp|nnan|ninf|nsz|fast|disjoint|nneg|"
                    r"inbounds|samesign)\s+)*")  # fmt: skip


def _step(kernel: Any, i: Instruction) -> Step:
    rest = _FLAGS.sub("", i.rest)
    if i.word == "br":
        return _branch(kernel, rest)
    if i.word == "ret":
        return lambda m: m.jump(END)
    if i.word == "unreachable":
        return lambda m: m.jump(END)
    if i.word == "call":
        return _call(kernel, i.result, rest)
    if i.word in ("load", "store", "alloca", "getelementptr", "atomicrmw", "cmpxchg"):
        return _memory(kernel, i, rest)
    reader = functools.partial(operand, kernel)
    evaluate = values.evaluator(i.word, rest, reader)
    flags = i.rest[: len(i.rest) - len(rest)].split()
    promises = [values.wrapping(i.word, rest, f, reader) for f in flags if f in ("nsw", "nuw")]
    if not promises:
        return lambda m: m.set(i.result, evaluate(m))

    def checked(m: Any) -> None:
        if any(m.rows(wraps(m)).any() for wraps in promises):
            raise EmulationError("a number wraps that is promised not to")
        m.set(i.result, evaluate(m))

    return checked


def _branch(kernel: Any, rest: str) -> Step:
    labels = [kernel.index[label] for label in re.findall(r"label %([\w.]+)", rest)]
    if len(labels) == 1:
        return lambda m: m.jump(labels[0])
    condition, _ = _typed(kernel, split_commas(rest)[0])

    def step(m: Any) -> None:
        taken = values.rows(condition(m), m.count)
        m.jump(np.where(taken, labels[0], labels[1]))

    return step


# ---- memory -------------------------------------------------------------------------------------


def _memory(kernel: Any, i: Instruction, rest: str) -> Step:
    makers = {"load": _load, "store": _store, "alloca": _alloca, "getelementptr": _address,
              "atomicrmw": _read_modify_write, "cmpxchg": _compare_exchange}  # fmt: skip
    return makers[i.word](kernel, i.result, rest)


def _load(kernel: Any, result: str, rest: str) -> Step:
    rest = rest.removeprefix("volatile ")
    type_, more = split_type(rest)
    pointer, space = _typed(kernel, split_commas(more.lstrip(", "))[0])

    def step(m: Any) -> None:
        addresses, size = m.rows(pointer(m)), values.size_of(type_)
        if space == _SHARED:
            data = m.shared.load(addresses, size, m.warp_of[m.mask])
        else:
            data = m.memory.load(addresses, size, m.threads[m.mask])
        m.set(result, m.spread(values.from_bytes(data, type_)))

    return step


def _lanes(m: Any, value: Any, type_: str) -> Any:
    """One row for each active thread, also of a vector that all share."""
    if lanes_of(type_) and np.ndim(value) == 1:
        value = np.broadcast_to(value, (m.count, len(value)))
    return m.rows(value)


def _store(kernel: Any, result: str, rest: str) -> Step:
    parts = split_commas(rest.removeprefix("volatile "))
    value, type_ = _typed(kernel, parts[0])
    pointer, space = _typed(kernel, parts[1])

    def step(m: Any) -> None:
        data, addresses = values.to_bytes(_lanes(m, value(m), type_), type_), m.rows(pointer(m))
        if space == _SHARED:
            m.shared.store(addresses, data, m.warp_of[m.mask])
            m.wrote |= m.mask
        else:
            m.memory.store(addresses, data, m.threads[m.mask])

    return step


def _alloca(kernel: Any, result: str, rest: str) -> Step:
    size = values.size_of(split_type(rest)[0])

    def step(m: Any) -> None:
        area = np.zeros((m.count, (size + 15) // 16 * 2), np.uint64)
        m.stack.append(area)
        first = np.uint64(area.ctypes.data)
        m.memory.own.append((int(first), int(first) + area.nbytes))
        m.set(result, first + m.threads.astype(np.uint64) * np.uint64(area.strides[0]))

    return step


def _address(kernel: Any, result: str, rest: str) -> Step:
    parts = split_commas(rest)
    base, _ = _typed(kernel, parts[1])
    offset, index_type = _typed(kernel, parts[-1])
    size = values.size_of(parts[0]) if len(parts) == 3 else 8

    def step(m: Any) -> None:
        index = values.signed(offset(m), index_type).astype(np.int64)
        m.set(result, base(m) + (index * size).astype(np.uint64))

    return step


def _read_modify_write(kernel: Any, result: str, rest: str) -> Step:
    kind, more = rest.removeprefix("volatile ").split(" ", 1)
    parts = split_commas(more)
    pointer, _ = _typed(kernel, parts[0])
    value, type_ = _typed(kernel, parts[1])

    def step(m: Any) -> None:
        m.set(result, values.one_by_one(m, kind, pointer(m), value(m), type_))

    return step


def _compare_exchange(kernel: Any, result: str, rest: str) -> Step:
    parts = split_commas(rest)
    pointer, _ = _typed(kernel, parts[0])
    expected, type_ = _typed(kernel, parts[1])
    new, _ = _typed(kernel, parts[2])

    def step(m: Any) -> None:
        old = values.swap_one_by_one(m, pointer(m), expected(m), new(m), type_)
        m.set(result, (old, old == values.rows(expected(m), m.count)))

    return step


# ---- calls --------------------------------------------------------------------------------------

_ASM = re.compile(r'(.*?)\basm (?:sideeffect )?"(.*?)", "(.*?)"\((.*)\)')
_RANGE = re.compile(r"^range\([^)]*\) ")
_CALLED = re.compile(r"(.*?)@([\w.]+)\((.*)\)")


def _call(kernel: Any, result: str, rest: str) -> Step:
    match = _ASM.match(rest)
    if match is not None:
        type_, template, constraints, arguments = match.groups()
        operands = [_asm_operand(kernel, part) for part in split_commas(arguments)]
        return run_asm(result, _RANGE.sub("", type_.strip()), template, constraints, operands)
    match = _CALLED.match(rest)
    assert match, rest
    type_ = _RANGE.sub("", match[1].strip())
    parts = split_commas(match[3])
    assembly = as_assembly(match[2], type_, [split_type(part)[1].strip() for part in parts])
    if assembly is not None:
        return run_asm(result, type_, *assembly, [_asm_operand(kernel, part) for part in parts])
    operands = [_typed(kernel, part) for part in split_commas(match[3])]
    called = values.intrinsic(match[2], type_, [t for _, t in operands])
    return lambda m: m.set(result, called(m, *(read(m) for read, _ in operands)))
