"""Layout conversions within warps: register renumbering or shuffles, as `layout.plan` decides.

Conversions through shared memory are ops of their own (lower_exchanges.py): here are the writes
and reads of tiles in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.global_memory import VectorShape, fields, vector_shape
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering, moving_bits
from tilewright.backends.nvidia.lower.lane_exchange import exchange_lanes
from tilewright.backends.nvidia.lower.register_packing import Element, pack, unpack
from tilewright.backends.nvidia.ops import ConvertOp, WarpBarrierOp
from tilewright.backends.nvidia.shared_memory.shared_accesses import conversion
from tilewright.ir.types import element_of
from tilewright.layout import (
    LANE,
    REGISTER,
    WARP,
    Identity,
    RegisterPermute,
    SharedAccess,
    SharedMemory,
)
from tilewright.llvm import Val


@lowering(ConvertOp)
def _convert(state: GpuLowering, op: ConvertOp) -> None:
    chosen = conversion(op, state.arch.stmatrix)
    source = state.registers_of(op.x)
    element = element_of(op.type)
    if isinstance(chosen, Identity):
        state.set_registers(op.result, source)
    elif isinstance(chosen, RegisterPermute):
        state.set_registers(op.result, [source[i] for i in chosen.sources])
    else:
        assert not isinstance(chosen, SharedMemory), f"{op} is to be expanded"
        state.set_registers(
            op.result,
            exchange_lanes(
                state, chosen.exchange, source, layout_of(op.result).in_size(REGISTER), element
            ),
        )


# ---- shared memory ------------------------------------------------------------------------------


@lowering(WarpBarrierOp)
def _warp_barrier(state: GpuLowering, op: WarpBarrierOp) -> None:
    state.asm("bar.warp.sync -1;", "~{memory}", "void")


def thread_address(state: GpuLowering, access: SharedAccess, element: Element, offset: int) -> Val:
    """Byte address in shared memory of the thread's part of an access (instruction 0)."""
    address = access.address
    key = (address, f"address {element} {offset}")
    cached = state.coordinate_cache.get(key)
    if cached is None:
        # At entry, as in `GpuLowering.thread_coords`.
        sections, state.code.sections = state.code.sections, [state.code.sections[0]]
        total = state.linear([b[0] * element.bytes for b in address.bases(LANE)], state.lane)
        warp = state.linear([b[0] * element.bytes for b in address.bases(WARP)], state.warp)
        joined = state.code.let_here(f"xor i32 {total}, {warp}", "i32")
        base = Val(joined.text, "i32", BODY)
        state.code.sections = sections
        cached = state.coordinate_cache[key] = [base]
    return cached[0]


def instruction_address(
    state: GpuLowering,
    access: SharedAccess,
    element: Element,
    offset: int,
    index: int,
    flipped: int = 0,
) -> Val:
    """Byte address of one instruction of an access; flipped: bits in which the part of the thread
    that is read differs from this one's."""
    own = thread_address(state, access, element, offset)
    if flipped:
        own = state.code.let_here(f"xor i32 {own}, {flipped}", "i32")
    step = access.address.apply(**{access.address.in_names[0]: index})[0] * element.bytes
    moving = moving_bits(access.address) * element.bytes | flipped
    moved = own
    if step & moving:
        moved = state.code.let_here(f"xor i32 {own}, {step & moving}", "i32")
    start = state.code.let_here(f"add i32 {state.shared}, {moved}", "i32")
    # Bits that no thread changes are added last: immediate offsets of one register.
    constant = offset + (step & ~moving)
    return state.code.let_here(f"add i32 {start}, {constant}", "i32") if constant else start


def shared_instruction(access: SharedAccess, element: Element, store: bool) -> str:
    """Instructions that move one group of registers to or from shared memory."""
    count, name = len(access.groups[0]), "st" if store else "ld"
    if access.kind == "vector":
        return f"{name}.shared{vector_shape(element, count).suffix}"
    matrices = count * 8 * element.bytes // 32
    trans = ".trans" if access.kind == "matrix_trans" else ""
    return f"{name}matrix.sync.aligned.m8n8.x{matrices}{trans}.shared.b16"


