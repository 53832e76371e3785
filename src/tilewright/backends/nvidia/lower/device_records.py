"""Assertions and prints: code that writes the records of `message_records.py`."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.device_messages import packed
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering
from tilewright.backends.nvidia.message_records import (
    FAILURE,
    FAILURE_BYTES,
    HEAD_BYTES,
    HOST_ADDRESS,
    PRINTS,
    RECORD_BYTES,
    RECORDS,
    STOPS,
    PrintedText,
)
from tilewright.ir import Value
from tilewright.ir.types import DType, TileType, element_of, shape_of
from tilewright.llvm import Val, integer_literal
from tilewright.ops import AssertOp, PrintOp, operand_text, printed_kind
from tilewright.support.printed_lines import PRINT_KINDS

_NOWHERE = integer_literal(-1)

_UNLIKELY = '!0 = !{!"branch_weights", i32 1, i32 1000000}'
"""Weights of a branch that is hardly ever taken: its code is placed last."""
_WARP_VOTE = "vote.sync.any.pred $0, $1, 0xffffffff;"
"""A vote of the warp costs less than a barrier, for whose result each warp waits."""


def _memory(state: GpuLowering, name: str, size: int) -> Val:
    line = f"@{name} = addrspace(1) global [{size} x i8] zeroinitializer, align 16"
    if line not in state.module.globals:
        state.module.globals.append(line)
    return Val(f"@{name}", "ptr addrspace(1)", BODY)


def _index(state: GpuLowering, value: Value, register: int) -> list[Val]:
    """Coordinates of a register's element, the first three; -1 for dims that there are not."""
    if not isinstance(value.type, TileType):
        return [_NOWHERE] * 3
    # Records have room for three.
    rank = min(3, len(shape_of(value.type)))
    coords = [state.coordinate(layout_of(value), dim, register) for dim in range(rank)]
    return coords + [_NOWHERE] * (3 - rank)


# ---- assertions ---------------------------------------------------------------------------------


@lowering(AssertOp)
def _assert(state: GpuLowering, op: AssertOp) -> None:
    """Threads agree whether one fails; if so, a failing one writes the record, and all return."""
    code = state.code
    failed, index = _first_failure(state, op)
    vote = "bar.red.or.pred $0, 0, $1;" if state.warps_meet else _WARP_VOTE
    anywhere = state.asm(vote, "=b,b,~{memory}", "i1", failed)
    stop, go = code.label("failed"), code.label("holds")
    if _UNLIKELY not in state.module.footer:
        state.module.footer.append(_UNLIKELY)
    code.line(f"br i1 {anywhere}, label %{stop}, label %{go}, !prof !0")
    code.line(f"{stop}:")
    number = len(state.asserts)
    state.asserts.append(packed(op.message, op.loc))
    _record_failure(state, failed, [integer_literal(number), *map(state.program, range(3)), *index])
    # All threads that others wait for come here together.
    code.line("ret void")
    code.line(f"{go}:")


def _first_failure(state: GpuLowering, check: AssertOp) -> tuple[Val, list[Val]]:
    """Whether a register of this thread fails, and the index of the first that does."""
    code, failed = state.code, integer_literal(0, "i1")
    index = [_NOWHERE] * 3
    masks = None if check.mask is None else state.registers_of(check.mask)
    conditions = state.registers_of(check.condition)
    # From the last one down: the selects of earlier registers come later and overrule.
    for r in reversed(range(len(conditions))):
        bad = code.let_here(f"xor i1 {conditions[r]}, true", "i1")
        if masks is not None:
            bad = code.let_here(f"and i1 {bad}, {masks[r]}", "i1")
        failed = code.let_here(f"or i1 {failed}, {bad}", "i1")
        here = _index(state, check.condition, r)
        index = [
            old
            if new is _NOWHERE
            else code.let_here(f"select i1 {bad}, i32 {new}, i32 {old}", "i32")
            for new, old in zip(here, index, strict=True)
        ]
    return failed, index


def _record_failure(state: GpuLowering, failed: Val, words: Sequence[Val]) -> None:
    """The first thread of all that fails on the device writes; later ones are dropped."""
    code, memory = state.code, _memory(state, FAILURE, FAILURE_BYTES)
    text = "@$3 atom.relaxed.gpu.global.cas.b32 $0, [$1], 0, $2;"
    constraints = "=r,l,r,b,0,~{memory}"
    one = integer_literal(1)
    # The result starts as 1: threads that do not fail must not look like the first.
    before = state.asm(text, constraints, "i32", memory, one, failed, one)
    first = code.let_here(f"icmp eq i32 {before}, 0", "i1")
    mine = code.let_here(f"and i1 {first}, {failed}", "i1")
    place = _at(state, memory, HOST_ADDRESS)
    record = state.asm("ld.global.b64 $0, [$1];", "=l,l,~{memory}", "i64", place)
    is_read = code.let_here(f"icmp ne i64 {record}, 0", "i1")
    writes = code.let_here(f"and i1 {mine}, {is_read}", "i1")
    start = code.let_here(f"inttoptr i64 {record} to ptr addrspace(1)", "ptr addrspace(1)")
    store = "@$2 st.global.b32 [$0], $1;"

    def write(offset: int, word: Val) -> None:
        at = _at(state, start, offset)
        state.asm(store, "l,r,b,~{memory}", "void", at, word, writes)

    for number, word in enumerate(words, 1):
        write(4 * number, word)
    # Visible to the host before the count, and before a trap.
    state.asm("fence.acq_rel.sys;", "~{memory}", "void")
    write(0, one)
    state.asm("fence.acq_rel.sys;", "~{memory}", "void")
    flag = _at(state, start, STOPS)
    text = "@$2 ld.global.b32 $0, [$1];"
    stops = state.asm(text, "=r,l,b,0,~{memory}", "i32", flag, is_read, one)
    traps = code.let_here(f"icmp ne i32 {stops}, 0", "i1")
    traps = code.let_here(f"and i1 {traps}, {mine}", "i1")
    state.asm("@$0 trap;", "b,~{memory}", "void", traps)


