"""The loops over rows of a matmul of fp32 or fp64 from memory, as assembly of AVX-512.

`blocked_loops.py` has the same loops as LLVM IR, for every other CPU; LLVM compiles assembly much
faster (ADR 0057). A function computes the rows of a panel of columns of C:

    for each panel of 8 rows
        rows 0 ... 7 = bytes from the first row of A to each, the last one again beyond it
        accumulators[8][2] = 0                          # registers 0 ... 15
        for each cache line of the rows of A            # 16 steps of fp32, unrolled
            prefetch that line of the next 8 rows, and two rows of the next panel of B
            for each step
                b0, b1 = panel[step]
                for i in 8 rows: accumulators[i] += splat(A[row i, step]) * (b0, b1)
        C[panel] = accumulators, or += accumulators

A panel of a row-major B is copied during the first rows (`_copying`), and the outer loops are also
assembly (`assembled_matmul.py`); panels of a column-major B are transposed by LLVM IR, which calls
a function of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.backends.cpu.microkernel.function_text import Run, Size
from tilewright.backends.cpu.microkernel.register_blocking import (
    CACHE_LINE,
    UNROLL,
    DotSpec,
)

PARAMETERS = (
    "a", "panel", "c", "depth", "rows", "a_row",
    "ahead", "ahead_row", "rows_ahead", "adds",
)  # fmt: skip
"""Parameters, of 8 bytes each. a, c: the block of A, and C from the panel's first column on; panel:
of B, packed; depth: steps; rows: of A; a_row, b_row: bytes from a row (of a column-major A, a
column) to the next; ahead: the next panel of B, to be prefetched; ahead_row: bytes from a row (or
column) of it to the next; rows_ahead: of them, for each row of A; adds: whether to add to C, 0 or 1
"""

OF_COPIES = ("source", "b_row", "left")
"""Further parameters for a row-major B. source: the panel to copy, or null; b_row: bytes from a row
of B to the next; left: columns from the panel's first one on"""

_POINTERS = ("a", "panel", "c", "ahead")
_KINDS = ["ptr" if name in _POINTERS else "i64" for name in PARAMETERS]
_CONVENTION = "x86_64_sysvcc void"
PASSED = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")  # System V ABI, AMD64 supplement, 3.2.3
KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15")
_ROWS = ("rbx", "rbp", "r8", "r9", "r10", "r11", "r12", "r13")
"""Registers added to %rsi, an address in A, for each row of a panel. %rdi: in B; %rcx: iterations;
%r14: in the copy of B; %r15: from an address in A to the same one in the next panel of rows."""
OWN = ("row", "place", "number", "count")
"""Variables on the stack: the panel's first row; the address in B of the next prefetch; the number
of prefetched rows, and that of a round."""

_SLOT = 8
_SAVED = len(OWN) + len(PASSED) + len(KEPT) + 1  # with the return address
_ARGUMENTS = {
    **{name: _SLOT * i for i, name in enumerate(OWN)},
    **{name: _SLOT * (len(OWN) + i) for i, name in enumerate(PARAMETERS[: len(PASSED)])},
    **{name: _SLOT * (_SAVED + i) for i, name in enumerate(PARAMETERS[len(PASSED) :])},
}


def rows_function(name: str, spec: DotSpec, vectors: int, run: Run, first: int) -> str:
    """LLVM IR text of a function of PARAMETERS, for a column-major B: the rows of a run from
    `first` on, if A has as many, of a panel of `vectors` vectors of columns."""
    own = _SLOT * len(OWN)
    lines = [
        *(f"pushq %{x}" for x in (*KEPT, *PASSED[::-1])), f"subq ${own}, %rsp",
        *rows_lines(spec, vectors, run, first, _ARGUMENTS),
        f"addq ${own + _SLOT * len(PASSED)}, %rsp", *leaving(),
    ]  # fmt: skip
    kinds = ", ".join(_KINDS)
    return f"define internal {_CONVENTION} @{name}({kinds}) {body_of(lines, spec)}"


def leaving() -> list[str]:
    """Lines at the end of a function that has saved KEPT."""
    return ["vzeroupper", *(f"popq %{x}" for x in KEPT[::-1]), "ret"]


