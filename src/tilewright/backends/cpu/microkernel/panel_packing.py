"""Packing: copies of panels of B on the stack, for a column-major B or an instruction on groups.

AVX512-BF16 and AVX512-VNNI add groups of neighbours along K:

    acc[j] += a[k] * b[k, j] + a[k + 1] * b[k + 1, j]                    bf16: groups of 2
    acc[j] += a[k] * b[k, j] + ... + a[k + 3] * b[k + 3, j]              bytes: groups of 4

A lane of the right operand holds a group of one column. Rows of B hold neighbours along N instead,
so each panel of B is copied to the stack first, its rows interleaved; all row panels share it:

    B[k]     b00 b01 b02 ...          packed   b00 b10  b01 b11  b02 b12 ...
    B[k + 1] b10 b11 b12 ...

A group of A is one broadcast of 32 bits. VNNI multiplies unsigned bytes by signed ones. So a signed
A is also copied, with 128 added to each element (for matmuls from memory after the broadcast), and
each accumulator starts with the correction:

    sum_k a b = sum_k (a + 128) b - 128 sum_k b

In a column-major B, groups of a column are neighbours already: squares of groups are transposed in
registers. (Read this way into row-major scratch, B would be gathered or scattered, which takes
longer than the dot.)
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.backends.cpu.microkernel.function_text import Loop, Size, Writer
from tilewright.backends.cpu.microkernel.register_blocking import CACHE_LINE, DotSpec, column_runs
from tilewright.llvm import llvm_type

_PAIRS = (
    "<16 x float>", "llvm.x86.avx512bf16.dpbf16ps.512", "<32 x bfloat>",
)  # fmt: skip
_QUADS = ("<16 x i32>", "llvm.x86.avx512.vpdpbusd.512", "<64 x i8>")


def _instruction(spec: DotSpec) -> tuple[str, str, str]:
    """Type of the accumulators, intrinsic, type of the operands."""
    if spec.operand.group == 1:
        vector = f"<{spec.lanes} x {llvm_type(spec.type)}>"
        return vector, "", vector
    return _PAIRS if spec.operand.group == 2 else _QUADS


def declaration(spec: DotSpec) -> str:
    """The `declare` line of the intrinsic."""
    acc_type, name, operand = _instruction(spec)
    return f"declare {acc_type} @{name}({acc_type}, {operand}, {operand})"


class Packing:
    """Appends the copies of one dot to `out`.

    columns: address of the packed panel of B; a_start, a_row: of the elements of A then
    b_row: bytes from one row (or column) of B to the next; groups: of neighbours along K
    parts: the parts of a vector of groups that are stored
    """

    def __init__(self, spec: DotSpec, out: Writer) -> None:
        self.spec, self.out = spec, out
        self.acc_type, self.intrinsic, self.operand = _instruction(spec)
        self.group, self.size = spec.operand.group, spec.operand.bytes
        self.lanes, self.width = spec.lanes, spec.unit.bits // 8
        self.signed = spec.element == "i8" and not spec.by_tiles
        self.copies_rows = self.signed and not spec.from_memory
        self.columns, self.a_start = "%panel", "%with.bias" if self.copies_rows else "%a"
        self.a_row = spec.k if self.copies_rows else spec.strides.lda * self.size
        self.b_row: Size = spec.strides.ldb * self.size
        self.groups: Size = spec.k // self.group
        self.parts: Callable[[str], list[str]] = lambda vector: [vector]

    def as_operand(self, vector: str) -> str:
        """A vector of accumulators as one of groups."""
        if self.acc_type == self.operand:
            return vector
        return self.out.value(f"bitcast {self.acc_type} {vector} to {self.operand}")

    def multiply_add(self, x: str, y: str, z: str) -> str:
        """z plus the dot of the groups; x of A, y of B."""
        # bf16: A last, since that operand may be a broadcast from memory; bytes: A first
        ordered = (y, x) if self.group == 2 else (x, y)
        operands = ", ".join(f"{self.operand} {operand}" for operand in ordered)
        return self.out.value(
            f"call {self.acc_type} @{self.intrinsic}({self.acc_type} {z}, {operands})"
        )

    def reserve(self) -> None:
        """At the entry: stack memory, and the copy of A."""
        panel = self.panel_bytes(self.spec.packed_vectors)
        self.out.emit(f"{self.columns} = alloca [{panel} x i8], align {self.width}")
        if self.copies_rows:
            whole = self.spec.m * self.spec.k
            self.out.emit(f"{self.a_start} = alloca [{whole} x i8], align {self.width}")
            self._copy_rows()

    def _copy_rows(self) -> None:
        """Copy A, with 128 added to each byte."""
        width = min(self.width, self.spec.k & -self.spec.k)
        vector, out = f"<{width} x i8>", self.out
        loop = Loop(out, self.spec.m, [("ptr", "%a"), ("ptr", self.a_start)])
        source, target = loop.values
        for at in range(0, self.spec.k, width):
            x = out.value(f"load {vector}, ptr {out.offset(source, at)}, align 1")
            biased = out.value(f"xor {vector} {x}, splat (i8 -128)")
            out.emit(f"store {vector} {biased}, ptr {out.offset(target, at)}, align 1")
        below = out.offset(source, self.spec.strides.lda)
        loop.close([below, out.offset(target, self.spec.k)])

    def panel_bytes(self, vectors: int) -> int:
        """Bytes of a copy of a number of vectors."""
        return self.spec.k // self.group * vectors * self.width * self.spec.operand.parts

    def panel_step(self, vectors: int) -> Size:
        """Bytes from one panel of B to the next."""
        columns = vectors * self.lanes
        return self.out.times(columns, self.b_row) if self.spec.b_columns else columns * self.size

    def pack_columns(self, b: str, vectors: int, left: Size) -> list[str]:
        """Copy a panel of B, or several, one after the other, with zeros (or the last column)
        beyond the remaining columns; returns the start of its accumulators, a vector each, if not
        0."""
        out, starts = self.out, ["zeroinitializer"] * (vectors if self.signed else 0)
        columns = self.spec.b_columns
        steps, across = self.lanes if columns else 1, min(vectors, self.spec.panel_vectors)
        row = across * self.width * self.spec.operand.parts
        places = self._columns_of(vectors, left) if columns else []
        mask = "" if columns else lanes_below(out, vectors * self.lanes, left)
        carried = [("ptr", b), ("ptr", self.columns), ("i64", str(self.groups))]
        carried += [(self.acc_type, x) for x in starts]
        loop = Loop(out, self._turns(steps), carried)
        source, target, groups, *starts = loop.values
        rows = (
            self._transposed_rows(source, places, groups)
            if columns
            else [self._interleaved(source, vectors, mask)]
        )
        for n, packed in enumerate(rows):
            for v, vector in enumerate(packed):
                panel, lane = divmod(v, across)
                first = panel * self.panel_bytes(across) + n * row + lane * self.width
                for part, stored in enumerate(self.parts(vector)):
                    place = out.offset(target, first + part * across * self.width)
                    out.emit(f"store {self.operand} {stored}, ptr {place}, align {self.width}")
            pairs = zip(starts, packed, strict=False)  # no start values: no pairs
            starts = [self.multiply_add("splat (i8 -128)", x, start) for start, x in pairs]
        down = self.width if columns else out.times(self.group, self.b_row)
        following = out.offset(source, down)
        beyond = out.offset(target, steps * row)
        rest = out.value(f"sub i64 {groups}, {steps}") if columns else groups
        _, _, _, *starts = loop.close([following, beyond, rest, *starts])
        return [out.value(f"sub {self.acc_type} zeroinitializer, {start}") for start in starts]

    def _turns(self, steps: int) -> Size:
        """The number of iterations that copy so many groups."""
        if isinstance(self.groups, int) or steps == 1:
            return self.out.part(self.groups, steps)
        return self.out.part(self.out.value(f"add i64 {self.groups}, {steps - 1}"), steps)

    def _columns_of(self, vectors: int, left: Size) -> list[Size]:
        """Bytes from the first column of a panel to each; beyond the last remaining column, to that
        one."""
        out, count = self.out, vectors * self.lanes
        if isinstance(left, int):
            return [out.times(i, self.b_row) for i in range(count)]
        last = out.value(f"sub i64 {left}, 1")
        return [out.distance(out.smaller(i, last), self.b_row) for i in range(count)]

    def _transposed_rows(self, source: str, columns: list[Size], groups: str) -> list[list[str]]:
        """A row of vectors for each of the next groups along K, of a column-major panel."""
        out, left = self.out, groups if isinstance(self.groups, str) else self.lanes
        mask = lanes_below(out, self.lanes, left)
        loaded = [
            masked_load(out, self.acc_type, out.offset(source, c), mask, self.size) for c in columns
        ]
        blocks = [
            self._transposed(loaded[v : v + self.lanes]) for v in range(0, len(columns), self.lanes)
        ]
        return [[self.as_operand(block[n]) for block in blocks] for n in range(self.lanes)]

    def _transposed(self, rows: list[str]) -> list[str]:
        """Swap ever smaller off-diagonal blocks of a square of vectors."""
        side, half = len(rows), len(rows) // 2
        while half:
            for i in (i for i in range(side) if not i & half):
                first = [n if not n & half else side + n - half for n in range(side)]
                second = [n + half if not n & half else side + n for n in range(side)]
                upper, lower = rows[i], rows[i + half]
                rows[i], rows[i + half] = (
                    self._shuffled(upper, lower, lanes) for lanes in (first, second)
                )
            half //= 2
        return rows

    def _shuffled(self, x: str, y: str, lanes: list[int]) -> str:
        mask = f"<{len(lanes)} x i32> <{', '.join(f'i32 {n}' for n in lanes)}>"
        return self.out.value(f"shufflevector {self.acc_type} {x}, {self.acc_type} {y}, {mask}")

    def copy_groups(self, source: str, target: str, vectors: int, mask: str) -> list[str]:
        """The stored vectors of a group of rows of B."""
        packed = self._interleaved(source, vectors, mask)
        for v, vector in enumerate(packed):
            place = self.out.offset(target, v * self.width)
            self.out.emit(f"store {self.operand} {vector}, ptr {place}, align {self.width}")
        return packed

    def kind_of_rows(self, vectors: int) -> str:
        """The type of one load of a copy of a panel."""
        if self.spec.b_columns:
            return self.acc_type
        element = llvm_type(self.spec.type) if self.group == 1 else f"i{8 * self.size}"
        return f"<{vectors * self.lanes} x {element}>"

    def _interleaved(self, source: str, vectors: int, mask: str) -> list[str]:
        """The next group of rows: vectors of groups, in the order of the columns."""
        out, bits, columns = self.out, 8 * self.size, vectors * self.lanes
        rows = [out.offset(source, out.times(i, self.b_row)) for i in range(self.group)]
        kind = self.kind_of_rows(vectors)
        words = [masked_load(out, kind, row, mask, self.size) for row in rows]
        zipped = [i for n in range(columns) for i in (n, columns + n)]
        order = f"<{2 * columns} x i32> <{', '.join(f'i32 {i}' for i in zipped)}>"
        while len(words) > 1:
            pairs = [
                out.value(f"shufflevector {kind} {x}, {kind} {y}, {order}")
                for x, y in zip(words[::2], words[1::2], strict=True)
            ]
            bits *= 2
            wide = f"<{columns} x i{bits}>"
            words = [
                out.value(f"bitcast <{2 * columns} x i{bits // 2}> {p} to {wide}") for p in pairs
            ]
            kind = wide
        parts = self._vectors(words[0], kind, vectors)
        if self.group == 1:
            return parts
        return [out.value(f"bitcast <16 x i32> {part} to {self.operand}") for part in parts]

    def _vectors(self, row: str, kind: str, count: int) -> list[str]:
        """The vectors of a row of all columns."""
        lanes = [range(v * self.lanes, (v + 1) * self.lanes) for v in range(count)]
        masks = [", ".join(f"i32 {n}" for n in part) for part in lanes]
        operands = f"{kind} {row}, {kind} poison"
        return [
            self.out.value(f"shufflevector {operands}, <{self.lanes} x i32> <{mask}>")
            for mask in masks
        ]


class MemoryBlocks:
    """The loop over blocks of K of a matmul from memory, open until `close`.

    values: addresses of A and B in the block, and groups along K in it
    index: its number
    first: whether it is the first block, for which C is not read (i1; "": it is read for all)
    whole: a power of two that divides the length of a block, unless the block is shorter
    any_length: whether it need not (i1)

    Rows of B are far apart, so that the CPU does not prefetch them: during a panel, the next one,
    perhaps of the next block, is prefetched to the L2 cache, some rows with each row of C, if
    `fetches`.
    """

    def __init__(self, packing: Packing, whole: int = 1, any_length: str = "true") -> None:
        self.packing, out = packing, packing.out
        most = packing.spec.k
        # beyond the last whole length an iteration of its own
        mask = out.value(f"select i1 {any_length}, i64 -1, i64 {-whole}")
        wholes = out.value(f"and i64 %depth, {mask}")
        some = out.value(f"icmp ne i64 {wholes}, %depth")
        turns = out.part(out.value(f"add i64 {wholes}, {most - 1}"), most)
        turns = out.value(f"add i64 {turns}, {out.value(f'zext i1 {some} to i64')}")
        self._loop = Loop(out, turns, [("ptr", "%a"), ("ptr", "%b"), ("i64", "%depth")])
        self.index = self._loop.index
        self._a, self._b, self._left = self._loop.values
        # the accumulators of the first block are written, those of others added, unless all are
        # added
        self.first = ""
        if not packing.spec.accumulate:
            begins = out.value(f"icmp eq i64 {self._left}, %depth")
            self.first = out.value(f"select i1 %adds, i1 false, i1 {begins}")
        self.length = str(out.smaller(self._left, most))
        if whole > 1:
            short = out.value(f"icmp ult i64 {self._left}, {whole}")
            rounded = out.value(f"and i64 {self.length}, {mask}")
            self.length = out.value(f"select i1 {short}, i64 {self._left}, i64 {rounded}")
        self.values = self._a, self._b, str(out.part(self.length, packing.group))
        self._following = self._b
        self.fetches = not (packing.spec.b_columns and packing.spec.unit.bursts)
        if self.fetches:
            row = packing.size if packing.spec.b_columns else packing.b_row
            self._following = out.offset(self._b, out.times(most, row))

    def next_panel(self, b: str, vectors: int, left: Size) -> str:
        """The panel of B after the one at `b`; left: columns from this one on."""
        out, packing = self.packing.out, self.packing
        ends = out.value(f"icmp ule i64 {left}, {vectors * packing.lanes}")
        behind = out.offset(b, packing.panel_step(vectors))
        return out.value(f"select i1 {ends}, ptr {self._following}, ptr {behind}")

    def fetch(self, rows: str, count: Size, vectors: int, pitch: Size) -> None:
        """Prefetch rows of a panel that begin at `rows`, `pitch` bytes apart."""
        out, packing = self.packing.out, self.packing
        loop = Loop(out, count, [("ptr", rows)])
        (place,) = loop.values
        for byte in range(0, int(packing.panel_step(vectors)), CACHE_LINE):
            line = out.offset(place, byte)
            out.emit(fetch_line(line, 2))
        loop.close([out.offset(place, pitch)])

    def close(self) -> None:
        out, packing = self.packing.out, self.packing
        spec, size = packing.spec, packing.size
        along = out.distance(self.length, "%a.row" if spec.a_columns else size)
        down = out.distance(self.length, size if spec.b_columns else packing.b_row)
        left = out.value(f"sub i64 {self._left}, {self.length}")
        self._loop.close([out.offset(self._a, along), out.offset(self._b, down), left])


def fetch_line(place: str, level: int) -> str:
    """Prefetch a cache line; level: 3 for the L1 cache, 2 for the L2."""
    return f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 {level}, i32 1)"


def lanes_below(out: Writer, lanes: int, left: Size) -> str:
    """Mask of the lanes below a number; a number means all: no mask is needed."""
    if isinstance(left, int):
        return ""
    kind = f"<{lanes} x i32>"
    narrow = out.value(f"trunc i64 {out.smaller(left, lanes)} to i32")
    first = out.value(f"insertelement {kind} poison, i32 {narrow}, i64 0")
    limit = out.value(f"shufflevector {kind} {first}, {kind} poison, {kind} zeroinitializer")
    numbers = ", ".join(f"i32 {i}" for i in range(lanes))
    return out.value(f"icmp ult {kind} <{numbers}>, {limit}")


def masked_load(out: Writer, kind: str, place: str, mask: str, align: int) -> str:
    """A vector from memory, zeros where a mask does not hold."""
    if not mask:
        return out.value(f"load {kind}, ptr {place}, align {align}")
    where = f"ptr align {align} {place}, <{_lanes(kind)} x i1> {mask}"
    call = f"call {kind} @llvm.masked.load.{_suffix(kind)}.p0"
    return out.value(f"{call}({where}, {kind} zeroinitializer)")


def _lanes(kind: str) -> int:
    return int(kind[1:].split()[0])


def _suffix(kind: str) -> str:
    """The suffix of an intrinsic's name for a vector type."""
    element = kind[1:-1].split()[2]
    return f"v{_lanes(kind)}{ {'float': 'f32', 'double': 'f64'}.get(element, element) }"


