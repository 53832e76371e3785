"""Atomic operations: one instruction for each element, by its owner, or a few where there is none.

* Additions to consecutive elements are one instruction (vector_atomics.py).
* Several instructions of a thread are relaxed, between one fence that releases and one that
  acquires; a result that nobody uses acquires nothing, as PTX's `red` has no such form.
* The extrema of floats are those of integers: of two numbers without sign bit the larger one has
  the larger bits, of two with it the smaller bits as unsigned integers.
* bf16 is added by compare and swap where the architecture has no addition.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.global_memory import both
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering, memory_bits
from tilewright.backends.nvidia.lower.register_packing import pack, unpack
from tilewright.backends.nvidia.lower.vector_atomics import add_vectors, elements_of_one
from tilewright.ir import Value
from tilewright.ir.types import DType, TileType, dtype_of
from tilewright.llvm import Val, integer_literal
from tilewright.ops import AtomicCasOp, AtomicOp

Atomic = Callable[[Val, Val, Val | None], Val]
_CONSTRAINTS = {"i64": "l", "i32": "r"}
"""Constraints of registers for inline assembly, but for those of 16 bits, which are "h"."""
"""(pointer, operand, mask) -> what was there."""


@lowering(AtomicOp)
def _atomic(state: GpuLowering, op: AtomicOp) -> None:
    owner = _owner(state, op.pointer)
    length = elements_of_one(state, op)
    count = len(state.registers_of(op.pointer))
    is_fenced = op.kind not in ("load", "store") and (length > 1 or count > 1)
    if is_fenced and op.order in ("release", "acq_rel"):
        _fence(state, op)
    if length > 1:
        # Only the owner's results are right, where several threads hold copies.
        results = add_vectors(state, op, length, owner)
    else:
        results = _one_by_one(state, op, owner, "relaxed" if is_fenced else op.order)
    if is_fenced and op.order in ("acquire", "acq_rel") and op.result.uses:
        _fence(state, op)
    state.set_registers(op.result, results)


def _fence(state: GpuLowering, op: AtomicOp) -> None:
    state.asm(f"fence.acq_rel.{op.scope};", "~{memory}", "void")


def _one_by_one(state: GpuLowering, op: AtomicOp, owner: Val | None, order: str) -> list[Val]:
    run = _operation(state, op, order)
    masks = None if op.mask is None else state.registers_of(op.mask)
    results: list[Val] = []
    for i, pointer in enumerate(state.registers_of(op.pointer)):
        mask = owner if masks is None else both(state, owner, masks[i])
        results.append(run(pointer, state.registers_of(op.operand)[i], mask))
    return results


@lowering(AtomicCasOp)
def _compare_and_swap(state: GpuLowering, op: AtomicCasOp) -> None:
    element = dtype_of(op.type)
    owner = _owner(state, op.pointer)
    text = f"{_prefix(op, op.order)}.cas.b{memory_bits(element)}"
    columns = (state.registers_of(v) for v in (op.pointer, op.expected, op.new))
    results = [
        _instruction(state, text, pointer, [old, new], owner, element)
        for pointer, old, new in zip(*columns, strict=True)
    ]
    state.set_registers(op.result, results)


def _owner(state: GpuLowering, pointer: Value) -> Val | None:
    return state.owner(layout_of(pointer) if isinstance(pointer.type, TileType) else None)


def _prefix(op: AtomicOp | AtomicCasOp, order: str) -> str:
    return f"atom.{order}.{op.scope}.global"


# ---- kinds --------------------------------------------------------------------------------------


def _operation(state: GpuLowering, op: AtomicOp, order: str) -> Atomic:
    """The instructions for one element. order: of those that read and write."""
    element = dtype_of(op.type)
    if element.is_float and op.kind in ("max", "min"):
        # of 16 bits there is no integer extremum either
        extremum = _float_extremum if element.bits > 16 else _by_swapping
        return extremum(state, op, element, order)
    if op.kind in ("load", "store"):
        return _access(state, op, element)
    if element.name == "bf16" and not state.arch.bf16_atomic_add:
        return _by_swapping(state, op, element, order)
    text = f"{_prefix(op, order)}.{_name(op.kind, element)}"
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
        # PTX has no add of s64; that of u64 gives the same bits.
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


def _float_extremum(state: GpuLowering, op: AtomicOp, element: DType, order: str) -> Atomic:
    """By signed integers for an operand without sign bit, else by unsigned ones, reversed."""
    code, bits = state.code, element.bits
    other = {"max": "min", "min": "max"}[op.kind]
    prefix = _prefix(op, order)
    plain, reversed_ = f"{prefix}.{op.kind}.s{bits}", f"{prefix}.{other}.u{bits}"
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
        second = _packed_atomic(state, reversed_, pointer, as_integer, both(state, mask, negative))
        previous = code.let_here(f"select i1 {negative}, {second.typed}, {first.typed}", first.type)
        return code.let_here(f"bitcast {previous.typed} to {x.type}", x.type)

    return run


def _by_swapping(state: GpuLowering, op: AtomicOp, element: DType, order: str) -> Atomic:
    """A compare-and-swap loop for each element."""
    code = state.code
    swap = f"{_prefix(op, order)}.cas.b{memory_bits(element)}"

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
    """The value that a compare-and-swap loop stores; a NaN loses against an extremum."""
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