def write_shared(
    state: GpuLowering,
    access: SharedAccess,
    source: Sequence[Val],
    element: Element,
    offset: int,
    start: Val | None = None,
    mask: Val | None = None,
) -> None:
    """Store the registers of one side.

    start: of the buffer, if only known at run time, beside `offset`; mask: of the threads that
    store, which do so by vectors; None: all do
    """
    for index, group in enumerate(access.groups):
        values = [source[register] for register in group]
        address = instruction_address(state, access, element, offset, index)
        if start is not None:
            address = state.code.let_here(f"add i32 {address}, {start}", "i32")
        packed = pack(state, values, element)
        instruction = shared_instruction(access, element, store=True)
        if access.kind == "vector":
            shape = vector_shape(element, len(values))
            _store_vector(state, instruction, address, packed, shape, mask)
        else:
            _store_matrix(state, instruction, address, packed)


def _store_vector(
    state: GpuLowering,
    instruction: str,
    address: Val,
    packed: list[Val],
    shape: VectorShape,
    mask: Val | None,
) -> None:
    if shape.type == "i8":
        packed = [state.code.let_here(f"zext i8 {w} to i16", "i16") for w in packed]
    names = [f"${i + 1}" for i in range(shape.registers)]
    source = f"{{{', '.join(names)}}}" if shape.registers > 1 else names[0]
    constraints = ["r", *[shape.constraint] * shape.registers]
    guard, guards = ("", []) if mask is None else (f"@${shape.registers + 1} ", [mask])
    constraints = ",".join([*constraints, *["b"] * len(guards), "~{memory}"])
    text = f"{guard}{instruction} [$0], {source};"
    state.asm(text, constraints, "void", address, *packed, *guards)


def _store_matrix(state: GpuLowering, instruction: str, address: Val, packed: list[Val]) -> None:
    names = ", ".join(f"${i + 1}" for i in range(len(packed)))
    text = f"{instruction} [$0], {{{names}}};"
    constraints = ",".join(["r", *["r"] * len(packed), "~{memory}"])
    state.asm(text, constraints, "void", address, *packed)


def read_group(
    state: GpuLowering,
    access: SharedAccess,
    element: Element,
    start: Val,
    index: int,
    flipped: int = 0,
) -> list[Val]:
    """The registers of one instruction of an access to a buffer at offset `start`; flipped: see
    `instruction_address`."""
    address = instruction_address(state, access, element, 0, index, flipped)
    if start.text != "0":
        address = state.code.let_here(f"add i32 {address}, {start}", "i32")
    count = len(access.groups[index])
    if access.kind == "vector":
        packed = load_vector(state, address, element, count)
    else:
        packed = _load_matrix(state, access, address, element)
    return unpack(state, packed, count, element)


def load_vector(state: GpuLowering, address: Val, element: Element, count: int) -> list[Val]:
    """The packed registers of `count` consecutive elements in shared memory, by one instruction."""
    shape = vector_shape(element, count)
    register = "i16" if shape.type == "i8" else shape.type
    names = [f"${i}" for i in range(shape.registers)]
    target = f"{{{', '.join(names)}}}" if shape.registers > 1 else names[0]
    outputs = ",".join([f"={shape.constraint}"] * shape.registers)
    packed = _asm_results(
        state, f"ld.shared{shape.suffix} {target}, [${shape.registers}];",
        f"{outputs},r,~{{memory}}", register, shape.registers, address,
    )  # fmt: skip
    if shape.type == "i8":
        return [state.code.let_here(f"trunc i16 {w} to i8", "i8") for w in packed]
    return packed


def _load_matrix(
    state: GpuLowering, access: SharedAccess, address: Val, element: Element
) -> list[Val]:
    registers = access.bits // 32
    names = ", ".join(f"${i}" for i in range(registers))
    instruction = shared_instruction(access, element, store=False)
    text = f"{instruction} {{{names}}}, [${registers}];"
    outputs = ",".join(["=r"] * registers)
    return _asm_results(state, text, f"{outputs},r,~{{memory}}", "i32", registers, address)


def _asm_results(
    state: GpuLowering, text: str, constraints: str, register: str, count: int, *operands: Val
) -> list[Val]:
    type_ = register if count == 1 else f"{{ {', '.join([register] * count)} }}"
    got = state.asm(text, constraints, type_, *operands)
    return fields(state, got, count, register)
