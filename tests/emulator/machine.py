"""Runs one program of a kernel: blocks of LLVM instructions over arrays with one row per thread.

All threads go in step, or the warps one after another from barrier to barrier, block by block, in
an order that is drawn.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from tests.emulator import values
from tests.emulator.copies import Copies
from tests.emulator.inline_asm import run_asm
from tests.emulator.memory import Array, EmulationError, Global, Shared
from tests.emulator.text import Block, Instruction, literal, parse, split_commas, split_type

__all__ = ["EmulationError", "Kernel", "Machine", "run_program"]

Step = Callable[["Machine"], None]
_END = 1 << 30


class Kernel:
    """A kernel's text, each line compiled to a function of the machine when it is first run."""

    def __init__(self, text: str, warps: int, shared_bytes: int, cluster: int = 1) -> None:
        self.text = parse(text)
        self.warps, self.shared_bytes, self.cluster = warps, shared_bytes, cluster
        self.index = {block.label: i for i, block in enumerate(self.text.blocks)}
        self.constants = {
            name: np.frombuffer(data + b"\0", np.uint8).copy()
            for name, data in self.text.constants.items()
        }
        self.variables = {
            name: np.zeros(max(size, 8), np.uint8) for name, size in self.text.variables.items()
        }
        self._steps: dict[int, list[tuple[str, Step]]] = {}

    def steps(self, number: int) -> list[tuple[str, Step]]:
        found = self._steps.get(number)
        if found is None:
            block = self.text.blocks[number]
            found = self._steps[number] = _compile(self, block)
        return found


class Blocked(Exception):
    """A warp has come to a barrier, and waits for the others."""


class Machine:
    """The state of one program.

    order: who draws the warp that goes on; None for all threads in step.
    """

    def __init__(
        self, kernel: Kernel, program: tuple[int, int, int], grid: tuple[int, int, int],
        memory: Global, order: Random | None = None,
    ) -> None:  # fmt: skip
        self.kernel, self.program, self.grid, self.memory = kernel, program, grid, memory
        self.count = 32 * kernel.warps
        self.threads = np.arange(self.count, dtype=np.uint32)
        self.warp_of = (self.threads >> np.uint32(5)).astype(np.int64)
        self.shared = Shared(kernel.shared_bytes)
        self.copies = Copies(self.shared, memory, kernel.warps)
        self.env: dict[str, Any] = {}
        self.pc = np.zeros(self.count, np.int64)
        self.previous = np.zeros(self.count, np.int64)
        self.mask = np.ones(self.count, bool)
        self.is_full = True
        self.votes = np.zeros(self.count, bool)
        self.agreed = False
        """Whether a thread voted so at the latest barrier."""
        self.stack: list[Array] = []
        self._order = order
        self._waiting: dict[int, tuple[int, int]] = {}
        """Block and instruction of the barrier that a warp waits at."""
        self._released: dict[int, int] = {}
        """Instruction at which a warp goes on that has waited."""

    # -- registers ------------------------------------------------------------------------------

    def set(self, name: str, value: Any) -> None:
        if self.is_full or name not in self.env:
            self.env[name] = value
            return
        self.env[name] = values.merge(self.mask, value, self.env[name])

    def rows(self, value: Any) -> Array:
        """One row for each thread that is active."""
        return values.rows(value, self.count)[self.mask]

    def spread(self, active: Array) -> Array:
        """Rows of the active threads as rows of all."""
        if self.is_full:
            return active
        whole = np.zeros((self.count, *active.shape[1:]), active.dtype)
        whole[self.mask] = active
        return whole

    def whole_warps(self, what: str) -> Array:
        """Which warps are active; all threads of a warp must be, or none."""
        lanes = self.mask.reshape(-1, 32)
        whole: Array = np.asarray(lanes.all(1))
        if (lanes.any(1) != whole).any() or (self._order is None and not self.is_full):
            raise EmulationError(f"{what} that not all threads reach")
        return whole

    def synchronize(self) -> None:
        """A barrier. Raises Blocked for a warp that must wait."""
        arrived = np.flatnonzero(self.whole_warps("a barrier")).tolist()
        if self._order is None:
            self._pass_barrier()
            return
        (warp,) = arrived
        if self._released.pop(warp, None) is None:
            raise Blocked

    def _pass_barrier(self) -> None:
        self.agreed = bool(self.votes.any())
        self.shared.barrier()
        self.memory.barrier()

    # -- blocks ---------------------------------------------------------------------------------

    def run(self, limit: int = 1_000_000) -> None:
        """To the end of all threads, all in step or warp by warp."""
        self.memory.barrier()
        for _ in range(limit):
            now = int(self.pc.min())
            if now == _END:
                return
            if self._order is None:
                self._run_block(self.pc == now)
            else:
                self._run_warp(self._order)
        raise EmulationError("no end")

    def _run_block(self, mask: Array, first: int = 0) -> None:
        """The threads of a mask, which are at one block, from one of its instructions on."""
        self.mask, now = mask, int(self.pc[mask][0])
        self.is_full = bool(mask.all())
        for number, (line, step) in enumerate(self.kernel.steps(now)[first:], first):
            try:
                step(self)
            except Blocked:
                self._waiting[int(self.warp_of[mask][0])] = now, number
                return
            except EmulationError as error:
                raise EmulationError(f"{error}\n  in: {line}") from None

    def _run_warp(self, order: Random) -> None:
        """One block of one of the warps that can go on."""
        running = np.flatnonzero((self.pc.reshape(-1, 32) < _END).any(1)).tolist()
        ready = [warp for warp in running if warp not in self._waiting]
        if not ready:
            self._release()
            return
        warp = order.choice(ready)
        threads = self.warp_of == warp
        now = int(self.pc[threads].min())
        self._run_block(threads & (self.pc == now), self._released.get(warp, 0))

    def _release(self) -> None:
        """All warps have come to the barrier."""
        if len(self._waiting) < self.kernel.warps or len(set(self._waiting.values())) > 1:
            raise EmulationError("a barrier that not all threads reach")
        self._released = {warp: number for warp, (_, number) in self._waiting.items()}
        self._waiting = {}
        self._pass_barrier()

    def jump(self, target: int | Array) -> None:
        self.previous[self.mask] = self.pc[self.mask]
        self.pc[self.mask] = target if isinstance(target, int) else target[self.mask]


