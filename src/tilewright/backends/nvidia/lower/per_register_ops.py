"""Ops that work register by register: arithmetic, index functions, shape ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache, partial

from tilewright.analysis import Stride, strides_of
from tilewright.backends.nvidia.layouts.layout_propagation import registers_between
from tilewright.backends.nvidia.layouts.tile_layout import layout_of, register_count
from tilewright.backends.nvidia.lower.float_quotient import is_approximate, quotient, quotients
from tilewright.backends.nvidia.lower.gpu_lowering import (
    BODY,
    GpuLowering,
    in_body,
    lowering,
    moving_bits,
)
from tilewright.backends.nvidia.lower.integer_division import divide
from tilewright.backends.nvidia.lower.literal_folding import folded
from tilewright.backends.nvidia.lower.packed_arithmetic import is_packed, lower_packed
from tilewright.ir import Op
from tilewright.ir.types import (
    DType,
    PointerType,
    TileType,
    dtype_of,
    element_of,
    f32,
    shape_of,
    u8,
)
from tilewright.layout import REGISTER, LinearLayout
from tilewright.llvm import (
    Code,
    Val,
    constant,
    integer_literal,
    is_saturating,
    llvm_type,
    lower_elementwise,
)
from tilewright.ops import (
    BroadcastOp,
    CastOp,
    CatOp,
    ConstantOp,
    DivOp,
    ExpandDimsOp,
    HintOp,
    ItemOp,
    JoinOp,
    MulHighOp,
    MulOp,
    NumProgramsOp,
    OffsetOp,
    ProgramIdOp,
    RangeOp,
    ReshapeOp,
    SplatOp,
    SplitOp,
    TransposeOp,
)
from tilewright.support import attribute_late
from tilewright.support.data_class import dataclass
from tilewright.transforms.expand import float_bits


def lower_by_register(state: GpuLowering, op: Op) -> None:
    """An element-wise op: the same instruction for each register; equal operands compute once."""
    if isinstance(op, DivOp) and is_approximate(op):
        state.set_registers(op.result, quotients(state, op))
        return
    if is_packed(state, op):
        lower_packed(state, op, lower_one)
        return
    columns = [state.registers_of(v) for v in op.operands]
    emitted: dict[tuple[str, ...] | int, Val] = state.emitted_of(op)
    runs = state.equal_registers(op.results[0])
    results: list[Val] = []
    for i, row in enumerate(zip(*columns, strict=True)):
        key = tuple(v.text for v in row) if runs is None else runs[i]
        if key not in emitted:
            emitted[key] = lower_one(state, op, list(row))
        results.append(emitted[key])
    state.set_registers(op.results[0], results)


def lower_one(state: GpuLowering, op: Op, operands: list[Val]) -> Val:
    """One element of an element-wise op."""
    known = folded(op, operands)
    if known is not None:
        return known
    if isinstance(op, CastOp) and is_saturating(op):
        return _as_integer(state, op, operands[0])
    if isinstance(op, MulOp | MulHighOp) and _is_half_of_wide_mul(op):
        return _half_of_wide_mul(state, op, operands)
    special = _APPROXIMATE.get(str(op.attrs.get("function"))) if op.opcode == "arith.math" else None
    if special is not None and dtype_of(op.results[0].type).name == "f32":
        return state.pure_asm(special, "=f,f", "float", *operands)
    if isinstance(op, DivOp) and is_approximate(op):
        return quotient(state, op.rounding, operands[0], operands[1])
    if isinstance(op, DivOp) and dtype_of(op.result.type).is_integer:
        return divide(state, op, operands)
    if op.opcode == "arith.rare":
        return _rare(state, op, operands)
    return in_body(lower_elementwise(state.code, op, operands))


_FLOAT_REGISTERS = {
    "f16": ("h", "i16"), "bf16": ("h", "i16"), "f32": ("f", "float"), "f64": ("d", "double"),
}  # fmt: skip


def _as_integer(state: GpuLowering, op: CastOp, x: Val) -> Val:
    """A float as an integer. The instruction saturates; LLVM, which emits it too, leaves what is
    out of range open, and has no bytes: it cuts numbers of 16 bits."""
    source, target = dtype_of(op.x.type), dtype_of(op.type)
    if source.name == "bf16" and not (state.arch.bf16_arithmetic and target.bits > 8):
        x, source = state.code.let_here(f"fpext {x.typed} to float", "float"), f32
    constraint, type_ = _FLOAT_REGISTERS[source.name]
    if source.bits == 16:
        x = state.code.let_here(f"bitcast {x.typed} to i16", type_)
    # A byte in 32 bits: in 16, the assembler extends its sign once more.
    register, bits = {64: ("l", 64), 16: ("h", 16)}.get(target.bits, ("r", 32))
    kind = f"{'s' if target.is_signed else 'u'}{target.bits}"
    text = f"cvt.rzi.{kind}.{source.name} $0, $1;"
    if target.bits == bits:
        return state.pure_asm(text, f"={register},{constraint}", f"i{bits}", x)
    # LLVM would mask what it extends again.
    limits = f"range(i{bits} {target.min_int}, {target.max_int + 1})"
    call = f'call {limits} i{bits} asm "{text}", "={register},{constraint}"({x.typed})'
    found = state.code.let_here(call, f"i{bits}")
    return state.code.let_here(f"trunc {found.typed} to {llvm_type(target)}", llvm_type(target))


def _rare(state: GpuLowering, op: Op, operands: list[Val]) -> Val:
    # The slow form takes the hardware's functions as well.
    lower_rare = attribute_late("tilewright.transforms.expand.rare_branch:lower_rare")
    emit = partial(_lower_inner, state)
    return in_body(lower_rare(state.code, op, operands, emit))


def _lower_inner(state: GpuLowering, _code: Code, op: Op, operands: list[Val]) -> Val:
    return lower_one(state, op, operands)


def _is_half_of_wide_mul(op: MulOp | MulHighOp) -> bool:
    """Whether both halves of the 64-bit result of a multiplication are used."""
    other = MulOp if isinstance(op, MulHighOp) else MulHighOp
    return dtype_of(op.type).name == "u32" and any(
        isinstance(use, other) and {use.lhs, use.rhs} == {op.lhs, op.rhs} and use.result.uses
        for use in op.rhs.uses
    )


def _half_of_wide_mul(state: GpuLowering, op: MulOp | MulHighOp, operands: list[Val]) -> Val:
    """One instruction for both halves, as in random numbers; LLVM merges two equal ones.
    Two instructions would take half as long again."""
    operands = sorted(operands, key=lambda value: value.text)
    whole = state.pure_asm("mul.wide.u32 $0, $1, $2;", "=l,r,r", "i64", *operands)
    if isinstance(op, MulHighOp):
        whole = state.code.let_here(f"lshr i64 {whole}, 32", "i64")
    return state.code.let_here(f"trunc i64 {whole} to i32", "i32")


_APPROXIMATE = {
    "exp2": "ex2.approx.ftz.f32 $0, $1;",
    "sqrt": "sqrt.approx.ftz.f32 $0, $1;",
    "rsqrt": "rsqrt.approx.ftz.f32 $0, $1;",
    "fast_log2": "lg2.approx.ftz.f32 $0, $1;",
    "fast_sin": "sin.approx.ftz.f32 $0, $1;",
    "fast_cos": "cos.approx.ftz.f32 $0, $1;",
    "fast_tanh": "tanh.approx.f32 $0, $1;",
}
"""The hardware's own functions (PTX ISA 9.7.3).