def body_of(lines: Sequence[str], spec: DotSpec) -> str:
    """Attributes and body of a function that consists of assembly."""
    text = "\\0A".join(lines).replace("$", "$$")
    return (
        f"naked {spec.unit.function_attributes} {{\n"
        f'call void asm sideeffect "{text}", ""()\nunreachable\n}}\n'
    )


def rows_lines(
    spec: DotSpec, vectors: int, run: Run, first: int, places: Mapping[str, int]
) -> list[str]:
    """The assembly of such a function. places: offsets from %rsp of PARAMETERS, OWN and the
    parameters of copies"""
    return _Rows(spec, vectors, run, first, places).lines()


def call_of_rows(name: str, values: Mapping[str, Size]) -> str:
    """The call of such a function with values of PARAMETERS."""
    passed = (f"{kind} {values[x]}" for kind, x in zip(_KINDS, PARAMETERS, strict=True))
    return f"call {_CONVENTION} @{name}({', '.join(passed)})"


class _Rows:
    """Writes one function. Labels: 1 a panel of rows, 2 and 3 loops over steps, 4 the rest, 5 the
    copying loop over lines, 6 over their steps, 7 accumulators are complete, 8 they are stored, 9
    the end."""

    def __init__(
        self, spec: DotSpec, vectors: int, run: Run, first: int, places: Mapping[str, int]
    ) -> None:
        self.places = places
        self.spec, self.vectors, self.rows, self.first = spec, vectors, run.size, first
        self.end = first + run.times * run.size
        self.size, self.steps = spec.operand.bytes, spec.line_groups
        self.kind = "s" if self.size == 4 else "d"
        self.width = spec.unit.bits // 8
        self.b_row = vectors * self.width
        self.c_row = spec.strides.ldc * self.size
        self.bursts = spec.unit.bursts
        self.fetches = not (spec.b_columns and self.bursts)
        accumulators = self.rows * vectors
        self.columns = range(accumulators, accumulators + vectors)
        self.splats = range(
            accumulators + vectors, min(accumulators + vectors + self.rows, spec.unit.registers)
        )

    def at(self, name: str) -> str:
        """The operand of a variable on the stack."""
        return f"{self.places[name]}(%rsp)"

    def lines(self) -> list[str]:
        """All lines."""
        mask = [] if self.spec.b_columns else self._masks()
        copying = [] if self.spec.b_columns else self._copying()
        return [
            f"movq ${self.first}, {self.at('row')}", *self._end_of_rows(), *mask,
            "1:", *self._places(), *self._nothing(), *copying, *self._multiplying(),
            "7:", *self._write_back(), *self._end_of_rows(), "jmp 1b", "9:",
        ]  # fmt: skip

    def _end_of_rows(self) -> list[str]:
        """Exit if there are no more rows."""
        end = [f"cmpq ${self.end}, %rax", "jae 9f"]
        return [f"movq {self.at('row')}, %rax", f"cmpq {self.at('rows')}, %rax", "jae 9f", *end]

    def _masks(self) -> list[str]:
        """Masks of the remaining columns of each vector, in k1 and so on."""
        lanes = self.spec.lanes
        lines = [
            "movl $63, %eax", f"movq {self.at('left')}, %rcx", "cmpq %rax, %rcx",
            "cmovaq %rax, %rcx", "movq $-1, %rax", "shlq %cl, %rax", "notq %rax",
        ]  # fmt: skip
        for v in range(self.vectors):
            lines += [f"kmovw %eax, %k{v + 1}", f"shrq ${lanes}, %rax"]
        return lines

    def _places(self) -> list[str]:
        """The addresses of the rows, and of the prefetches."""
        between = f"${self.size}" if self.spec.a_columns else self.at("a_row")
        lines = [f"movq {self.at('row')}, %rax", f"movq {self.at('rows')}, %rdx", "decq %rdx"]
        for i, row in enumerate(f"%{_ROWS[n]}" for n in range(self.rows)):
            lines += [f"leaq {i}(%rax), {row}", f"cmpq %rdx, {row}", f"cmovaq %rdx, {row}"]
            lines += [_multiply(between, row)]
        # after the last row the first ones again
        lines += [
            f"leaq {self.rows}(%rax), %r15", "xorl %ecx, %ecx", "cmpq %rdx, %r15",
            "cmovaq %rcx, %r15", "subq %rax, %r15", _multiply(between, "%r15"),
        ]  # fmt: skip
        if self.fetches:
            lines += self._fetched_columns() if self.spec.b_columns else self._fetched_rows()
        return [*lines, f"movq {self.at('a')}, %rsi", f"movq {self.at('panel')}, %rdi"]

    def _fetched_columns(self) -> list[str]:
        """Prefetch two columns of the next panel for each eight rows. %rax: the row, which is
        clobbered"""
        most = self.vectors * self.spec.lanes - 2
        return [
            "shrq $2, %rax", f"movl ${most}, %edx", "cmpq %rdx, %rax", "cmovaq %rdx, %rax",
            f"imulq {self.at('ahead_row')}, %rax", f"addq {self.at('ahead')}, %rax",
            f"movq %rax, {self.at('place')}",
        ]  # fmt: skip

    def _fetched_rows(self) -> list[str]:
        """Prefetch rows of the next panel; with bursts, all rows of the panel of rows together."""
        lines = [
            f"imulq {self.at('rows_ahead')}, %rax", f"imulq {self.at('ahead_row')}, %rax",
            f"addq {self.at('ahead')}, %rax", f"imulq ${self.rows}, {self.at('rows_ahead')}, %rcx",
        ]  # fmt: skip
        if self.bursts:
            return [
                *lines, "2:", *self._fetched_row("%rax"), f"addq {self.at('ahead_row')}, %rax",
                "decq %rcx", "jnz 2b",
            ]  # fmt: skip
        return [
            *lines, f"movq %rax, {self.at('place')}", f"movq %rcx, {self.at('count')}",
            f"movq $0, {self.at('number')}",
        ]  # fmt: skip

    def _fetched_row(self, place: str) -> list[str]:
        return [f"prefetcht1 {byte}({place})" for byte in range(0, self.b_row, CACHE_LINE)]

    def _fetch_ahead(self) -> list[str]:
        """See `blocked_loops.fetch_ahead`.

        One by one among the multiply-adds, A to the L2 cache: rows that are 4 KiB apart share the
        ways of the L1 cache with B. On Zen, in bursts (figures in ADR 0033).
        """
        lines: list[str] = []
        if not self.spec.a_columns:
            fetch = "prefetcht0" if self.bursts else "prefetcht1"
            rows = [f"{fetch} (%rax,%{row})" for row in _ROWS[: self.rows]]
            lines += ["leaq (%rsi,%r15), %rax", *rows]
        if self.bursts:
            return lines
        if self.spec.b_columns:
            return [
                *lines, f"movq {self.at('place')}, %rax", "prefetcht1 (%rax)",
                f"addq ${CACHE_LINE}, {self.at('place')}", f"addq {self.at('ahead_row')}, %rax",
                "prefetcht1 (%rax)",
            ]  # fmt: skip
        rounds = self.spec.k // self.steps
        assert rounds & (rounds - 1) == 0, f"a power of two of lines: {self.spec}"
        return [
            *lines, f"movq {self.at('number')}, %rax", f"movq {self.at('count')}, %rdx",
            f"addq %rdx, {self.at('number')}", f"shrq ${rounds.bit_length() - 1}, %rax",
            f"imulq {self.at('ahead_row')}, %rax", f"addq {self.at('place')}, %rax",
            *self._fetched_row("%rax"), f"addq {self.at('ahead_row')}, %rax",
            *self._fetched_row("%rax"),
        ]  # fmt: skip

    def _nothing(self) -> list[str]:
        """Set the accumulators to 0."""
        return [f"vpxord %zmm{n}, %zmm{n}, %zmm{n}" for n in range(self.rows * self.vectors)]

    def _multiply_adds(self, byte: int) -> list[str]:
        """Multiply-adds of the loaded columns and the elements `byte` bytes further in A."""
        lines: list[str] = []
        for i in range(self.rows):
            splat = self.splats[i % len(self.splats)]
            lines.append(f"vbroadcasts{self.kind} {byte}(%rsi,%{_ROWS[i]}), %zmm{splat}")
            for v, column in enumerate(self.columns):
                total = i * self.vectors + v
                lines.append(f"vfmadd231p{self.kind} %zmm{column}, %zmm{splat}, %zmm{total}")
        return lines

    def _steps(self, count: int, fetches: Sequence[str] = ()) -> list[str]:
        """A number of steps over the packed panel, with the prefetches among them."""
        lines: list[str] = []
        for k in range(count):
            for v, column in enumerate(self.columns):
                place = f"{k * self.b_row + v * self.width}(%rdi)"
                lines.append(f"vmovups {place}, %zmm{column}")
            lines += self._multiply_adds(0 if self.spec.a_columns else k * self.size)
            lines += [f"addq {self.at('a_row')}, %rsi"] * self.spec.a_columns
        apart = len(lines) // (len(fetches) + 1)
        for n, line in enumerate(fetches):
            lines.insert((n + 1) * (apart + 1) - 1, line)
        along = [] if self.spec.a_columns else [f"addq ${count * self.size}, %rsi"]
        return [*lines, *along, f"addq ${count * self.b_row}, %rdi"]

    def _multiplying(self) -> list[str]:
        """Loops over the steps: by cache lines of A, then the rest."""
        lines = self.steps.bit_length() - 1
        return [
            f"movq {self.at('depth')}, %rcx", f"shrq ${lines}, %rcx", "jz 3f", ".p2align 5", "2:",
            *self._steps(self.steps, self._fetch_ahead()), "decq %rcx", "jnz 2b",
            "3:", f"movq {self.at('depth')}, %rcx", f"andl ${self.steps - 1}, %ecx",
            f"shrl ${UNROLL.bit_length() - 1}, %ecx", "jz 7f", ".p2align 5", "4:",
            *self._steps(UNROLL), "decq %rcx", "jnz 4b",
        ]  # fmt: skip

    def _copying(self) -> list[str]:
        """The same loops with a panel of B in place, which is also copied."""
        lines: list[str] = []
        for k in range(UNROLL):
            for v, column in enumerate(self.columns):
                byte, mask = v * self.width, f"{{%k{v + 1}}} {{z}}"
                lines.append(f"vmovup{self.kind} {byte}(%rdi), %zmm{column} {mask}")
                lines.append(f"vmovups %zmm{column}, {k * self.b_row + byte}(%r14)")
            lines += [f"addq {self.at('b_row')}, %rdi"]
            lines += self._multiply_adds(0 if self.spec.a_columns else k * self.size)
            lines += [f"addq {self.at('a_row')}, %rsi"] * self.spec.a_columns
        along = [] if self.spec.a_columns else [f"addq ${UNROLL * self.size}, %rsi"]
        return [
            f"cmpq $0, {self.at('source')}", "je 5f",
            "movq %rdi, %r14", f"movq {self.at('source')}, %rdi", f"movq $0, {self.at('source')}",
            f"movq {self.at('depth')}, %rcx", "3:", *self._fetch_ahead(),
            f"movl ${self.steps}, %edx", "cmpq %rdx, %rcx", "cmovbq %rcx, %rdx",
            f"shrl ${UNROLL.bit_length() - 1}, %edx", ".p2align 5", "4:", *lines, *along,
            f"addq ${UNROLL * self.b_row}, %r14", "decl %edx", "jnz 4b",
            f"subq ${self.steps}, %rcx", "ja 3b", "jmp 7f", "5:",
        ]  # fmt: skip

    def _write_back(self) -> list[str]:
        """Write the accumulators to C; the next rows follow."""
        places = [
            f"{i * self.c_row + v * self.width}(%rax)"
            for i in range(self.rows) for v in range(self.vectors)
        ]  # fmt: skip
        added = [f"vaddp{self.kind} {x}, %zmm{n}, %zmm{n}" for n, x in enumerate(places)]
        stored = [f"vmovups %zmm{n}, {x}" for n, x in enumerate(places)]
        return [
            f"imulq ${self.c_row}, {self.at('row')}, %rax", f"addq {self.at('c')}, %rax",
            f"cmpq $0, {self.at('adds')}", "je 8f", *added, "8:", *stored,
            f"addq ${self.rows}, {self.at('row')}",
        ]  # fmt: skip


def _multiply(factor: str, register: str) -> str:
    """The register times a constant or a variable on the stack."""
    return f"imulq {factor}, {register}" + (f", {register}" if factor.startswith("$") else "")
