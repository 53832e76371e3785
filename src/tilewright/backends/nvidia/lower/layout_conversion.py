"""Layout conversion as `layout.plan` planned it: renaming, shuffles, or shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.lower.global_memory import fields, vector_shape
from tilewright.backends.nvidia.lower.gpu_state import BODY, State, layout_of, lowering
from tilewright.backends.nvidia.lower.register_packing import Element, pack, unpack
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.ir.types import element_of
from tilewright.layout import (
    LANE,
    WARP,
    ConversionPlan,
    Identity,
    LaneMap,
    RegisterPermute,
    SharedAccess,
    SharedMemory,
    Shuffles,
    plan,
)
from tilewright.llvm import Val, integer_literal


def conversion(op: ConvertOp, matrix_stores: bool) -> ConversionPlan:
    """The plan of one conversion."""
    source, target = layout_of(op.x), layout_of(op.result)
    return plan(source, target, 8 * element_of(op.type).bytes, matrix_stores=matrix_stores)


@lowering(ConvertOp)
def _convert(state: State, op: ConvertOp) -> None:
    chosen = conversion(op, state.arch.stmatrix)
    source = state.of(op.x)
    element = element_of(op.type)
    if isinstance(chosen, Identity):
        state.set(op.result, source)
    elif isinstance(chosen, RegisterPermute):
        state.set(op.result, [source[i] for i in chosen.sources])
    elif isinstance(chosen, SharedMemory):
        count = layout_of(op.result).in_size("register")
        through = _through_shared(state, chosen, source, element, count, state.offsets[op])
        state.set(op.result, through)
    else:
        state.set(op.result, _shuffle(state, chosen.exchange, op, element))


# ---- shared memory ------------------------------------------------------------------------------


def _through_shared(
    state: State,
    chosen: SharedMemory,
    source: Sequence[Val],
    element: Element,
    count: int,
    offset: int,
) -> list[Val]:
    results: dict[int, Val] = {}
    for number, (stored, loaded) in enumerate(chosen.passes):
        if number:
            state.barrier()
        write_shared(state, chosen.store, source, element, offset, stored)
        state.barrier()
        for register, value in read_shared(state, chosen.load, element, offset).items():
            results[register ^ loaded] = value
    return [results[register] for register in range(count)]


def thread_address(state: State, access: SharedAccess, element: Element, offset: int) -> Val:
    """Byte address in shared memory of the thread's part of an access (instruction 0)."""
    address = access.address
    key = (address, f"address {element} {offset}")
    found = state.places.get(key)
    if found is None:
        sections, state.code.sections = state.code.sections, [state.code.sections[0]]
        total = state.linear([b[0] * element.bytes for b in address.bases(LANE)], state.lane)
        warp = state.linear([b[0] * element.bytes for b in address.bases(WARP)], state.warp)
        joined = state.code.let_here(f"xor i32 {total}, {warp}", "i32")
        base = Val(joined.text, "i32", BODY)
        state.code.sections = sections
        found = state.places[key] = [base]
    return found[0]


def instruction_address(
    state: State, access: SharedAccess, element: Element, offset: int, index: int
) -> Val:
    """Byte address of one instruction of an access."""
    own = thread_address(state, access, element, offset)
    step = access.address.apply(**{access.address.in_names[0]: index})[0] * element.bytes
    moved = own
    if step:
        moving = 0
        for name in (LANE, WARP):
            for basis in access.address.bases(name):
                moving |= basis[0] * element.bytes
        instruction = "xor" if moving & step else "add nuw nsw"
        moved = state.code.let_here(f"{instruction} i32 {own}, {step}", "i32")
    start = state.code.let_here(f"add i32 {state.shared}, {moved}", "i32")
    if not offset:
        return start
    return state.code.let_here(f"add i32 {start}, {offset}", "i32")


def write_shared(
    state: State,
    access: SharedAccess,
    source: Sequence[Val],
    element: Element,
    offset: int,
    step: int = 0,
) -> None:
    """Store the registers of one side, each register number XOR `step`."""
    for index, group in enumerate(access.groups):
        values = [source[register ^ step] for register in group]
        address = instruction_address(state, access, element, offset, index)
        words = pack(state, values, element)
        if access.kind == "vector":
            _store_vector(state, address, words, element, len(values))
        else:
            _store_matrix(state, address, words, access.kind == "matrix_trans")