def run_program(
    kernel: Kernel, args: list[Any], program: tuple[int, int, int] = (0, 0, 0),
    grid: tuple[int, int, int] = (1, 1, 1), memory: Global | None = None,
    order: Random | None = None,
) -> Machine:  # fmt: skip
    """Run one program; args in the order of the kernel's parameters."""
    machine = Machine(kernel, program, grid, memory or Global(), order)
    for (type_, name), arg in zip(kernel.text.parameters, args, strict=True):
        machine.env[name] = values.argument(arg, type_)
    with np.errstate(all="ignore"):
        machine.run()
    return machine


# ---- lines --------------------------------------------------------------------------------------


def _compile(kernel: Kernel, block: Block) -> list[tuple[str, Step]]:
    steps: list[tuple[str, Step]] = []
    phis = [i for i in block.instructions if i.word == "phi"]
    if phis:
        steps.append((block.label, _phis(kernel, phis)))
    for i in block.instructions:
        if i.word != "phi":
            line = f"{i.result} = {i.word} {i.rest}" if i.result else f"{i.word} {i.rest}"
            steps.append((line, _step(kernel, i)))
    return steps


def operand(kernel: Kernel, text: str, type_: str) -> Callable[[Machine], Any]:
    """A reader of one operand."""
    text = text.strip()
    if text.startswith("%"):
        return lambda m: m.env[text]
    if text in kernel.constants or text in kernel.variables:
        data = kernel.constants.get(text)
        data = kernel.variables[text] if data is None else data
        address = np.uint64(data.ctypes.data)
        return lambda m: address
    if "ptrtoint" in text or text == "@shared_memory":
        return lambda m: np.uint32(0)
    known = literal(text, type_)
    return lambda m: known


def _typed(kernel: Kernel, text: str) -> tuple[Callable[[Machine], Any], str]:
    type_, rest = split_type(text)
    return operand(kernel, rest, type_), type_


def _phis(kernel: Kernel, phis: list[Instruction]) -> Step:
    plans: list[tuple[str, list[tuple[Callable[[Machine], Any], int]]]] = []
    for phi in phis:
        type_, rest = split_type(phi.rest)
        pairs = re.findall(r"\[ (.*?), %([\w.]+) \]", rest)
        ways = [(operand(kernel, value, type_), kernel.index[label]) for value, label in pairs]
        plans.append((phi.result, ways))

    def step(m: Machine) -> None:
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


def _merged(m: Machine, ways: Any) -> Any:
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


def _step(kernel: Kernel, i: Instruction) -> Step:
    rest = _FLAGS.sub("", i.rest)
    if i.word == "br":
        return _branch(kernel, rest)
    if i.word == "ret":
        return lambda m: m.jump(_END)
    if i.word == "unreachable":
        return lambda m: m.jump(_END)
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

    def checked(m: Machine) -> None:
        if any(m.rows(wraps(m)).any() for wraps in promises):
            raise EmulationError("a number wraps that is promised not to")
        m.set(i.result, evaluate(m))

    return checked