Subnormal arguments and results are 0, as in Triton: one instruction instead of four or five.
"""


@lowering(ConstantOp)
def _constant(state: GpuLowering, op: ConstantOp) -> None:
    element = element_of(op.results[0].type)
    number = op.value
    if isinstance(element, DType) and element.is_fp8:
        # LLVM has no fp8: registers hold the bits.
        element, number = u8, float_bits(number, element)
    if isinstance(element, PointerType):
        value = Val(f"inttoptr (i64 {int(number)} to ptr)" if number else "null", "ptr", BODY)
    else:
        literal = constant(number, element)
        value = Val(literal.text, literal.type, BODY)
    state.set_registers(op.results[0], [value] * register_count(op.results[0]))


@lowering(RangeOp)
def _range(state: GpuLowering, op: RangeOp) -> None:
    layout, start = layout_of(op.results[0]), op.start
    coordinates = [state.coordinate(layout, 0, r) for r in range(layout.in_size(REGISTER))]
    if start:
        coordinates = [state.code.let_here(f"add nsw i32 {p}, {start}", "i32") for p in coordinates]
    state.set_registers(op.results[0], coordinates)


@lowering(SplatOp)
def _splat(state: GpuLowering, op: SplatOp) -> None:
    state.set_registers(
        op.results[0], [state.scalar(op.operands[0])] * register_count(op.results[0])
    )


@lowering(HintOp)
def _hint(state: GpuLowering, op: HintOp) -> None:
    state.set_registers(op.results[0], state.registers_of(op.operands[0]))


@lowering(ItemOp)
def _item(state: GpuLowering, op: ItemOp) -> None:
    # A tile of one element: every register of every thread has it.
    state.set_registers(op.results[0], [state.registers_of(op.operands[0])[0]])


@lowering(OffsetOp)
def _offset(state: GpuLowering, op: OffsetOp) -> None:
    element = element_of(op.results[0].type)
    assert isinstance(element, PointerType)
    memory = "i8" if element.element.is_bool else llvm_type(element.element)
    signed = dtype_of(op.operands[1].type).is_signed
    strides, places = _places_by_base(state, op, element.element.bytes)
    emitted: dict[tuple[str, str], Val] = state.emitted_of(op)
    bases: dict[int, _Base] = state.emitted_of(op)
    results: list[Val] = []
    for number, (pointer, offset) in enumerate(
        zip(state.registers_of(op.operands[0]), state.registers_of(op.operands[1]), strict=True)
    ):
        key = pointer.text, offset.text
        if key not in emitted:
            group, place = places[number]
            if group in bases:
                emitted[key] = bases[group].at(state, place)
            else:
                # Not inbounds: elements that are masked off may point anywhere.
                address = f"{memory}, ptr {pointer}, i64 {_wide(state, offset, signed)}"
                emitted[key] = state.code.let_here(f"getelementptr {address}", "ptr")
                bases[group] = _Base(emitted[key], place, strides)
        results.append(emitted[key])
    state.set_registers(op.results[0], results)


Place = tuple[int, ...]
"""A distance: a number of bytes, then the number of elements along each stride that is a parameter
of the kernel."""


@dataclass(frozen=True, slots=True)
class _Base:
    """An address from which others are computed; strides: see `_places_by_base`."""

    address: Val
    place: Place
    strides: Sequence[tuple[Val, int]]
    emitted: dict[Place, Val] = field(default_factory=dict[Place, Val])

    def at(self, state: GpuLowering, place: Place) -> Val:
        """The address of another place."""
        return self._at(state, tuple(x - y for x, y in zip(place, self.place, strict=True)))

    def _at(self, state: GpuLowering, distance: Place) -> Val:
        if not any(distance):
            return self.address
        if distance not in self.emitted:
            step, near = self._step(state, distance)
            text = f"getelementptr i8, ptr {self._at(state, near)}, i64 {step}"
            self.emitted[distance] = state.code.let_here(text, "ptr")
        return self.emitted[distance]

    def _step(self, state: GpuLowering, distance: Place) -> tuple[Val, Place]:
        """The last step to an address, and the distance before it, which other addresses share.

        Along a stride it is a power of two: few multiples of it are in registers, and few steps
        depend on each other.
        """
        if distance[0]:
            return integer_literal(distance[0], "i64"), (0, *distance[1:])
        at = max(number for number, elements in enumerate(distance) if elements)
        elements = distance[at] & -distance[at]
        parameter, factor = self.strides[at - 1]
        wide = _wide(state, parameter, signed=True)
        step = state.code.let_here(f"mul i64 {wide}, {factor * elements}", "i64")
        return step, (*distance[:at], distance[at] - elements, *distance[at + 1 :])


def _places_by_base(
    state: GpuLowering, op: OffsetOp, size: int
) -> tuple[Sequence[tuple[Val, int]], Sequence[tuple[int, Place]]]:
    """Strides as a parameter of the kernel times a number; and for each register the first one with
    this base, and its place there.

    Addresses have one base if they differ equally in all threads: along dims whose stride is a
    constant or a multiple of a parameter, and in runs. Computed from one offset each, they would be
    a chain of 64-bit arithmetic each, since to LLVM a sum of 32 bits may wrap.
    """
    address = op.results[0]
    if not isinstance(address.type, TileType) or register_count(address) == 1:
        return (), [(0, (0,))]
    runs = state.alignments[address].contiguity
    bases = layout_of(address).bases(REGISTER)
    strides: Sequence[Stride | None] = [None] * len(runs)
    # Affine forms of a whole function take time: only where registers are in several runs.
    if any(along >= run for basis in bases for along, run in zip(basis, runs, strict=True)):
        strides = strides_of(state.memory.forms.form(address), shape_of(address.type))
    variable = list(dict.fromkeys(s for s in strides if s and s.parameter))
    known: list[tuple[int, int, int] | None] = []
    for stride, run, extent in zip(strides, runs, shape_of(address.type), strict=True):
        if stride is None:
            known.append((0, size, run) if run > 1 else None)
        elif stride.parameter:
            known.append((1 + variable.index(stride), 1, extent))
        else:
            known.append((0, stride.factor, extent))
    places = places_by_base(layout_of(address), tuple(known))
    places = places if state.vectors is None else places[state.vectors.start :]
    return [(state.scalar(s.parameter), s.factor) for s in variable if s.parameter], places


@lru_cache(maxsize=256)
def places_by_base(
    layout: LinearLayout, strides: tuple[tuple[int, int, int] | None, ...]
) -> list[tuple[int, Place]]:
    """(first register with this base, place) of each register, which differ as addresses do.

    strides: of each dim the number in a place that grows, how much for each element, and how many
    elements in a row it grows for; or None
    """
    size = 1 + max((stride[0] for stride in strides if stride), default=0)
    first: dict[tuple[int, ...], int] = {}
    places: list[tuple[int, Place]] = []
    for register in range(layout.in_size(REGISTER)):
        key: tuple[int, ...] = ()
        place = [0] * size
        for dim, coordinate in enumerate(layout.apply(register=register)):
            stride = strides[dim]
            if stride is None:
                key = (*key, coordinate)
                continue
            number, factor, run = stride
            # bits that threads change as well are not added, but XORed
            key = (*key, coordinate // run, coordinate & moving_bits(layout, dim))
            place[number] += factor * coordinate
        places.append((first.setdefault(key, register), tuple(place)))
    return places


def _wide(state: GpuLowering, offset: Val, signed: bool) -> Val:
    if offset.constant is not None:
        return integer_literal(offset.constant, "i64")
    if offset.type == "i64":
        return offset
    return state.code.let_here(f"{'sext' if signed else 'zext'} {offset.typed} to i64", "i64")


@lowering(ExpandDimsOp, BroadcastOp, TransposeOp, ReshapeOp)
def _move(state: GpuLowering, op: ExpandDimsOp | BroadcastOp | TransposeOp | ReshapeOp) -> None:
    """Renumber registers: layout rules put each element in the thread that needs it."""
    kind, data = _movement(op)
    source = state.registers_of(op.operands[0])
    if not isinstance(op.operands[0].type, TileType):
        state.set_registers(op.results[0], source)
        return
    numbers = registers_between(layout_of(op.results[0]), layout_of(op.operands[0]), kind, data)
    state.set_registers(op.results[0], [source[n] for n in numbers])


def _movement(op: Op) -> tuple[str, tuple[int, ...]]:
    if isinstance(op, ExpandDimsOp):
        return "expand", (op.axis,)
    if isinstance(op, BroadcastOp):
        return "broadcast", shape_of(op.x.type)
    if isinstance(op, TransposeOp):
        return "transpose", op.order
    return "reshape", shape_of(op.operands[0].type)


@lowering(JoinOp)
def _join(state: GpuLowering, op: JoinOp) -> None:
    """The operands' layout drops the last dim: a thread that has one of a pair can select it."""
    layout, last = layout_of(op.results[0]), len(shape_of(op.operands[0].type))
    sources, at = (
        [state.registers_of(v) for v in op.operands],
        _register_at(layout_of(op.operands[0])),
    )
    emitted: dict[tuple[str, int], Val] = {}
    results: list[Val] = []
    for r in range(layout.in_size(REGISTER)):
        number, side = at[layout.apply(register=r)[:last]], state.coordinate(layout, last, r)
        key = side.text, number
        if key not in emitted:
            emitted[key] = _one_of(state, side, *(source[number] for source in sources))
        results.append(emitted[key])
    state.set_registers(op.results[0], results)