def _store_vector(
    state: State, address: Val, words: list[Val], element: Element, count: int
) -> None:
    shape = vector_shape(element, count)
    if shape.type == "i8":
        words = [state.code.let_here(f"zext i8 {w} to i16", "i16") for w in words]
    names = [f"${i + 1}" for i in range(shape.words)]
    source = f"{{{', '.join(names)}}}" if shape.words > 1 else names[0]
    constraints = ",".join(["r", *[shape.constraint] * shape.words, "~{memory}"])
    state.asm(f"st.shared{shape.suffix} [$0], {source};", constraints, "void", address, *words)


def _store_matrix(state: State, address: Val, words: list[Val], transposed: bool) -> None:
    names = ", ".join(f"${i + 1}" for i in range(len(words)))
    trans = ".trans" if transposed else ""
    text = f"stmatrix.sync.aligned.m8n8.x{len(words)}{trans}.shared.b16 [$0], {{{names}}};"
    constraints = ",".join(["r", *["r"] * len(words), "~{memory}"])
    state.asm(text, constraints, "void", address, *words)


def read_shared(
    state: State, access: SharedAccess, element: Element, offset: int
) -> dict[int, Val]:
    """Load what one side asks for: values by register number."""
    found: dict[int, Val] = {}
    for index, group in enumerate(access.groups):
        values = read_group(state, access, element, integer_literal(offset), index)
        found.update(zip(group, values, strict=True))
    return found


def read_group(
    state: State, access: SharedAccess, element: Element, start: Val, index: int
) -> list[Val]:
    """The registers of one instruction of an access to a buffer at offset `start`."""
    address = instruction_address(state, access, element, 0, index)
    if start.text != "0":
        address = state.code.let_here(f"add i32 {address}, {start}", "i32")
    count = len(access.groups[index])
    if access.kind == "vector":
        words = load_vector(state, address, element, count)
    else:
        words = _load_matrix(state, address, element, count, access.kind)
    return unpack(state, words, count, element)


def load_vector(state: State, address: Val, element: Element, count: int) -> list[Val]:
    """The words of `count` consecutive elements in shared memory, by one instruction."""
    shape = vector_shape(element, count)
    register = "i16" if shape.type == "i8" else shape.type
    names = [f"${i}" for i in range(shape.words)]
    target = f"{{{', '.join(names)}}}" if shape.words > 1 else names[0]
    outputs = ",".join([f"={shape.constraint}"] * shape.words)
    words = _asm_words(
        state, f"ld.shared{shape.suffix} {target}, [${shape.words}];",
        f"{outputs},r,~{{memory}}", register, shape.words, address,
    )  # fmt: skip
    if shape.type == "i8":
        return [state.code.let_here(f"trunc i16 {w} to i8", "i8") for w in words]
    return words


def _load_matrix(state: State, address: Val, element: Element, count: int, kind: str) -> list[Val]:
    words = count * 8 * element.bytes // 32
    names = ", ".join(f"${i}" for i in range(words))
    trans = ".trans" if kind == "matrix_trans" else ""
    text = f"ldmatrix.sync.aligned.m8n8.x{words}{trans}.shared.b16 {{{names}}}, [${words}];"
    outputs = ",".join(["=r"] * words)
    return _asm_words(state, text, f"{outputs},r,~{{memory}}", "i32", words, address)


def _asm_words(
    state: State, text: str, constraints: str, register: str, count: int, *operands: Val
) -> list[Val]:
    type_ = register if count == 1 else f"{{ {', '.join([register] * count)} }}"
    got = state.asm(text, constraints, type_, *operands)
    return fields(state, got, count, register)


# ---- shuffles -----------------------------------------------------------------------------------


def _shuffle(state: State, exchange: Shuffles, op: ConvertOp, element: Element) -> list[Val]:
    source = state.of(op.x)
    count = layout_of(op.result).in_size("register")
    received: dict[int, Val] = {}
    for entry in exchange.rounds:
        values = [_pick(state, entry.publish, source, e) for e in exchange.published]
        words = pack(state, values, element)
        if not entry.source.is_own_lane:
            lane = _lane_value(state, entry.source)
            words = [shuffle_word(state, "idx", w, lane) for w in words]
        arrived = unpack(state, words, len(values), element)
        _deliver(state, entry.receive, exchange.received, arrived, received)
    return [received[register] for register in range(count)]


