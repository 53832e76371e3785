"""The loops over rows of a product of fp32 or fp64 from memory, as assembly of AVX-512.

`blocked_loops.py` has the same loops as LLVM IR, for every other CPU. LLVM takes 29 ms for them, 2
ms for their text in assembly (ADR 0057). A function does the rows of a panel of columns of C:

    for each panel of 8 rows
        rows 0 ... 7 = bytes from the first row of A to each, the last one again beyond it
        sums[8][2] = 0                                  # registers 0 ... 15
        for each cache line of the rows of A            # 16 steps of fp32, unrolled
            fetch that line of the next 8 rows, and two rows of the next panel of B
            for each step
                b0, b1 = panel[step]
                for i in 8 rows: sums[i] += splat(A[row i, step]) * (b0, b1)
        C[panel] = sums, or += sums

B's panel is copied while the first rows are multiplied if `source` is where it lies (`_copying`).
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
    "ahead", "ahead_row", "rows_ahead", "adds", "source", "b_row", "left",
)  # fmt: skip
"""All of 8 bytes. a, c: the block of A, and C from the panel's first column on; panel: of B, packed
depth: steps; rows: of A; a_row, b_row: bytes from a row (of a column-major A, a column) to the next
ahead: the next panel of B, to be fetched, ahead_row: bytes from a row (or column) of it to the next
rows_ahead: of them, for each row of A; adds: whether to what C holds, 0 or 1
source: the panel of B where it is to be copied from, or null; left: columns from its first one on
"""

_POINTERS = ("a", "panel", "c", "ahead", "source")
_KINDS = ["ptr" if name in _POINTERS else "i64" for name in PARAMETERS]
_CONVENTION = "x86_64_sysvcc void"
_PASSED = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")  # System V ABI, AMD64 supplement, 3.2.3
_KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15")
_ROWS = ("rbx", "rbp", "r8", "r9", "r10", "r11", "r12", "r13")
"""What is added to %rsi, a place in A, for each row of a panel. %rdi: in B; %rcx: turns; %r14: in
the copy of B; %r15: from a place in A to the same one in the next panel of rows."""
_OWN = ("row", "place", "number", "count")
"""On the stack, too: the panel's first row; where in B what is fetched begins; so many rows fetched
before, and in a round."""

_SLOT = 8
_SAVED = len(_OWN) + len(_PASSED) + len(_KEPT) + 1  # with the return address
_PLACES = {
    **{name: _SLOT * i for i, name in enumerate(_OWN)},
    **{name: _SLOT * (len(_OWN) + i) for i, name in enumerate(PARAMETERS[: len(_PASSED)])},
    **{name: _SLOT * (_SAVED + i) for i, name in enumerate(PARAMETERS[len(_PASSED) :])},
}


def rows_function(name: str, spec: DotSpec, vectors: int, run: Run, first: int) -> str:
    """LLVM IR text of a function of PARAMETERS: the rows from `first` on that a run has, if A has
    so many, of a panel of so many vectors of columns."""
    lines = _Rows(spec, vectors, run, first).lines()
    text = "\\0A".join(lines).replace("$", "$$")
    return (
        f"define internal {_CONVENTION} @{name}({', '.join(_KINDS)}) naked "
        f'{spec.unit.function_attributes} {{\ncall void asm sideeffect "{text}", ""()\n'
        "unreachable\n}\n"
    )


def call_of_rows(name: str, values: Mapping[str, Size]) -> str:
    """The call of such a function with values of PARAMETERS."""
    passed = (f"{kind} {values[x]}" for kind, x in zip(_KINDS, PARAMETERS, strict=True))
    return f"call {_CONVENTION} @{name}({', '.join(passed)})"


def _at(name: str) -> str:
    return f"{_PLACES[name]}(%rsp)"


class _Rows:
    """Writes one function. Labels: 1 a panel of rows, 2 and 3 loops over steps, 4 the rest, 5 the
    copying loop over lines, 6 over their steps, 7 sums are there, 8 they are stored, 9 the end."""

    def __init__(self, spec: DotSpec, vectors: int, run: Run, first: int) -> None:
        self.spec, self.vectors, self.rows, self.first = spec, vectors, run.size, first
        self.end = first + run.times * run.size
        self.size, self.steps = spec.operand.bytes, spec.line_groups
        self.kind = "s" if self.size == 4 else "d"
        self.width = spec.unit.bits // 8
        self.b_row = vectors * self.width
        self.c_row = spec.strides.ldc * self.size
        self.bursts = spec.unit.bursts
        self.fetches = not (spec.b_columns and self.bursts)
        sums = self.rows * vectors
        self.columns = range(sums, sums + vectors)
        self.splats = range(sums + vectors, min(sums + vectors + self.rows, spec.unit.registers))

    def lines(self) -> list[str]:
        """All of it."""
        own = _SLOT * len(_OWN)
        enter = [f"pushq %{x}" for x in (*_KEPT, *_PASSED[::-1])]
        enter += [f"subq ${own}, %rsp", f"movq ${self.first}, {_at('row')}"]
        leave = [f"addq ${own + _SLOT * len(_PASSED)}, %rsp", *(f"popq %{x}" for x in _KEPT[::-1])]
        mask = [] if self.spec.b_columns else self._masks()
        copying = [] if self.spec.b_columns else self._copying()
        return [
            *enter, *self._end_of_rows(), *mask, "1:", *self._places(), *self._nothing(),
            *copying, *self._multiplying(), "7:", *self._write_back(), *self._end_of_rows(),
            "jmp 1b", "9:", "vzeroupper", *leave, "ret",
        ]  # fmt: skip

    def _end_of_rows(self) -> list[str]:
        """Leave if no rows follow."""
        end = [f"cmpq ${self.end}, %rax", "jae 9f"]
        return [f"movq {_at('row')}, %rax", f"cmpq {_at('rows')}, %rax", "jae 9f", *end]

    def _masks(self) -> list[str]:
        """The columns of each vector that are left, in k1 and so on."""
        lanes = self.spec.lanes
        lines = [
            "movl $63, %eax", f"movq {_at('left')}, %rcx", "cmpq %rax, %rcx", "cmovaq %rax, %rcx",
            "movq $-1, %rax", "shlq %cl, %rax", "notq %rax",
        ]  # fmt: skip
        for v in range(self.vectors):
            lines += [f"kmovw %eax, %k{v + 1}", f"shrq ${lanes}, %rax"]
        return lines

    def _places(self) -> list[str]:
        """Where the rows are, and what is fetched."""
        between = f"${self.size}" if self.spec.a_columns else _at("a_row")
        lines = [f"movq {_at('row')}, %rax", f"movq {_at('rows')}, %rdx", "decq %rdx"]
        for i, row in enumerate(f"%{_ROWS[n]}" for n in range(self.rows)):
            lines += [f"leaq {i}(%rax), {row}", f"cmpq %rdx, {row}", f"cmovaq %rdx, {row}"]
            lines += [_multiply(between, row)]
        # behind the last row come the first ones again
        lines += [
            f"leaq {self.rows}(%rax), %r15", "xorl %ecx, %ecx", "cmpq %rdx, %r15",
            "cmovaq %rcx, %r15", "subq %rax, %r15", _multiply(between, "%r15"),
        ]  # fmt: skip
        if self.fetches:
            lines += self._fetched_columns() if self.spec.b_columns else self._fetched_rows()
        return [*lines, f"movq {_at('a')}, %rsi", f"movq {_at('panel')}, %rdi"]

    def _fetched_columns(self) -> list[str]:
        """Two columns of the next panel, for each eight rows; %rax: the row, which they lose."""
        most = self.vectors * self.spec.lanes - 2
        return [
            "shrq $2, %rax", f"movl ${most}, %edx", "cmpq %rdx, %rax", "cmovaq %rdx, %rax",
            f"imulq {_at('ahead_row')}, %rax", f"addq {_at('ahead')}, %rax",
            f"movq %rax, {_at('place')}",
        ]  # fmt: skip

    def _fetched_rows(self) -> list[str]:
        """Rows of the next panel, those at once that belong to the panel of rows if in bursts."""
        lines = [
            f"imulq {_at('rows_ahead')}, %rax", f"imulq {_at('ahead_row')}, %rax",
            f"addq {_at('ahead')}, %rax", f"imulq ${self.rows}, {_at('rows_ahead')}, %rcx",
        ]  # fmt: skip
        if self.bursts:
            return [
                *lines, "2:", *self._fetched_row("%rax"), f"addq {_at('ahead_row')}, %rax",
                "decq %rcx", "jnz 2b",
            ]  # fmt: skip
        return [
            *lines, f"movq %rax, {_at('place')}", f"movq %rcx, {_at('count')}",
            f"movq $0, {_at('number')}",
        ]  # fmt: skip

    def _fetched_row(self, place: str) -> list[str]:
        return [f"prefetcht1 {byte}({place})" for byte in range(0, self.b_row, CACHE_LINE)]

    def _fetch_ahead(self) -> list[str]:
        """See `blocked_loops.fetch_ahead`.

        One by one among the products, A to the L2 cache: eight lines at once to the L1 cache, whose
        ways they share with B where rows are 4 KiB apart, were 5 % of the time with all in the L2
        cache (Intel, with AMX); fp32 1024^3 and 2048^3 1.08 and 1.06 times as fast, 1.01 of it by
        the L2 cache. On Zen, where bursts pay, as it was measured there.
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
                *lines, f"movq {_at('place')}, %rax", "prefetcht1 (%rax)",
                f"addq ${CACHE_LINE}, {_at('place')}", f"addq {_at('ahead_row')}, %rax",
                "prefetcht1 (%rax)",
            ]  # fmt: skip
        rounds = self.spec.k // self.steps
        assert rounds & (rounds - 1) == 0, f"a power of two of lines: {self.spec}"
        return [
            *lines, f"movq {_at('number')}, %rax", f"movq {_at('count')}, %rdx",
            f"addq %rdx, {_at('number')}", f"shrq ${rounds.bit_length() - 1}, %rax",
            f"imulq {_at('ahead_row')}, %rax", f"addq {_at('place')}, %rax",
            *self._fetched_row("%rax"), f"addq {_at('ahead_row')}, %rax",
            *self._fetched_row("%rax"),
        ]  # fmt: skip

    def _nothing(self) -> list[str]:
        """Sums of 0."""
        return [f"vpxord %zmm{n}, %zmm{n}, %zmm{n}" for n in range(self.rows * self.vectors)]

    def _products(self, byte: int) -> list[str]:
        """Of the columns that are loaded and what is so many bytes further in A."""
        lines: list[str] = []
        for i in range(self.rows):
            splat = self.splats[i % len(self.splats)]
            lines.append(f"vbroadcasts{self.kind} {byte}(%rsi,%{_ROWS[i]}), %zmm{splat}")
            for v, column in enumerate(self.columns):
                total = i * self.vectors + v
                lines.append(f"vfmadd231p{self.kind} %zmm{column}, %zmm{splat}, %zmm{total}")
        return lines

    def _steps(self, count: int, fetches: Sequence[str] = ()) -> list[str]:
        """So many, of the packed panel, with what is fetched among them."""
        lines: list[str] = []
        for k in range(count):
            for v, column in enumerate(self.columns):
                place = f"{k * self.b_row + v * self.width}(%rdi)"
                lines.append(f"vmovups {place}, %zmm{column}")
            lines += self._products(0 if self.spec.a_columns else k * self.size)
            lines += [f"addq {_at('a_row')}, %rsi"] * self.spec.a_columns
        apart = len(lines) // (len(fetches) + 1)
        for n, line in enumerate(fetches):
            lines.insert((n + 1) * (apart + 1) - 1, line)
        along = [] if self.spec.a_columns else [f"addq ${count * self.size}, %rsi"]
        return [*lines, *along, f"addq ${count * self.b_row}, %rdi"]

    def _multiplying(self) -> list[str]:
        """Loops over the steps: by cache lines of A, then what is left."""
        lines = self.steps.bit_length() - 1
        return [
            f"movq {_at('depth')}, %rcx", f"shrq ${lines}, %rcx", "jz 3f", ".p2align 5", "2:",
            *self._steps(self.steps, self._fetch_ahead()), "decq %rcx", "jnz 2b",
            "3:", f"movq {_at('depth')}, %rcx", f"andl ${self.steps - 1}, %ecx",
            f"shrl ${UNROLL.bit_length() - 1}, %ecx", "jz 7f", ".p2align 5", "4:",
            *self._steps(UNROLL), "decq %rcx", "jnz 4b",
        ]  # fmt: skip

    def _copying(self) -> list[str]:
        """The same with a panel of B from where it is, which goes to its copy on the way."""
        lines: list[str] = []
        for k in range(UNROLL):
            for v, column in enumerate(self.columns):
                byte, mask = v * self.width, f"{{%k{v + 1}}} {{z}}"
                lines.append(f"vmovup{self.kind} {byte}(%rdi), %zmm{column} {mask}")
                lines.append(f"vmovups %zmm{column}, {k * self.b_row + byte}(%r14)")
            lines += [f"addq {_at('b_row')}, %rdi"]
            lines += self._products(0 if self.spec.a_columns else k * self.size)
            lines += [f"addq {_at('a_row')}, %rsi"] * self.spec.a_columns
        along = [] if self.spec.a_columns else [f"addq ${UNROLL * self.size}, %rsi"]
        return [
            f"cmpq $0, {_at('source')}", "je 5f",
            "movq %rdi, %r14", f"movq {_at('source')}, %rdi", f"movq $0, {_at('source')}",
            f"movq {_at('depth')}, %rcx", "3:", *self._fetch_ahead(),
            f"movl ${self.steps}, %edx", "cmpq %rdx, %rcx", "cmovbq %rcx, %rdx",
            f"shrl ${UNROLL.bit_length() - 1}, %edx", ".p2align 5", "4:", *lines, *along,
            f"addq ${UNROLL * self.b_row}, %r14", "decl %edx", "jnz 4b",
            f"subq ${self.steps}, %rcx", "ja 3b", "jmp 7f", "5:",
        ]  # fmt: skip

    def _write_back(self) -> list[str]:
        """The sums to C; the next rows follow."""
        places = [
            f"{i * self.c_row + v * self.width}(%rax)"
            for i in range(self.rows) for v in range(self.vectors)
        ]  # fmt: skip
        added = [f"vaddp{self.kind} {x}, %zmm{n}, %zmm{n}" for n, x in enumerate(places)]
        stored = [f"vmovups %zmm{n}, {x}" for n, x in enumerate(places)]
        return [
            f"imulq ${self.c_row}, {_at('row')}, %rax", f"addq {_at('c')}, %rax",
            f"cmpq $0, {_at('adds')}", "je 8f", *added, "8:", *stored,
            f"addq ${self.rows}, {_at('row')}",
        ]  # fmt: skip


def _multiply(factor: str, register: str) -> str:
    """The register times a constant or what is on the stack."""
    return f"imulq {factor}, {register}" + (f", {register}" if factor.startswith("$") else "")