def _branch(kernel: Kernel, rest: str) -> Step:
    labels = [kernel.index[label] for label in re.findall(r"label %([\w.]+)", rest)]
    if len(labels) == 1:
        return lambda m: m.jump(labels[0])
    condition, _ = _typed(kernel, split_commas(rest)[0])

    def step(m: Machine) -> None:
        taken = values.rows(condition(m), m.count)
        m.jump(np.where(taken, labels[0], labels[1]))

    return step


# ---- memory -------------------------------------------------------------------------------------


def _memory(kernel: Kernel, i: Instruction, rest: str) -> Step:
    makers = {"load": _load, "store": _store, "alloca": _alloca, "getelementptr": _address,
              "atomicrmw": _read_modify_write, "cmpxchg": _compare_exchange}  # fmt: skip
    return makers[i.word](kernel, i.result, rest)


def _load(kernel: Kernel, result: str, rest: str) -> Step:
    rest = rest.removeprefix("volatile ")
    type_, more = split_type(rest)
    pointer, _ = _typed(kernel, split_commas(more.lstrip(", "))[0])

    def step(m: Machine) -> None:
        data = m.memory.load(m.rows(pointer(m)), values.size_of(type_), m.threads[m.mask])
        m.set(result, m.spread(values.from_bytes(data, type_)))

    return step


def _store(kernel: Kernel, result: str, rest: str) -> Step:
    parts = split_commas(rest.removeprefix("volatile "))
    value, type_ = _typed(kernel, parts[0])
    pointer, _ = _typed(kernel, parts[1])

    def step(m: Machine) -> None:
        data = values.to_bytes(m.rows(value(m)), type_)
        m.memory.store(m.rows(pointer(m)), data, m.threads[m.mask])

    return step


def _alloca(kernel: Kernel, result: str, rest: str) -> Step:
    size = values.size_of(split_type(rest)[0])

    def step(m: Machine) -> None:
        area = np.zeros((m.count, (size + 15) // 16 * 2), np.uint64)
        m.stack.append(area)
        first = np.uint64(area.ctypes.data)
        m.memory.own.append((int(first), int(first) + area.nbytes))
        m.set(result, first + m.threads.astype(np.uint64) * np.uint64(area.strides[0]))

    return step


def _address(kernel: Kernel, result: str, rest: str) -> Step:
    parts = split_commas(rest)
    base, _ = _typed(kernel, parts[1])
    offset, index_type = _typed(kernel, parts[-1])
    size = values.size_of(parts[0]) if len(parts) == 3 else 8

    def step(m: Machine) -> None:
        index = values.signed(offset(m), index_type).astype(np.int64)
        m.set(result, base(m) + (index * size).astype(np.uint64))

    return step


def _read_modify_write(kernel: Kernel, result: str, rest: str) -> Step:
    kind, more = rest.removeprefix("volatile ").split(" ", 1)
    parts = split_commas(more)
    pointer, _ = _typed(kernel, parts[0])
    value, type_ = _typed(kernel, parts[1])

    def step(m: Machine) -> None:
        m.set(result, values.one_by_one(m, kind, pointer(m), value(m), type_))

    return step


def _compare_exchange(kernel: Kernel, result: str, rest: str) -> Step:
    parts = split_commas(rest)
    pointer, _ = _typed(kernel, parts[0])
    expected, type_ = _typed(kernel, parts[1])
    new, _ = _typed(kernel, parts[2])

    def step(m: Machine) -> None:
        old = values.swap_one_by_one(m, pointer(m), expected(m), new(m), type_)
        m.set(result, (old, old == values.rows(expected(m), m.count)))

    return step


# ---- calls --------------------------------------------------------------------------------------

_ASM = re.compile(r'(.*?)\basm (?:sideeffect )?"(.*?)", "(.*?)"\((.*)\)')
_CALLED = re.compile(r"(.*?)@([\w.]+)\((.*)\)")


def _call(kernel: Kernel, result: str, rest: str) -> Step:
    match = _ASM.match(rest)
    if match is not None:
        type_, template, constraints, arguments = match.groups()
        operands = [_typed(kernel, part) for part in split_commas(arguments)]
        return run_asm(result, type_.strip(), template, constraints, operands)
    match = _CALLED.match(rest)
    assert match, rest
    type_ = re.sub(r"^range\([^)]*\) ", "", match[1].strip())
    operands = [_typed(kernel, part) for part in split_commas(match[3])]
    called = values.intrinsic(match[2], type_, [t for _, t in operands])
    return lambda m: m.set(result, called(m, *(read(m) for read, _ in operands)))
