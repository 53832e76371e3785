"""Lets programs that follow each other multiply at once, where they multiply by the same columns.

    program 0        rows   0 ...  31 of A      columns 0 ... 31 of B
    program 1        rows  32 ...  63           the same
    ...              what the groups of the tutorials' kernels, and x for rows, amount to

A product copies panels of B, for as many rows as its program has (`emit_memory_product.py`): for 32
rows the copies take as long as the multiplications on CPUs with tiles. So the first program of a
group multiplies all its rows, and leaves their sums in scratch memory that lasts from program to
program; the others find theirs there. Where the next group multiplies by the same columns, too, the
panels stay for it (`microkernel/tile_copies.py`).

    for each program of the range:                          the loop of `cpu_function.py`
        if it is in no group:
            ask it and the next ones for what they multiply: @program, which notes the addresses
            of its product in a record, and returns; those that follow on each other are a group
        call @program(..., record)
            if it is the first of its group:
                product(sums, a, b, strides, K, all rows of the group, columns)
            the rest of the loop, stores: each program its own

Programs have no order, so one may read its operands before another one ends; and in front of the
product there is nothing but scalars, so to ask a program has no effect. What is the same of a group
(columns, K, strides, no wrap, ...) is tested by the program, for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering, ProductGroup
from tilewright.backends.cpu.lower.products_from_memory import MemoryProduct
from tilewright.backends.cpu.lower.vector_access import Buffer
from tilewright.backends.cpu.microkernel import KEY_NUMBERS, kept_bytes
from tilewright.ir import Function, Op, Trait
from tilewright.ir.types import element_of, shape_of
from tilewright.llvm import Val, integer_literal
from tilewright.ops import AssumeOp, LoadOp

_MOST_ROWS = 256
"""By then copies of panels take a tenth of the time that AMX takes."""

_MOST_BYTES = 1 << 17
"""Of sums, which share the L2 cache with what is multiplied."""

_SHARED = ("a", "a_row", "b", "b_row", "depth", "columns")
"""Operands of a product that are the same in a group, but for A, which goes on."""

_FIELDS = ("place", "programs", "all_rows", "asked", "rows", *_SHARED, "", "", "keep", "key")
"""Of the record, 8 bytes each: which program of its group runs; how many they are, and their rows;
whether it is asked alone; what it answers, no rows where it does not fit. The shared operands are
compared as a vector of 8. Whether the next group is of the same columns; what is
kept (`KEY_NUMBERS`)."""

_SAME_COLUMNS = sum(1 << i for i, name in enumerate(_SHARED) if name not in ("a", "a_row"))
"""Of a vector of shared operands."""


def _field(name: str) -> str:
    """The address of a field of %group."""
    return f"getelementptr i64, ptr %group, i64 {_FIELDS.index(name)}"


def sums_of_group(state: CpuLowering, product: MemoryProduct) -> Buffer | None:
    """Where the sums of this program are, if it may be one of a group."""
    shape, element = shape_of(product.result.type), element_of(product.result.type)
    tile = shape[0] * shape[1] * product.spec.type.bytes
    most, spec = min(_MOST_ROWS // shape[0], _MOST_BYTES // tile), product.spec
    if spec.accumulate or not _may_be_asked(state, product.loop):
        return None
    if most < 2 and not spec.keeps:
        return None
    code, most = state.code, max(most, 1)
    all_of_them = state.scratch.allocate(code.name("sums"), most * tile)
    whole = replace(spec, m=most * spec.m)
    kept = state.scratch.allocate(code.name("kept"), kept_bytes(whole)) if whole.keeps else None
    row_bytes = spec.operand.bytes if spec.a_columns else 0
    state.group = ProductGroup(most, shape[0], row_bytes, all_of_them, kept)
    distance = code.binary("mul", _loaded(state, "place"), integer_literal(tile, "i64"))
    own = code.let_here(f"getelementptr i8, ptr {all_of_them.name}, {distance.typed}", "ptr")
    return Buffer(own, shape, (shape[1], 1), element, (all_of_them,))


def _may_be_asked(state: CpuLowering, loop: Op) -> bool:
    """Whether every program comes to a loop, having done nothing but to compute scalars."""
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
    """Go to one of two labels by whether a number is 0."""
    is_some = state.code.compare("icmp ne", number, _i64(0))
    state.code.line(f"br {is_some.typed}, label %{some}, label %{none}")


def answer_if_asked(state: CpuLowering, fits: Val, operands: Sequence[Val]) -> None:
    """Note the operands of the product, rows first; end the program here if it is asked for these
    alone."""
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


def multiply_group(state: CpuLowering, multiply: str, done: str) -> Val:
    """Go on at the label `done` if the sums are there; give the rows of the group."""
    _branch(state, _loaded(state, "place"), done, multiply)
    state.code.line(f"{multiply}:")
    return _loaded(state, "all_rows")


def end_group_unless(state: CpuLowering, right: Val) -> None:
    """Let this program be the only one of its group, unless the sums of all are right."""
    code, programs = state.code, _loaded(state, "programs")
    programs = code.select(right, programs, _i64(0))
    code.line(f"store {programs.typed}, {code.let_here(_field('programs'), 'ptr').typed}")


def kept_panels(state: CpuLowering) -> tuple[Val, ...]:
    """What the product of a group is told of panels of B: which there are, where they are, and
    whether to keep those that it copies."""
    code, group = state.code, state.group
    if group is None or group.kept is None:
        return ()
    key = code.let_here(_field("key"), "ptr")
    keep = code.compare("icmp ne", _loaded(state, "keep"), _i64(0))
    return key, Val(group.kept.name, "ptr"), keep


def _i64(value: int) -> Val:
    return integer_literal(value, "i64")


PARAMETERS = ("ptr %group",)
"""Of a program that may be one of a group."""


def record_lines() -> list[str]:
    """At the entry of a range of programs."""
    kind = f"[{len(_FIELDS) - 1 + KEY_NUMBERS} x i64]"
    lines = [f"%group = alloca {kind}", f"store {kind} zeroinitializer, ptr %group"]
    return [*lines, *(f"%{name}.at = {_field(name)}" for name in _FIELDS if name)]


def lines_before_program(group: ProductGroup, call: str) -> list[str]:
    """In the loop over programs: find the group that %pid0 begins, if it is in none, by a call."""
    return f"""
