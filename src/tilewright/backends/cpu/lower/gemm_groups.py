"""Batches adjacent programs into one GEMM.

    program 0        rows   0 ...  31 of A      columns 0 ... 31 of B
    program 1        rows  32 ...  63           the same
    ...
    program 8        rows   0 ...  31           columns 32 ... 63

A matmul copies panels of B, amortised over the rows of its program (`emit_memory_matmul.py`), and
reads A, amortised over the columns: for 32 of them either takes longer than the multiplications (of
fp32, where A is read from the L3 cache). So the first program of a group computes the matmul of the
whole group, and leaves the accumulators in scratch memory that lasts from program to program, where
the others read them. If the next group has the same columns, the panels of B stay cached for it
(`microkernel/tile_copies.py`). `matmul_windows.py` forms the groups:

    for each group of programs of the range:
        query their operands: @program, which stores the addresses of its operands in a
        record, and returns
        for each program of the group: call @program(..., record)
            if it is the first one:
                matmul(accumulators, a, b, strides, K, all rows of the group, all columns)
            the rest of the loop, stores: each program its own

Programs have no order, so one may read its operands before another one ends. Before the matmul a
program only computes scalars, so a query has no effect. The program itself tests what a group has
in common (K, strides, no wrap, ...).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering, GemmGroup
from tilewright.backends.cpu.lower.matmuls_from_memory import MemoryMatmul
from tilewright.backends.cpu.lower.vector_access import Buffer
from tilewright.backends.cpu.microkernel import KEY_NUMBERS, DotSpec, kept_bytes
from tilewright.ir import Function, Op, Trait
from tilewright.ir.types import element_of, shape_of
from tilewright.llvm import Val, integer_literal
from tilewright.ops import AssumeOp, LoadOp

_MOST_ROWS = 256
"""With these rows, copies of panels take a tenth of the time that AMX takes."""

_MOST_COLUMNS = 512
"""Limit for AMX tiles, which multiply faster than the L3 cache delivers rows of A."""

_MOST_ROWS_OF_VECTORS = 128
"""Limit of rows for vectors. Rows of A that are a power of two apart evict each other from the L2
cache, 256 of them more than 128 (figures in ADR 0033)."""

_MOST_BYTES = 1 << 17
"""Bytes of the accumulators of matmuls on vectors, which share the L2 cache with the operands."""

_SHARED = ("a", "a_row", "b", "b_row", "depth", "columns")
"""Operands of a matmul, except for the rows, which are the same in a group, or contiguous."""

_FIELDS = (
    "place", "acc", "all_rows", "all_columns", "asked", "rows", *_SHARED, "", "",
    "wrong", "keep", "key",
)  # fmt: skip
"""Fields of the record, 8 bytes each: 0 for the first program of its group; offset of its
accumulators from those of the first; the rows and columns of the group; whether this is a query;
its answer, 0 rows where the program does not fit. The shared operands are compared as a vector of
8. Then: whether the group's accumulators are wrong; whether the next group has the same columns;
the key of the cached panels (`KEY_NUMBERS`)."""


def _field(name: str) -> str:
    """The address of a field of %group."""
    return f"getelementptr i64, ptr %group, i64 {_FIELDS.index(name)}"


def accumulators_of_group(state: CpuLowering, matmul: MemoryMatmul) -> Buffer | None:
    """The accumulators of this program, if it may belong to a group, else None."""
    shape, element = shape_of(matmul.result.type), element_of(matmul.result.type)
    spec, (m, n) = matmul.spec, shape
    down, across = _most_programs(spec)
    if spec.accumulate or not _may_be_queried(state, matmul.loop):
        return None
    if down * across < 2 and not spec.keeps:
        return None
    code, tile = state.code, m * n * spec.type.bytes
    all_of_them = state.scratch.allocate(code.name("acc"), down * across * tile)
    whole = group_spec(spec, down, across)
    kept = state.scratch.allocate(code.name("kept"), kept_bytes(whole)) if whole.keeps else None
    operand = spec.operand.bytes
    state.group = GemmGroup(
        m, n, down, across, spec.by_tiles, operand, operand if spec.a_columns else 0,
        0 if spec.b_columns else operand, tile, down * tile, all_of_them, kept,
    )  # fmt: skip
    distance = _loaded(state, "acc")
    own = code.let_here(f"getelementptr i8, ptr {all_of_them.name}, {distance.typed}", "ptr")
    return Buffer(own, shape, (n, 1), element, (all_of_them,))


def _most_programs(spec: DotSpec) -> tuple[int, int]:
    """The largest numbers of programs of a group along rows and columns."""
    tile = spec.m * spec.n * spec.type.bytes
    most = _MOST_ROWS * _MOST_COLUMNS * spec.type.bytes if spec.by_tiles else _MOST_BYTES
    rows = _MOST_ROWS if spec.by_tiles else _MOST_ROWS_OF_VECTORS
    down = max(1, min(rows // spec.m, most // tile))
    beside = _MOST_COLUMNS // spec.n if spec.by_tiles else most // (down * tile)
    return down, max(1, beside) if spec.n % spec.panel_columns == 0 else 1


def group_spec(spec: DotSpec, down: int, across: int) -> DotSpec:
    """The matmul of `down` x `across` programs."""
    return replace(spec, m=down * spec.m, n=across * spec.n, c_columns=spec.n if across > 1 else 0)


def _may_be_queried(state: CpuLowering, loop: Op) -> bool:
    """Whether every program reaches a loop after computing scalars only."""
    block = loop.parent
    first = state.group is None and not state.scratch.blocks
    if not first or block is None or not isinstance(block.owner, Function):
        return False
    for op in block:
        if op is loop:
            return True
        quiet = Trait.PURE in op.traits or isinstance(op, AssumeOp)
        if op.regions or not (quiet or (isinstance(op, LoadOp) and not op.volatile)):
            return False
    return False


def _loaded(state: CpuLowering, name: str) -> Val:
    code = state.code
    return code.let_here(f"load i64, {code.let_here(_field(name), 'ptr').typed}", "i64")


def _branch(state: CpuLowering, number: Val, some: str, none: str) -> None:
    """Branch to one of two labels by whether a number is 0."""
    is_some = state.code.compare("icmp ne", number, _i64(0))
    state.code.line(f"br {is_some.typed}, label %{some}, label %{none}")


def emit_group_query(state: CpuLowering, fits: Val, operands: Sequence[Val]) -> None:
    """Store the operands of the matmul, rows first; return from the program here if this is a
    query."""
    code, asked = state.code, _loaded(state, "asked")
    answers = dict(zip(("rows", *_SHARED), operands, strict=True))
    answers["rows"] = code.select(fits, answers["rows"], _i64(0))
    for name, value in answers.items():
        code.line(f"store {value.typed}, {code.let_here(_field(name), 'ptr').typed}")
    answered, go_on = code.label("answered"), code.label("go.on")
    _branch(state, asked, answered, go_on)
    code.line(f"{answered}:")
    code.line("ret void")
    code.line(f"{go_on}:")


def multiply_group(
    state: CpuLowering, multiply: str, there: str, own: tuple[Val, Val]
) -> tuple[Val, Val]:
    """Branch to the label `there` if another program has computed the matmul; return the rows and
    columns of the group, `own` where they are 0."""
    _branch(state, _loaded(state, "place"), there, multiply)
    state.code.line(f"{multiply}:")
    rows, columns = _loaded(state, "all_rows"), _loaded(state, "all_columns")
    is_alone = state.code.compare("icmp eq", rows, _i64(0))
    return state.code.select(is_alone, own[0], rows), state.code.select(is_alone, own[1], columns)


def note_failure(state: CpuLowering, right: Val) -> None:
    """Record for the other programs whether the accumulators are right."""
    code = state.code
    wrong = code.select(right, _i64(0), _i64(1))
    code.line(f"store {wrong.typed}, {code.let_here(_field('wrong'), 'ptr').typed}")


def unless_failed(state: CpuLowering, there: str, done: str, other: str) -> None:
    """Branch from the label `there` to `done`, or to `other` if the accumulators are wrong."""
    state.code.line(f"{there}:")
    _branch(state, _loaded(state, "wrong"), other, done)


def kept_panels(state: CpuLowering) -> tuple[Val, ...]:
    """Arguments of a group's matmul for cached panels of B: their key, their address, and whether
    to keep those that it copies."""
    code, group = state.code, state.group
    if group is None or group.kept is None:
        return ()
    key = code.let_here(_field("key"), "ptr")
    keep = code.compare("icmp ne", _loaded(state, "keep"), _i64(0))
    return key, Val(group.kept.name, "ptr"), keep


def _i64(value: int) -> Val:
    return integer_literal(value, "i64")


PARAMETERS = ("ptr %group",)
"""Parameters of a program that may belong to a group."""


def record_lines() -> list[str]:
    """Lines at the entry of a range of programs."""
    kind = f"[{len(_FIELDS) - 1 + KEY_NUMBERS} x i64]"
    lines = [f"%group = alloca {kind}", f"store {kind} zeroinitializer, ptr %group"]
    return [*lines, *(f"%{name}.at = {_field(name)}" for name in _FIELDS if name)]
