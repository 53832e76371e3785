"""Global memory: vector loads and stores under predicates."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.buffer_ops import AsyncCopyOp
from tilewright.backends.nvidia.layouts.access_vectors import copies_of_one, vector_length
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering, memory_bits
from tilewright.backends.nvidia.lower.register_packing import Element, pack, packed_type, unpack
from tilewright.ir.types import TileType, element_of
from tilewright.llvm import Val, integer_literal
from tilewright.ops import BarrierOp, LoadOp, StoreOp, pointee
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class VectorShape:
    """How one instruction moves consecutive elements.

    suffix: as in ".v4.b32"; registers: that it moves; type: LLVM type of one
    """

    suffix: str
    registers: int
    type: str

    @property
    def constraint(self) -> str:
        return {"i64": "l", "i32": "r"}.get(self.type, "h")


def vector_shape(element: Element, count: int) -> VectorShape:
    """The instruction for `count` elements."""
    bits = memory_bits(element)
    type_ = packed_type(element, count)
    width = int(type_[1:])
    registers = max(1, bits * count // width)
    suffix = f".v{registers}.b{width}" if registers > 1 else f".b{width}"
    return VectorShape(suffix, registers, type_)


_EVICTION = {"": "", "evict_first": ".L1::evict_first", "evict_last": ".L1::evict_last"}


def load_instruction(op: LoadOp, shape: VectorShape) -> str:
    """The instruction that loads one vector, as in `ld.global.v4.b32`."""
    # PTX permits one of .volatile, a cache operator and an eviction priority.
    order = ".nc" if op.read_only else ""
    kind = "ld.volatile.global" if op.volatile else f"ld.global{op.cache}{order}"
    hint = "" if op.volatile or op.cache else _EVICTION[op.eviction]
    return f"{kind}{hint}{shape.suffix}"


def store_instruction(op: StoreOp, shape: VectorShape) -> str:
    """The instruction that stores one vector."""
    return f"st.global{op.cache or _EVICTION[op.eviction]}{shape.suffix}"


def is_copied(load: LoadOp) -> bool:
    """Whether a load is an asynchronous copy to shared memory, which `async_copy` makes."""
    return any(isinstance(user, AsyncCopyOp) for user in load.result.uses)


@lowering(LoadOp)
def _load(state: GpuLowering, op: LoadOp) -> None:
    if is_copied(op):
        return
    element = element_of(op.type)
    length = vector_length(state.alignments, op.pointer, op.mask, state.arch.access_bytes)
    pointers = state.registers_of(op.pointer)
    masks = None if op.mask is None else state.registers_of(op.mask)
    others = None if op.other is None else state.registers_of(op.other)
    owner = state.owner(layout_of(op.pointer)) if op.by_owner else None
    copies = _copies(state, op, others) if length == 1 else 1
    results: list[Val] = []
    for start in range(0, len(pointers), length * copies):
        other = None if others is None else others[start : start + length]
        # Elements of a vector have one mask: `vector_length` sees to it.
        mask = owner if masks is None else both(state, owner, masks[start])
        loaded = _load_vector(state, op, pointers[start], mask, other, element, length)
        results += loaded * copies
    state.set_registers(op.result, results)


def _copies(state: GpuLowering, op: LoadOp, others: Sequence[Val] | None) -> int:
    """Consecutive registers that one load serves."""
    if op.volatile or (others is not None and len({other.text for other in others}) > 1):
        return 1
    return copies_of_one(state.alignments, op.pointer, op.mask)


def _load_vector(
    state: GpuLowering,
    op: LoadOp,
    pointer: Val,
    mask: Val | None,
    other: Sequence[Val] | None,
    element: Element,
    length: int,
) -> list[Val]:
    shape = vector_shape(element, length)
    # PTX has no 8-bit registers for inline assembly: bytes travel in 16-bit ones.
    register = "i16" if shape.type == "i8" else shape.type
    names = [f"${i}" for i in range(shape.registers)]
    target = f"{{{', '.join(names)}}}" if shape.registers > 1 else names[0]
    type_ = register if shape.registers == 1 else f"{{ {', '.join([register] * shape.registers)} }}"
    outputs = ",".join([f"={shape.constraint}"] * shape.registers)
    n = shape.registers
    # No ~{memory}: all global accesses are assembly, which `sideeffect` keeps in order.
    instruction = f"{load_instruction(op, shape)} {target}, [${n}];"
    if mask is None or mask.constant == 1:
        got = state.asm(instruction, f"{outputs},l", type_, pointer)
    else:
        fill = _fill(state, other, element, shape, register)
        # Outputs start as the masked-off values: a load whose predicate is false keeps them.
        ties = ",".join(str(i) for i in range(n))
        text = f"@${n + 1} {instruction}"
        got = state.asm(text, f"{outputs},l,b,{ties}", type_, pointer, mask, *fill)
    packed = fields(state, got, shape.registers, register)
    if shape.type == "i8":
        packed = [state.code.let_here(f"trunc i16 {w} to i8", "i8") for w in packed]
    return unpack(state, packed, length, element)


def fields(state: GpuLowering, got: Val, count: int, type_: str) -> list[Val]:
    """The registers that inline assembly returned: itself, or a struct of several."""
    if count == 1:
        return [got]
    return [state.code.let_here(f"extractvalue {got.type} {got}, {i}", type_) for i in range(count)]


def _fill(
    state: GpuLowering,
    other: Sequence[Val] | None,
    element: Element,
    shape: VectorShape,
    register: str,
) -> list[Val]:
    """Packed values of masked-off elements."""
    if other is None:
        return [integer_literal(0, register)] * shape.registers
    packed = pack(state, other, element)
    if shape.type == "i8":
        return [state.code.let_here(f"zext i8 {w} to i16", "i16") for w in packed]
    return packed


@lowering(StoreOp)
def _store(state: GpuLowering, op: StoreOp) -> None:
    """Only owners of an element write it; a scalar is written by thread 0."""
    element = element_of(pointee(op.pointer.type))
    is_tile = isinstance(op.pointer.type, TileType)
    owner = state.owner(layout_of(op.pointer) if is_tile else None)
    length = vector_length(state.alignments, op.pointer, op.mask, state.arch.access_bytes)
    pointers, values = state.registers_of(op.pointer), state.registers_of(op.stored)
    masks = None if op.mask is None else state.registers_of(op.mask)
    for start in range(0, len(pointers), length):
        mask = owner if masks is None else both(state, owner, masks[start])
        shape = vector_shape(element, length)
        packed = pack(state, values[start : start + length], element)
        if shape.type == "i8":
            packed = [state.code.let_here(f"zext i8 {w} to i16", "i16") for w in packed]
        names = [f"${i + 1}" for i in range(shape.registers)]
        source = f"{{{', '.join(names)}}}" if shape.registers > 1 else names[0]
        text = f"{store_instruction(op, shape)} [$0], {source};"
        constraints = ",".join(["l", *[shape.constraint] * shape.registers])
        operands = [pointers[start], *packed]
        if mask is not None:
            text, constraints = f"@${shape.registers + 1} {text}", f"{constraints},b"
            operands.append(mask)
        state.asm(text, f"{constraints},~{{memory}}", "void", *operands)


def both(state: GpuLowering, x: Val | None, y: Val) -> Val:
    """The conjunction of two conditions; None always holds."""
    if x is None:
        return y
    joined = state.code.binary("and", x, y)
    return Val(joined.text, "i1", BODY)


@lowering(BarrierOp)
def _barrier(state: GpuLowering, op: BarrierOp) -> None:
    """Barrier of all threads of the program, which may be a group of several.

    One warp needs no barrier of the block: `bar.warp.sync` orders memory among its threads, too
    (PTX ISA, "bar.warp.sync").
    """
    if state.warps == 1:
        state.asm("bar.warp.sync -1;", "~{memory}", "void")
        return
    if state.group is None:
        state.asm("bar.sync 0;", "~{memory}", "void")
        return
    # Barrier 0 is that of all threads.
    number = state.code.let_here(f"add i32 {state.group}, 1", "i32")
    state.asm(f"bar.sync $0, {32 * state.warps};", "r,~{memory}", "void", number)


def shared_store(state: GpuLowering, address: Val, register: Val, mask: Val | None) -> None:
    """Store one packed register, where the mask holds."""
    if register.type == "i8":
        # A b8 access takes its byte from a 16-bit register.
        register = state.code.let_here(f"zext i8 {register} to i16", "i16")
        suffix, constraint = "b8", "h"
    else:
        suffix = f"b{register.type[1:]}"
        constraint = {"i64": "l", "i32": "r"}.get(register.type, "h")
    text, constraints = f"st.shared.{suffix} [$0], $1;", f"r,{constraint}"
    operands = [address, register]
    if mask is not None:
        text, constraints, operands = f"@$2 {text}", f"{constraints},b", [*operands, mask]
    state.asm(text, f"{constraints},~{{memory}}", "void", *operands)


def shared_load(state: GpuLowering, address: Val, type_: str) -> Val:
    """Load one packed register of this type."""
    register = "i16" if type_ == "i8" else type_
    constraint = {"i64": "l", "i32": "r"}.get(register, "h")
    text = f"ld.shared.b{type_[1:]} $0, [$1];"
    got = state.asm(text, f"={constraint},r,~{{memory}}", register, address)
    if type_ == "i8":
        return state.code.let_here(f"trunc i16 {got} to i8", "i8")
    return got
