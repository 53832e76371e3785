"""Lets programs that follow each other multiply at once, where they multiply by the same columns.

    program 0        rows   0 ...  31 of A      columns 0 ... 31 of B
    program 1        rows  32 ...  63           the same
    ...              what the groups of the tutorials' kernels, and x for rows, amount to

A product copies panels of B, for as many rows as its program has (`emit_memory_product.py`): for 32
rows the copies take as long as the multiplications on CPUs with tiles. So the first program of a
group multiplies all its rows, and leaves their sums in scratch memory that lasts from program to
program; the others find theirs there.

    call @program(..., ptr %group)         with a record that says where in its group a program is
        ... addresses of the product, as ever
        if the record asks for these alone: write them there, return
        if the sums are not there yet:
            rows = call @rows_of_group     asks @program for what the next programs multiply
            product(sums, a, b, strides, K, rows, columns)
        the rest of the loop, stores: each program its own

Programs have no order, so one may read its operands before another one ends; and in front of the
product there is nothing but scalars, so to ask a program has no effect. What is the same of a group
(columns, K, strides, no wrap, ...) is tested by the program, for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering, ProductGroup
from tilewright.backends.cpu.lower.products_from_memory import MemoryProduct
from tilewright.backends.cpu.lower.vector_access import Buffer
from tilewright.ir import Function, Op, Trait
from tilewright.ir.types import element_of, shape_of
from tilewright.llvm import Val, integer_literal
from tilewright.ops import AssumeOp, LoadOp

_MOST_ROWS = 256
"""By then copies of panels take a tenth of the time that AMX takes."""

_MOST_BYTES = 1 << 17
"""Of sums, which share the L2 cache with what is multiplied."""

_FIELDS = ("place", "made", "asked", "a", "a_row", "b", "b_row", "depth", "rows", "columns")
"""Of the record, 8 bytes each: which program of its group runs; of how many the sums are there, 0
for none; whether it is asked alone; what it answers, no rows where it does not fit."""

_ANSWERS = _FIELDS[3:]

RECORD = f"[{len(_FIELDS)} x i64]"


def _field(name: str) -> str:
    """The address of a field of %group."""
    return f"getelementptr i64, ptr %group, i64 {_FIELDS.index(name)}"


def sums_of_group(state: CpuLowering, product: MemoryProduct) -> Buffer | None:
    """Where the sums of this program are, if it may be one of a group."""
    shape, element = shape_of(product.result.type), element_of(product.result.type)
    tile = shape[0] * shape[1] * product.spec.type.bytes
    most = min(_MOST_ROWS // shape[0], _MOST_BYTES // tile)
    if most < 2 or product.spec.accumulate or not _may_be_asked(state, product.loop):
        return None
    code = state.code
    all_of_them = state.scratch.allocate(code.name("sums"), most * tile)
    spec = product.spec
    row_bytes = spec.operand.bytes if spec.a_columns else 0
    state.group = ProductGroup(most, shape[0], row_bytes, all_of_them)
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
    """End the program here if it is asked for the operands of its product alone (`_ANSWERS`)."""
    code, asked = state.code, _loaded(state, "asked")
    answer, go_on = code.label("answer"), code.label("go.on")
    _branch(state, asked, answer, go_on)
    code.line(f"{answer}:")
    for name, value in zip(_ANSWERS, operands, strict=True):
        kept = code.select(fits, value, _i64(0)) if name == "rows" else value
        code.line(f"store {kept.typed}, ptr {code.let_here(_field(name), 'ptr')}")
    code.line("ret void")
    code.line(f"{go_on}:")


def multiply_group(state: CpuLowering, operands: Sequence[Val], multiply: str, done: str) -> Val:
    """Go on at the label `done` if the sums are there; give the rows of the group."""
    _branch(state, _loaded(state, "made"), done, multiply)
    state.code.line(f"{multiply}:")
    arguments = ", ".join([*state.signature, *(value.typed for value in operands)])
    return state.code.let_here(f"call i64 @rows_of_group({arguments})", "i64")


def _i64(value: int) -> Val:
    return integer_literal(value, "i64")


PARAMETERS = ("i32 %following", "ptr %group")
"""Of a program that may be one of a group: programs behind it along x that this thread runs, too,
and the record."""


def rows_of_group(state: CpuLowering, group: ProductGroup) -> str:
    """The function that finds the programs of a group: it gives their rows, notes their number."""
    kinds = ["ptr %a", "i64 %a_row", "ptr %b", "i64 %b_row", "i64 %depth", "i64 %rows"]
    parameters = ", ".join([*state.signature, *kinds, "i64 %columns"])
    asked = [p.replace("%pid0", "%x").replace("%following", "0") for p in state.signature]
    return f"""