def accumulators_of_column(out: Writer, spec: DotSpec, column: Size) -> str:
    """The address of the accumulators of a column; of columns that are stored together, of the
    first of a panel."""
    size, wide = spec.type.bytes, spec.c_columns or spec.n
    if wide == spec.n:
        return out.offset("%c", out.times(size, column))
    group = out.part(column, wide)
    past = out.value(f"urem i64 {column}, {wide}")
    start = out.offset("%c", out.times(size * spec.m * wide, group))
    return out.offset(start, out.times(size, past))


def memory_declarations(spec: DotSpec) -> tuple[str, ...]:
    """Declarations for matmuls from memory."""
    if not spec.from_memory:
        return ()
    packing = Packing(spec, Writer())
    kinds = [packing.kind_of_rows(run.size) for run in column_runs(spec)]
    kinds += ["<64 x i8>", "<32 x i16>"] if spec.by_tiles else []
    return (
        "declare i64 @llvm.umin.i64(i64, i64)",
        "declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)",
        *(
            f"declare {kind} @llvm.masked.load.{_suffix(kind)}.p0"
            f"(ptr, <{_lanes(kind)} x i1>, {kind})"
            for kind in dict.fromkeys(kinds)
        ),
    )


def function(name: str, spec: DotSpec, body: Writer, result: str = "") -> str:
    """The function of a matmul; result: the i1 that it returns, if any."""
    sizes = ("%a.row", "%b.row", "%depth", "%rows", "%columns") if spec.from_memory else ()
    more = "".join(f", i64 {size}" for size in sizes)
    more += ", i1 %adds" if spec.from_memory and not spec.accumulate else ""
    more += ", ptr %key, ptr %kept, i1 %keep" if spec.keeps else ""
    pointers = "ptr noalias %c, ptr noalias readonly %a, ptr noalias readonly %b"
    kind, leave = ("i1", f"  ret i1 {result}") if result else ("void", "  ret void")
    head = f"define internal {kind} @{name}({pointers}{more}) {spec.unit.function_attributes} {{"
    return "\n".join([head, *body.lines, leave, "}", ""])
