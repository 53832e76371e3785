"""Atomic operations: one instruction for each element, by its owner, or a few where there is none.

* Sums of f32 that nobody reads are added by two or four where they follow each other in memory.
* The extrema of floats are those of integers: of two numbers without sign bit the larger one has
  the larger bits, of two with it the smaller bits as unsigned integers.
* bf16 is added by compare and swap where the architecture has no addition.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.backends.nvidia.layouts.access_vectors import vector_length
from tilewright.backends.nvidia.lower.global_memory import both
from tilewright.backends.nvidia.lower.gpu_lowering import (
    BODY,
    GpuLowering,
    layout_of,
    lowering,
    memory_bits,
)
from tilewright.backends.nvidia.lower.register_packing import pack, unpack
from tilewright.ir import Value
from tilewright.ir.types import DType, TileType, dtype_of, f32
from tilewright.llvm import Val, integer_literal
from tilewright.ops import AtomicCasOp, AtomicOp

Atomic = Callable[[Val, Val, Val | None], Val]
_CONSTRAINTS = {"i64": "l", "i32": "r"}
"""Of registers for inline assembly, but for those of 16 bits, which are "h"."""
"""(pointer, operand, mask) -> what was there."""


@lowering(AtomicOp)
def _atomic(state: GpuLowering, op: AtomicOp) -> None:
    owner = _owner(state, op.pointer)
    masks = None if op.mask is None else state.registers_of(op.mask)
    length = _vector(state, op)
    if length > 1:
        _add_vectors(state, op, length, owner)
        return
    run = _operation(state, op)
    results: list[Val] = []
    for i, pointer in enumerate(state.registers_of(op.pointer)):
        mask = owner if masks is None else both(state, owner, masks[i])
        results.append(run(pointer, state.registers_of(op.operand)[i], mask))
    state.set_registers(op.result, results)  # of threads that hold copies, only the owner's


@lowering(AtomicCasOp)
def _compare_and_swap(state: GpuLowering, op: AtomicCasOp) -> None:
    element = dtype_of(op.type)
    owner = _owner(state, op.pointer)
    text = f"{_prefix(op)}.cas.b{memory_bits(element)}"
    columns = (state.registers_of(v) for v in (op.pointer, op.expected, op.new))
    results = [
        _instruction(state, text, pointer, [old, new], owner, element)
        for pointer, old, new in zip(*columns, strict=True)
    ]
    state.set_registers(op.result, results)


def _vector(state: GpuLowering, op: AtomicOp) -> int:
    """How many elements one instruction combines."""
    is_vector = op.is_reduction and op.kind == "add" and dtype_of(op.type) is f32
    if not is_vector or not state.arch.f32_vector_atomic_add:
        return 1
    return vector_length(state.alignments, op.pointer, op.mask)


def _add_vectors(state: GpuLowering, op: AtomicOp, length: int, owner: Val | None) -> None:
    """PTX ISA, "red", vec_32_bit."""
    pointers, values = state.registers_of(op.pointer), state.registers_of(op.operand)
    masks = None if op.mask is None else state.registers_of(op.mask)
    names = ", ".join(f"${i + 1}" for i in range(length))
    text = f"red.relaxed.{op.scope}.global.add.v{length}.f32 [$0], {{{names}}};"
    constraints = ",".join(["l", *["f"] * length])
    for start in range(0, len(pointers), length):
        mask = owner if masks is None else both(state, owner, masks[start])
        operands = [pointers[start], *values[start : start + length]]
        guard = "" if mask is None else f"@${length + 1} "
        predicate = "" if mask is None else ",b"
        guards = [] if mask is None else [mask]
        state.asm(guard + text, f"{constraints}{predicate},~{{memory}}", "void", *operands, *guards)
    state.set_registers(op.result, values)


def _owner(state: GpuLowering, pointer: Value) -> Val | None:
    return state.owner(layout_of(pointer) if isinstance(pointer.type, TileType) else None)


def _prefix(op: AtomicOp | AtomicCasOp) -> str:
    return f"atom.{op.order}.{op.scope}.global"


# ---- kinds --------------------------------------------------------------------------------------


def _operation(state: GpuLowering, op: AtomicOp) -> Atomic:
    element = dtype_of(op.type)
    if element.is_float and op.kind in ("max", "min"):
        # of 16 bits there is no integer extremum either
        extremum = _float_extremum if element.bits > 16 else _by_swapping
        return extremum(state, op, element)
    if op.kind in ("load", "store"):
        return _access(state, op, element)
    if element.name == "bf16" and not state.arch.bf16_atomic_add:
        return _by_swapping(state, op, element)
    text = f"{_prefix(op)}.{_name(op.kind, element)}"
    return lambda pointer, x, mask: _instruction(state, text, pointer, [x], mask, element)


def _name(kind: str, element: DType) -> str:
    """Operation and type as PTX writes them."""
    bits = memory_bits(element)
    if kind == "xchg":
        return f"exch.b{bits}"
    if kind in ("and", "or", "xor"):
        return f"{kind}.b{bits}"
    if element.is_float:
        return f"add.noftz.{element.name}" if bits == 16 else f"add.f{bits}"
    if kind == "add":
        # PTX has no add of s64; sums of u64 have the same bits.
        return f"add.{'s32' if element.name == 'i32' else f'u{bits}'}"
    return f"{kind}.{'s' if element.is_signed else 'u'}{bits}"


def _access(state: GpuLowering, op: AtomicOp, element: DType) -> Atomic:
    """A load or store of one number, ordered as an atomic is."""
    word = {"load": "ld", "store": "st"}[op.kind]
    text = f"{word}.{op.order}.{op.scope}.global.b{memory_bits(element)}"

    def run(pointer: Val, x: Val, mask: Val | None) -> Val:
        (packed,) = pack(state, [x], element)
        constraint = _CONSTRAINTS.get(packed.type, "h")
        guarded, guards = ("", []) if mask is None else ("@$2 ", [mask])
        predicate = ",b" if guards else ""
        if op.kind == "store":
            constraints = f"l,{constraint}{predicate},~{{memory}}"
            state.asm(f"{guarded}{text} [$0], $1;", constraints, "void", pointer, packed, *guards)
            return x
        constraints = f"={constraint},l{predicate},~{{memory}}"
        loaded = state.asm(f"{guarded}{text} $0, [$1];", constraints, packed.type, pointer, *guards)
        return unpack(state, [loaded], 1, element)[0]

    return run


def _float_extremum(state: GpuLowering, op: AtomicOp, element: DType) -> Atomic:
    """By signed integers for an operand without sign bit, else by unsigned ones, turned around."""
    code, bits = state.code, element.bits
    other = {"max": "min", "min": "max"}[op.kind]
    plain, turned = (f"{_prefix(op)}.{name}{bits}" for name in (f"{op.kind}.s", f"{other}.u"))
    # Infinities: LLVM writes constants of every float type as the bits of a double.
    weakest = "0xFFF0000000000000" if op.kind == "max" else "0x7FF0000000000000"

    def run(pointer: Val, x: Val, mask: Val | None) -> Val:
        number = code.intrinsic(
            f"{op.kind}num", x.type, x, Val(weakest, x.type, BODY)
        )  # a NaN loses
        as_integer = code.let_here(f"bitcast {number.typed} to i{bits}", f"i{bits}")
        negative = code.let_here(f"icmp slt i{bits} {as_integer}, 0", "i1")
        positive = code.let_here(f"xor i1 {negative}, true", "i1")
        # The predicates exclude each other: a thread executes one of the two.
        first = _packed_atomic(state, plain, pointer, as_integer, both(state, mask, positive))
        second = _packed_atomic(state, turned, pointer, as_integer, both(state, mask, negative))
        previous = code.let_here(f"select i1 {negative}, {second.typed}, {first.typed}", first.type)
        return code.let_here(f"bitcast {previous.typed} to {x.type}", x.type)

    return run


def _by_swapping(state: GpuLowering, op: AtomicOp, element: DType) -> Atomic:
    """A loop for each element: compute from what is there, and store if that is still there."""
    code = state.code
    swap = f"{_prefix(op)}.cas.b{memory_bits(element)}"

    def run(pointer: Val, x: Val, mask: Val | None) -> Val:
        bits = f"i{memory_bits(element)}"
        names = ("before", "first", "try", "again", "done")
        before, first, head, again, done = map(code.label, names)
        go = mask or integer_literal(1, "i1")
        for line in (f"br label %{before}", f"{before}:"):
            code.line(line)
        code.line(f"br i1 {go}, label %{first}, label %{done}")
        code.line(f"{first}:")
        # Only a guess: where it is stale, the swap fails and returns what is there.
        start = state.asm("ld.volatile.global.b16 $0, [$1];", "=h,l,~{memory}", bits, pointer)
        for line in (f"br label %{head}", f"{head}:"):
            code.line(line)
        previous = code.name("found")
        old = code.let_here(f"phi {bits} [ {start}, %{first} ], [ {previous}, %{again} ]", bits)
        number = code.let_here(f"bitcast {old.typed} to {x.type}", x.type)
        new = _combined(state, op.kind, number, x)
        as_integer = code.let_here(f"bitcast {new.typed} to {bits}", bits)
        got = _packed_atomic(state, swap, pointer, old, None, as_integer)
        # Gives the result the name under which the phi above already refers to it.
        code.line(f"{previous} = or {bits} {got}, 0")
        # Compares bits: a NaN that is there would never equal itself.
        same = code.let_here(f"icmp eq {bits} {previous}, {old}", "i1")
        code.line(f"br label %{again}")
        code.line(f"{again}:")
        code.line(f"br i1 {same}, label %{done}, label %{head}")
        code.line(f"{done}:")
        ways = f"[ 0, %{before} ], [ {previous}, %{again} ]"
        last = code.let_here(f"phi {bits} {ways}", bits)
        return code.let_here(f"bitcast {last.typed} to {x.type}", x.type)

    return run


def _combined(state: GpuLowering, kind: str, old: Val, x: Val) -> Val:
    """What a loop of swaps puts into memory; of an extremum, a NaN loses."""
    if kind == "add":
        return state.code.let_here(f"fadd {old.typed}, {x}", x.type)
    return state.code.intrinsic(f"{kind}num", x.type, old, x)


# ---- instructions -------------------------------------------------------------------------------


def _instruction(
    state: GpuLowering, text: str, pointer: Val, values: list[Val], mask: Val | None, element: DType
) -> Val:
    packed = [w for v in values for w in pack(state, [v], element)]
    got = _packed_atomic(state, text, pointer, packed[0], mask, *packed[1:])
    return unpack(state, [got], 1, element)[0]


def _packed_atomic(
    state: GpuLowering, text: str, pointer: Val, operand: Val, mask: Val | None, *more: Val
) -> Val:
    packed = [operand, *more]
    constraint = _CONSTRAINTS.get(operand.type, "h")
    names = ", ".join(f"${i + 2}" for i in range(len(packed)))
    instruction = f"{text} $0, [$1], {names};"
    constraints = ",".join([f"={constraint}", "l", *[constraint] * len(packed)])
    operands = [pointer, *packed]
    if mask is not None:
        instruction = f"@${len(packed) + 2} {instruction}"
        constraints, operands = f"{constraints},b", [*operands, mask]
    return state.asm(instruction, f"{constraints},~{{memory}}", operand.type, *operands)