def shuffle_word(state: State, mode: str, word: Val, lane: Val) -> Val:
    """Exchange one word of 32 or 64 bits (narrower ones travel widened) between lanes."""
    code = state.code
    if word.type == "i64":
        low = code.let_here(f"trunc i64 {word} to i32", "i32")
        shifted = code.let_here(f"lshr i64 {word}, 32", "i64")
        high = code.let_here(f"trunc i64 {shifted} to i32", "i32")
        parts = [shuffle_word(state, mode, part, lane) for part in (low, high)]
        wide = [code.let_here(f"zext i32 {p} to i64", "i64") for p in parts]
        top = code.let_here(f"shl i64 {wide[1]}, 32", "i64")
        return code.let_here(f"or i64 {top}, {wide[0]}", "i64")
    if word.type != "i32":
        wide_word = code.let_here(f"zext {word.typed} to i32", "i32")
        moved = shuffle_word(state, mode, wide_word, lane)
        return code.let_here(f"trunc i32 {moved} to {word.type}", word.type)
    text = f"shfl.sync.{mode}.b32 $0, $1, $2, 31, -1;"
    return state.asm(text, "=r,r,r", "i32", word, lane)


def _lane_value(state: State, entry: LaneMap) -> Val:
    value = state.linear(list(entry.bases), state.lane)
    if entry.constant:
        return state.code.let_here(f"xor i32 {value}, {entry.constant}", "i32")
    return value


def _pick(state: State, publish: LaneMap, source: Sequence[Val], extra: int) -> Val:
    """source[publish(lane) ^ extra]: a tree of selects over the bits that the lane decides."""
    return _select_tree(state, publish, source, publish.constant ^ extra, 0)


def _select_tree(state: State, entry: LaneMap, source: Sequence[Val], number: int, bit: int) -> Val:
    while bit < len(entry.bases) and entry.bases[bit] == 0:
        bit += 1
    if bit == len(entry.bases):
        return source[number]
    without = _select_tree(state, entry, source, number, bit + 1)
    with_bit = _select_tree(state, entry, source, number ^ entry.bases[bit], bit + 1)
    return _select_bit(state, bit, with_bit, without)


def _select_bit(state: State, bit: int, when_set: Val, when_clear: Val) -> Val:
    if when_set.text == when_clear.text:
        return when_set
    masked = state.code.let_here(f"and i32 {state.lane}, {1 << bit}", "i32")
    test = state.code.let_here(f"icmp ne i32 {masked}, 0", "i1")
    text = f"select i1 {test}, {when_set.typed}, {when_clear.typed}"
    return state.code.let_here(text, when_set.type)


def _deliver(
    state: State,
    receive: LaneMap,
    extras: Sequence[int],
    arrived: Sequence[Val],
    received: dict[int, Val],
) -> None:
    """received[receive(lane) ^ extra] = value, which lanes decide."""
    reachable = _span(receive.bases)
    for value, extra in zip(arrived, extras, strict=True):
        for delta in reachable:
            number = receive.constant ^ extra ^ delta
            old = received.get(number)
            if receive.is_constant or old is None:
                received[number] = value
                continue
            received[number] = _select_where(state, receive, delta, value, old)


def _span(bases: Sequence[int]) -> list[int]:
    found = {0}
    for basis in bases:
        found |= {n ^ basis for n in found}
    return sorted(found)


def _select_where(state: State, entry: LaneMap, delta: int, value: Val, old: Val) -> Val:
    """`value` in the lanes whose register differs from the constant by `delta`, else `old`."""
    moved = state.linear(list(entry.bases), state.lane)
    test = state.code.let_here(f"icmp eq i32 {moved}, {delta}", "i1")
    return state.code.let_here(f"select i1 {test}, {value.typed}, {old.typed}", value.type)


__all__ = ["conversion", "load_vector", "read_group", "read_shared", "shuffle_word", "write_shared"]