%own.place = load i64, ptr %place.at
%begins = icmp eq i64 %own.place, 0
br i1 %begins, label %begin.group, label %run
begin.group:
%row.left = sub i32 %grid0, %pid0
%row.wide = zext i32 %row.left to i64
%range.left = sub i64 %end, %id
%left = call i64 @llvm.umin.i64(i64 %row.wide, i64 %range.left)
%most = call i64 @llvm.umin.i64(i64 %left, i64 {group.most + (group.kept is not None)})
store i64 1, ptr %asked.at
br label %ask
ask:
%n = phi i64 [ 0, %begin.group ], [ %count, %further ]
%total = phi i64 [ 0, %begin.group ], [ %total.with, %further ]
%above = phi <8 x i64> [ zeroinitializer, %begin.group ], [ %there, %further ]
%n.narrow = trunc i64 %n to i32
%pid0.asked = add i32 %pid0, %n.narrow
{call.replace("%pid0,", "%pid0.asked,")}
%rows = load i64, ptr %rows.at
%a_row = load i64, ptr %a_row.at
%there = load <8 x i64>, ptr %a.at, align 8
%step = mul i64 {group.row_bytes or "%a_row"}, {group.rows}
%steps = insertelement <8 x i64> zeroinitializer, i64 %step, i64 0
%wanted = add <8 x i64> %above, %steps
%differs = icmp ne <8 x i64> %there, %wanted
%differences = bitcast <8 x i1> %differs to i8
%follows = icmp eq i8 %differences, 0
%is.first = icmp eq i64 %n, 0
%shares = or i1 %follows, %is.first
%some.rows = icmp ne i64 %rows, 0
%is.one = and i1 %shares, %some.rows
%has.room = icmp ult i64 %n, {group.most}
%belongs = and i1 %is.one, %has.room
%others = and i8 %differences, {_SAME_COLUMNS}
%same.columns = icmp eq i8 %others, 0
br i1 %belongs, label %further, label %found
further:
%count = add i64 %n, 1
%total.with = add i64 %total, %rows
%whole = icmp eq i64 %rows, {group.rows}
%more.left = icmp ult i64 %count, %most
%asks.on = and i1 %whole, %more.left
br i1 %asks.on, label %ask, label %found
found:
%of.group = phi i64 [ %n, %ask ], [ %count, %further ]
%all.rows = phi i64 [ %total, %ask ], [ %total.with, %further ]
%is.kept = phi i1 [ %same.columns, %ask ], [ false, %further ]
%keep = zext i1 %is.kept to i64
store i64 %keep, ptr %keep.at
store i64 0, ptr %asked.at
store i64 %of.group, ptr %programs.at
store i64 %all.rows, ptr %all_rows.at
br label %run
run:
""".strip().split("\n")


LINES_AFTER_PROGRAM = (
    "%programs.now = load i64, ptr %programs.at",
    "%place.run = load i64, ptr %place.at",
    "%place.next = add i64 %place.run, 1",
    "%group.goes.on = icmp ult i64 %place.next, %programs.now",
    "%place.now = select i1 %group.goes.on, i64 %place.next, i64 0",
    "store i64 %place.now, ptr %place.at",
)
"""In the loop over programs."""
