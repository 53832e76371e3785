"""A whole matmul from memory with a row-major B in assembly, around the loops of
`assembled_rows.py`.

    record whether the panels of B are cached from before, and which are cached now (tile_copies.py)
    for each block of K
        for each panel of columns
            its address in B, the address of its copy, and the lines to prefetch
            the rows

`blocked_loops.py` has the same in LLVM IR: 80 lines, which take LLVM longer to compile.
"""

from __future__ import annotations

from tilewright.backends.cpu.microkernel.assembled_rows import (
    KEPT,
    OF_COPIES,
    OWN,
    PARAMETERS,
    PASSED,
    body_of,
    leaving,
    rows_lines,
)
from tilewright.backends.cpu.microkernel.function_text import Run
from tilewright.backends.cpu.microkernel.register_blocking import (
    CACHE_LINE,
    DotSpec,
    column_runs,
    kept_blocks,
    row_runs,
)

_SLOT = 8
_LOCALS = (
    "all_of_c", "b", "all_depth", "columns", "any_adds", "key", "kept", "keep",
    "stack", "steps_left", "index", "same", "used", "ready", "start", "lane", "column",
)  # fmt: skip
"""Local variables. Arguments: of `all_depth` steps, `columns`, adding if `any_adds`. b: the block
of B; stack: the caller's; index: of the block, with `steps_left`; same: the panels are cached from
before; used: they are cached now; ready: those of this block are; start: their address; lane: bytes
of a column, 0 if not."""
_NAMES = (*PARAMETERS, *OF_COPIES, *OWN, *_LOCALS)
_PLACES = {name: _SLOT * i for i, name in enumerate(_NAMES)}
_PANEL = -(-_SLOT * len(_NAMES) // CACHE_LINE) * CACHE_LINE
_IN_REGISTERS = ("all_of_c", "a", "b", "a_row", "b_row", "all_depth")


def matmul_function(name: str, spec: DotSpec) -> str:
    """LLVM IR text of the function of a matmul: see `blocked_loops.dot_function`."""
    adds = () if spec.accumulate else ("any_adds",)
    rest = ("rows", "columns", *adds, "key", "kept", "keep")
    kinds = ["ptr"] * 3 + ["i64"] * 5 + ["i1"] * len(adds) + ["ptr", "ptr", "i1"]
    lines = _Matmul(spec).lines(rest)
    return f"define internal void @{name}({', '.join(kinds)}) {body_of(lines, spec)}"


def _at(name: str) -> str:
    return f"{_PLACES[name]}(%rsp)"


def _load(**registers: str) -> list[str]:
    return [f"movq {_at(name)}, %{register}" for register, name in registers.items()]


def _store(**registers: str) -> list[str]:
    return [f"movq %{register}, {_at(name)}" for register, name in registers.items()]


class _Matmul:
    """Writes one function. Labels after those of rows: 10 the cached panels are known, 11 the loop
    over blocks, 12 over panels of columns, 13 the next kind of panel, 14 the end of the block."""

    def __init__(self, spec: DotSpec) -> None:
        self.spec, self.size = spec, spec.operand.bytes
        self.column = spec.k * self.size  # bytes of its copy

    def lines(self, rest: tuple[str, ...]) -> list[str]:
        """All lines. rest: arguments on the stack"""
        panels, end = list[str](), 0
        for run in column_runs(self.spec):
            end += run.times * run.size * self.spec.lanes
            panels += self._panels(run, end)
        return [
            *self._enter(rest), *self._rows_ahead(), *self._keys(), "11:", *self._block(),
            *panels, "14:", *self._next_block(), "ja 11b", *_load(rsp="stack"), *leaving(),
        ]  # fmt: skip

    def _enter(self, rest: tuple[str, ...]) -> list[str]:
        most = self.column * self.spec.lanes * self.spec.panel_vectors
        lines = [
            *(f"pushq %{x}" for x in KEPT), "movq %rsp, %rax",
            f"subq ${_PANEL + most}, %rsp", f"andq ${-CACHE_LINE}, %rsp", *_store(rax="stack"),
            *(f"movq %{x}, {_at(name)}" for x, name in zip(PASSED, _IN_REGISTERS, strict=True)),
        ]  # fmt: skip
        for i, name in enumerate(rest):
            lines += [f"movq {_SLOT * (len(KEPT) + 1 + i)}(%rax), %rcx", *_store(rcx=name)]
        adds = ["movl $1, %eax"]
        if not self.spec.accumulate:
            adds = [*_load(rax="any_adds"), "andl $1, %eax"]
        return [
            *lines, *adds, *_store(rax="adds"), *_load(rax="all_depth"), *_store(rax="steps_left"),
            f"movq $0, {_at('index')}",
        ]  # fmt: skip

    def _rows_ahead(self) -> list[str]:
        return [
            *_load(rcx="rows"), f"leaq {self.spec.k - 1}(%rcx), %rax", "xorl %edx, %edx",
            "divq %rcx", *_store(rax="rows_ahead"),
        ]  # fmt: skip

    def _keys(self) -> list[str]:
        """The key of `tile_copies.key_of`."""
        wanted = {"rdx": "b", "rsi": "b_row", "rdi": "all_depth", "r8": "columns"}
        lines = [
            "xorl %eax, %eax", *_store(rax="same"), *_store(rax="used"),
            f"cmpq $0, {_at('kept')}", "je 10f", *_load(rcx="key", **wanted),
        ]  # fmt: skip
        for i, register in enumerate(wanted):
            lines += [f"movq {_SLOT * i}(%rcx), %r9", f"xorq %{register}, %r9", "orq %r9, %rax"]
        lines += [
            "testq %rax, %rax", "sete %al", "movzbl %al, %eax", *_store(rax="same"),
            *_load(r9="keep"), "andl $1, %r9d", "orq %rax, %r9", *_store(r9="used"), "negq %r9",
        ]  # fmt: skip
        for i, register in enumerate(wanted):
            lines += [f"andq %r9, %{register}", f"movq %{register}, {_SLOT * i}(%rcx)"]
        return [*lines, "10:"]

    def _block(self) -> list[str]:
        """The length of the block, and the address of its panels."""
        block = self.column * self.spec.n
        return [
            *_load(rax="steps_left"), f"movl ${self.spec.k}, %ecx", "cmpq %rcx, %rax",
            "cmovaq %rcx, %rax", *_store(rax="depth"),
            "xorl %ecx, %ecx", *_load(rax="index"), f"cmpq ${kept_blocks(self.spec)}, %rax",
            "setb %cl", *_load(rdx="same"), "andq %rcx, %rdx", *_store(rdx="ready"),
            f"imulq ${block}, %rax", f"addq {_at('kept')}, %rax", f"leaq {_PANEL}(%rsp), %rdx",
            f"andq {_at('used')}, %rcx", "cmoveq %rdx, %rax", *_store(rax="start"),
            f"imulq ${self.column}, %rcx", *_store(rcx="lane"), f"movq $0, {_at('column')}",
        ]  # fmt: skip

    def _panels(self, run: Run, end: int) -> list[str]:
        """The panels of a run, whose columns end at `end`."""
        lines, first = list[str](), 0
        for rows in row_runs(self.spec, run.size):
            lines += rows_lines(self.spec, run.size, rows, first, _PLACES)
            first += rows.times * rows.size
        columns = run.size * self.spec.lanes
        return [
            "12:", *_load(rax="column", rdx="columns"), "subq %rax, %rdx", "jbe 14f",
            f"cmpq ${end}, %rax", "jae 13f", *_store(rdx="left"), *self._panel(columns),
            *lines, f"addq ${columns}, {_at('column')}", "jmp 12b", "13:",
        ]  # fmt: skip

    def _accumulators(self) -> list[str]:
        """The address of the accumulators of a panel's columns: see
        `panel_packing.accumulators_of_column`."""
        wide = self.spec.c_columns or self.spec.n
        lines = [*_load(rax="column"), "xorl %edx, %edx"]
        if wide < self.spec.n:
            lines += [f"movl ${wide}, %ecx", "divq %rcx"]
            lines += ["xchgq %rax, %rdx", f"imulq ${self.size * self.spec.m * wide}, %rdx, %rdx"]
        lines += [f"imulq ${self.size}, %rax, %rax", "addq %rdx, %rax"]
        return [*lines, f"addq {_at('all_of_c')}, %rax", *_store(rax="c")]

    def _panel(self, columns: int) -> list[str]:
        """The address of the panel. The next one may belong to the next block."""
        row = columns * self.size
        lines = [
            *self._accumulators(), *_load(rax="column", rdx="left", rcx="lane"), "imulq %rax, %rcx",
            f"addq {_at('start')}, %rcx", *_store(rcx="panel"),
            f"imulq ${self.size}, %rax, %rsi", f"addq {_at('b')}, %rsi",
        ]  # fmt: skip
        following = [
            f"imulq ${self.spec.k}, {_at('b_row')}, %rdi", f"addq {_at('b')}, %rdi",
            f"leaq {row}(%rsi), %r8", f"cmpq ${columns}, %rdx", "cmovaq %r8, %rdi",
            *_load(r8="b_row"),
        ]  # fmt: skip
        ready = [
            "xorl %esi, %esi",
            f"leaq {self.column * columns}(%rcx), %rdi",
            f"movl ${row}, %r8d",
        ]
        return [
            *lines, *following, f"cmpq $0, {_at('ready')}", "je 1f", *ready, "1:",
            *_store(rsi="source", rdi="ahead", r8="ahead_row"),
        ]  # fmt: skip

    def _next_block(self) -> list[str]:
        """The addresses of the next block, and whether there is one."""
        along = [f"imulq ${self.size}, %rax, %rcx"]
        if self.spec.a_columns:
            along = [*_load(rcx="a_row"), "imulq %rax, %rcx"]
        return [
            *_load(rax="depth"), *along, f"addq %rcx, {_at('a')}",
            *_load(rcx="b_row"), "imulq %rax, %rcx", f"addq %rcx, {_at('b')}",
            f"movq $1, {_at('adds')}", f"incq {_at('index')}", f"subq %rax, {_at('steps_left')}",
        ]  # fmt: skip