define internal i64 @rows_of_group({parameters}) noinline {{
entry:
  %asked = {_field("asked")}
  %made = {_field("made")}
  store i64 1, ptr %asked
  %step = mul i64 {group.row_bytes or "%a_row"}, {group.rows}
  %most = call i32 @llvm.umin.i32(i32 %following, i32 {group.most - 1})
  br label %head
head:
  %n = phi i32 [ 0, %entry ], [ %count, %ask ]
  %total = phi i64 [ %rows, %entry ], [ %total.with, %ask ]
  %rows.above = phi i64 [ %rows, %entry ], [ %rows.there, %ask ]
  %a.above = phi ptr [ %a, %entry ], [ %a.wanted, %ask ]
  %count = add i32 %n, 1
  %whole = icmp eq i64 %rows.above, {group.rows}
  %more = icmp ult i32 %n, %most
  %goes.on = and i1 %whole, %more
  br i1 %goes.on, label %ask, label %done
ask:
  %x = add i32 %pid0, %count
  call void @program({", ".join(asked)})
  %rows.at = {_field("rows")}
  %rows.there = load i64, ptr %rows.at
  %some.rows = icmp ne i64 %rows.there, 0
  %a.wanted = getelementptr i8, ptr %a.above, i64 %step
{_comparisons()}
  %total.with = add i64 %total, %rows.there
  br i1 %belongs, label %head, label %done
done:
  %programs = zext i32 %count to i64
  store i64 0, ptr %asked
  store i64 %programs, ptr %made
  ret i64 %total
}}
"""


def _comparisons() -> str:
    """%belongs: whether a program has rows, follows on those above, and shares all else."""
    lines, so_far = list[str](), "%some.rows"
    shared = [name for name in _ANSWERS if name != "rows"]
    for name in shared:
        kind = "ptr" if name in ("a", "b") else "i64"
        both = "%belongs" if name == shared[-1] else f"%{name}.and.before"
        wanted = "%a.wanted" if name == "a" else f"%{name}"
        lines += [
            f"  %{name}.at = {_field(name)}",
            f"  %{name}.there = load {kind}, ptr %{name}.at",
            f"  %{name}.fits = icmp eq {kind} %{name}.there, {wanted}",
            f"  {both} = and i1 {so_far}, %{name}.fits",
        ]
        so_far = both
    return "\n".join(lines)


def around_programs() -> tuple[list[str], list[str], list[str]]:
    """Lines of the loop over programs: before and after each, and once before all."""
    record = [f"%group = alloca {RECORD}", f"store {RECORD} zeroinitializer, ptr %group",
              f"%group.place = {_field('place')}", f"%group.made = {_field('made')}"]  # fmt: skip
    before = [
        "%row.left = sub i32 %grid0, %x",
        "%range.left = sub i64 %end, %id",
        "%row.wide = zext i32 %row.left to i64",
        "%both.left = call i64 @llvm.umin.i64(i64 %row.wide, i64 %range.left)",
        "%left = trunc i64 %both.left to i32",
        "%following = sub i32 %left, 1",
    ]
    after = [
        "%group.at = load i64, ptr %group.place",
        "%made = load i64, ptr %group.made",
        "%place.next = add i64 %group.at, 1",
        "%group.goes.on = icmp ult i64 %place.next, %made",
        "%place.now = select i1 %group.goes.on, i64 %place.next, i64 0",
        "%made.now = select i1 %group.goes.on, i64 %made, i64 0",
        "store i64 %place.now, ptr %group.place",
        "store i64 %made.now, ptr %group.made",
    ]
    return before, after, record