def _at(state: GpuLowering, start: Val, offset: int) -> Val:
    text = f"getelementptr i8, ptr addrspace(1) {start}, i64 {offset}"
    return state.code.let_here(text, "ptr addrspace(1)")


# ---- prints -------------------------------------------------------------------------------------


@lowering(PrintOp)
def _print(state: GpuLowering, op: PrintOp) -> None:
    order = _count(state)
    extents = list(op.extents)
    for number, arg in enumerate(op.args):
        kind = PRINT_KINDS.index(printed_kind(arg))
        text = PrintedText(operand_text(op.prefix, op.args, number), kind, op.hex)
        owner = state.owner(layout_of(arg) if isinstance(arg.type, TileType) else None)
        rank = len(shape_of(arg.type)) if op.extents else 0
        within, extents = extents[:rank], extents[rank:]
        for r, value in enumerate(state.registers_of(arg)):
            mine = _inside(state, arg, r, within, owner)
            _record(state, text, order, _bits(state, value, arg), _index(state, arg, r), mine)
    if not op.args:
        text = PrintedText(op.prefix, PRINT_KINDS.index("text"), False)
        zero = integer_literal(0, "i64")
        _record(state, text, order, zero, [_NOWHERE] * 3, state.owner(None))


def _inside(
    state: GpuLowering, value: Value, register: int, extents: list[int], owner: Val | None
) -> Val | None:
    """Whether the thread prints a register: it owns the element, which is no padding."""
    for dim, extent in enumerate(extents):
        if extent == shape_of(value.type)[dim]:
            continue
        coordinate = state.coordinate(layout_of(value), dim, register)
        below = state.code.let_here(f"icmp slt i32 {coordinate}, {extent}", "i1")
        owner = below if owner is None else state.code.let_here(f"and i1 {owner}, {below}", "i1")
    return owner


def _count(state: GpuLowering) -> Val:
    """How many prints the thread made before; all threads of a program count alike."""
    # In memory, not in registers: prints may stand in branches and loops.
    if "%printed" not in state.entry:
        state.entry["%printed"] = ["%printed = alloca i32", "store i32 0, ptr %printed"]
    before = state.code.let_here("load i32, ptr %printed", "i32")
    after = state.code.let_here(f"add i32 {before}, 1", "i32")
    state.code.line(f"store i32 {after}, ptr %printed")
    return before


def _bits(state: GpuLowering, value: Val, source: Value) -> Val:
    """An element widened to 64 bits: integers extended, floats as the bits of a double."""
    code, element = state.code, element_of(source.type)
    if not isinstance(element, DType):
        return code.let_here(f"ptrtoint {value.typed} to i64", "i64")
    if element.is_float:
        wide = value
        if value.type != "double":
            wide = code.let_here(f"fpext {value.typed} to double", "double")
        return code.let_here(f"bitcast double {wide} to i64", "i64")
    if value.type == "i64":
        return value
    return code.let_here(f"{'sext' if element.is_signed else 'zext'} {value.typed} to i64", "i64")


def _record(
    state: GpuLowering,
    text: PrintedText,
    order: Val,
    bits: Val,
    index: list[Val],
    owner: Val | None,
) -> None:
    """Take the next record and fill it, if there is one left."""
    code = state.code
    if text not in state.prints:
        state.prints.append(text)
    number = integer_literal(state.prints.index(text))
    memory = _memory(state, PRINTS, HEAD_BYTES + RECORDS * RECORD_BYTES)
    mine = owner or integer_literal(1, "i1")
    # Counts records that do not fit, too: the host reports how many were dropped.
    slot = state.asm(
        "@$3 atom.relaxed.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r,b,0,~{memory}", "i32",
        memory, integer_literal(1), mine, integer_literal(0),
    )  # fmt: skip
    fits = code.let_here(f"icmp ult i32 {slot}, {RECORDS}", "i1")
    taken = code.let_here(f"and i1 {fits}, {mine}", "i1")
    wide = code.let_here(f"zext i32 {slot} to i64", "i64")
    offset = code.let_here(f"mul i64 {wide}, {RECORD_BYTES}", "i64")
    start = code.let_here(f"add i64 {offset}, {HEAD_BYTES}", "i64")
    low = code.let_here(f"trunc i64 {bits} to i32", "i32")
    shifted = code.let_here(f"lshr i64 {bits}, 32", "i64")
    high = code.let_here(f"trunc i64 {shifted} to i32", "i32")
    # 12 words, so that three vector stores write a record.
    pad = integer_literal(0)
    words = [low, high, number, order, *map(state.program, range(3)), *index, pad, pad]
    for i in range(0, len(words), 4):
        at = code.let_here(f"add i64 {start}, {4 * i}", "i64")
        address = code.let_here(
            f"getelementptr i8, ptr addrspace(1) {memory}, i64 {at}", "ptr addrspace(1)"
        )
        four = words[i : i + 4]
        text_ = "@$5 st.global.v4.b32 [$0], {$1, $2, $3, $4};"
        state.asm(text_, "l,r,r,r,r,b,~{memory}", "void", address, *four, taken)