def _one_of(state: GpuLowering, side: Val, first: Val, second: Val) -> Val:
    """The first value where `side` is 0, the second where it is 1."""
    if side.constant is not None:
        return second if side.constant else first
    chosen = state.code.let_here(f"icmp ne {side.typed}, 0", "i1")
    return state.code.let_here(f"select i1 {chosen}, {second.typed}, {first.typed}", first.type)


@lowering(CatOp)
def _cat(state: GpuLowering, op: CatOp) -> None:
    """The halves differ in the highest register bit (see `with_half`)."""
    state.set_registers(
        op.results[0], [register for v in op.operands for register in state.registers_of(v)]
    )


@lowering(SplitOp)
def _split(state: GpuLowering, op: SplitOp) -> None:
    at, source = _register_at(layout_of(op.operands[0])), state.registers_of(op.operands[0])
    for side, result in enumerate(op.results):
        layout = layout_of(result)
        coordinates = (layout.apply(register=r) for r in range(layout.in_size(REGISTER)))
        state.set_registers(result, [source[at[(*coords, side)]] for coords in coordinates])


def _register_at(layout: LinearLayout) -> dict[tuple[int, ...], int]:
    """Register by its coordinates in thread 0; layouts are linear, so all threads number alike."""
    return {layout.apply(register=r): r for r in range(layout.in_size(REGISTER))}


@lowering(ProgramIdOp, NumProgramsOp)
def _grid(state: GpuLowering, op: ProgramIdOp | NumProgramsOp) -> None:
    coordinate = state.program if isinstance(op, ProgramIdOp) else state.programs
    state.set_registers(op.result, [coordinate(op.axis)])
