"""Figures of NVIDIA machine code, from nvdisasm's text: a whole kernel's and its hot loop's.

Imports nothing of Tilewright, so that Triton's code is read by the same functions in its own
environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["CodeFigures", "Instruction", "figures_of_text", "loops", "parse"]

_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,5}\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)(.*?);")
_LABEL = re.compile(r"\s*(\.L_x_\d+):")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")
_WIDTH = re.compile(r"\.[US]?(8|16|64|128|256)\b")
_KINDS = {
    "mma": r"(?:H|I|Q|D|O)MMA|(?:H|Q|I)GMMA",
    "spill_loads": r"LDL",
    "spill_stores": r"STL",
    "loads": r"LDG(?!STS)|LD\b",
    "stores": r"STG|ST\b",
    "copies": r"LDGSTS|UTMALDG|UBLKCP",
    "shared": r"LDS|STS|LDSM|STSM",
    "shuffles": r"SHFL",
    "barriers": r"BAR\.SYNC",
    "fp64": r"D(?:FMA|ADD|MUL|SETP)\b|MUFU.*64",
    "atomics": r"ATOM|RED",
}


@dataclass(frozen=True)
class Instruction:
    """One instruction; target: the index that it may branch to."""

    predicate: str | None
    name: str
    operands: str
    target: int | None = None

    def is_a(self, kind: str) -> bool:
        """Whether it is of one of the kinds that figures count."""
        return re.match(_KINDS[kind], self.name) is not None

    @property
    def bytes(self) -> int:
        """The width of an access to memory by one thread."""
        width = _WIDTH.search(self.name)
        return int(width[1]) // 8 if width else 4


@dataclass(frozen=True)
class CodeFigures:
    """instructions: without NOPs; per_unit: instructions of the hot loop for each unit of its work,
    those of the kernel where it has no loop: an MMA, else 4 bytes stored, else 4 bytes loaded; the
    others count instructions of the whole kernel, `loop_` those of the hot loop; flight: the most
    loads in flight before one is used
    """

    instructions: int
    mma: int
    load: int
    store: int
    shared: int
    shuffles: int
    barriers: int
    spills: int
    fp64: int
    atomics: int
    flight: int
    loop: int
    loop_mma: int
    loop_shared: int
    loop_barriers: int
    loop_spills: int
    per_unit: float


def figures_of_text(text: str) -> CodeFigures:
    """The figures of a kernel's disassembly (`nvdisasm -c`)."""
    code = parse(text)
    hot = hot_loop(code)
    loop = hot or []
    return CodeFigures(
        instructions=len(code),
        mma=_count(code, "mma"),
        load=max((i.bytes for i in code if i.is_a("loads")), default=0),
        store=max((i.bytes for i in code if i.is_a("stores")), default=0),
        shared=_count(code, "shared"),
        shuffles=_count(code, "shuffles"),
        barriers=_count(code, "barriers"),
        spills=_count(code, "spill_loads") + _count(code, "spill_stores"),
        fp64=_count(code, "fp64"),
        atomics=_count(code, "atomics"),
        flight=_flight(code),
        loop=len(loop),
        loop_mma=_count(loop, "mma"),
        loop_shared=_count(loop, "shared"),
        loop_barriers=_count(loop, "barriers"),
        loop_spills=_count(loop, "spill_loads") + _count(loop, "spill_stores"),
        per_unit=round(len(hot or code) / (_work(hot or code) or 1), 2),
    )


def parse(text: str) -> list[Instruction]:
    """The instructions of a disassembly, NOPs left out, with the targets of branches."""
    found: list[tuple[str | None, str, str]] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label:
            labels[label[1]] = len(found)
            continue
        match = _INSTRUCTION.search(line)
        if match and not match[2].startswith("NOP"):
            found.append((match[1], match[2], match[3]))
    return [Instruction(*one, _target(one[1], one[2], labels)) for one in found]


def loops(code: Sequence[Instruction]) -> list[list[Instruction]]:
    """The innermost natural loops that work, each in the order of its code.

    Loops that only wait, as for an mbarrier, are none, alone or within others.
    """
    graph = _Graph(code)
    bodies = [body for body in graph.loops() if _work(graph.instructions(body))]
    inner = [body for body in bodies if not any(other < body for other in bodies)]
    return [graph.instructions(body) for body in inner]


def hot_loop(code: Sequence[Instruction]) -> list[Instruction] | None:
    """The innermost loop with the most MMAs, else the most work in memory, else the longest.

    It has MMAs, or half of the kernel's stores or loads: the loop of a rare case, as in an argument
    reduction, is not hot.
    """
    _, stored, loaded = _work_by_kind(code)

    def is_hot(loop: Sequence[Instruction]) -> bool:
        mma, stores, loads = _work_by_kind(loop)
        return mma > 0 or 2 * stores > stored or 2 * loads > loaded

    hot = [loop for loop in loops(code) if is_hot(loop)]
    return max(hot, key=lambda loop: (_count(loop, "mma"), _work(loop), len(loop)), default=None)


class _Graph:
    """Basic blocks by the index of their first instruction, with what follows each."""

    def __init__(self, code: Sequence[Instruction]) -> None:
        ends = {at + 1 for at, one in enumerate(code) if _leaves(one)}
        targets = {one.target for one in code if one.target is not None}
        starts = sorted((ends | targets | {0}) & set(range(len(code))))
        self.code = code
        self.end = dict(zip(starts, [*starts[1:], len(code)], strict=True))
        self.next = {start: self._successors(self.end[start]) for start in starts}

    def instructions(self, blocks: Iterable[int]) -> list[Instruction]:
        return [one for block in sorted(blocks) for one in self.code[block : self.end[block]]]

    def loops(self) -> Iterator[frozenset[int]]:
        """The blocks of each natural loop; back edges to one header make one loop."""
        before = {block: {b for b in self.next if block in self.next[b]} for block in self.next}
        dominators = self._dominators(before)
        for header in self.next:
            latches = {block for block in before[header] if header in dominators[block]}
            body, reached = {header}, [*latches]
            while reached:
                block = reached.pop()
                if block not in body:
                    body.add(block)
                    reached += before[block]
            if latches:
                yield frozenset(body)

    def _successors(self, end: int) -> set[int]:
        last = self.code[end - 1]
        jumps = {last.target} if last.target is not None else set[int]()
        falls = _leaves(last) and last.predicate is None
        return jumps if falls or end >= len(self.code) else jumps | {end}

    def _dominators(self, before: dict[int, set[int]]) -> dict[int, set[int]]:
        """Blocks on every way from the entry to a block, by iteration to a fixpoint."""
        dominators = {block: set(self.next) for block in self.next} | {0: {0}}
        changed = True
        while changed:
            changed = False
            for block in list(self.next)[1:]:
                ways = [dominators[b] for b in before[block]]
                found = {block} | (set[int].intersection(*ways) if ways else set[int]())
                changed |= found != dominators[block]
                dominators[block] = found
        return dominators


def _leaves(one: Instruction) -> bool:
    return one.name.startswith(("BRA", "EXIT", "RET", "BRX", "JMP"))


def _target(name: str, operands: str, labels: dict[str, int]) -> int | None:
    label = _TARGET.search(operands)
    return labels.get(label[1]) if label and name.startswith("BRA") else None


def _count(code: Iterable[Instruction], kind: str) -> int:
    return sum(one.is_a(kind) for one in code)


def _work(code: Sequence[Instruction]) -> float:
    """MMAs, else words stored, else words loaded."""
    mma, stored, loaded = _work_by_kind(code)
    return mma or stored or loaded


def _work_by_kind(code: Sequence[Instruction]) -> tuple[int, float, float]:
    """MMAs, words stored, words loaded."""
    stored = sum(one.bytes for one in code if one.is_a("stores") or one.is_a("atomics")) / 4
    loaded = sum(one.bytes for one in code if one.is_a("loads") or one.is_a("copies")) / 4
    return _count(code, "mma"), stored, loaded


def _flight(code: Sequence[Instruction]) -> int:
    """The most loads that are issued before an instruction names a register of one of them."""
    most, count, waiting = 0, 0, set[int]()
    for one in code:
        named = set(_registers(one.operands))
        loads = one.is_a("loads")
        if loads:
            named -= set(_destination(one))
        if named & waiting:
            count, waiting = 0, set()
        if loads:
            waiting |= set(_destination(one))
            count += 1
            most = max(most, count)
    return most


def _registers(operands: str) -> Iterator[int]:
    for number, wide in re.findall(r"\bR(\d+)(\.64)?", operands):
        yield from (int(number), int(number) + 1) if wide else (int(number),)


def _destination(load: Instruction) -> range:
    first = re.match(r"\s*(?:P\d,\s*)?R(\d+)", load.operands)
    return range(int(first[1]), int(first[1]) + max(1, load.bytes // 4)) if first else range(0)
