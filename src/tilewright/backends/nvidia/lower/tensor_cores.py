"""Dots through mma.sync: which registers feed which instruction, and the instruction.

The registers of a fragment repeat over the tile, so the instruction at (i, j) of the warp's part
takes the registers whose coordinates (in thread 0) are those of the fragment, moved to (i, j).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.layouts.mma_layouts import fragment_for
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.gpu_lowering import GpuLowering, lowering
from tilewright.backends.nvidia.lower.register_packing import pack
from tilewright.ir import Value
from tilewright.ir.types import DType, dtype_of
from tilewright.layout import REGISTER, Fragment, LinearLayout
from tilewright.llvm import Val
from tilewright.ops import DotOp
from tilewright.support.data_class import dataclass

PTX_TYPES = {"f16": "f16", "bf16": "bf16", "i8": "s8", "u8": "u8", "f8e4m3": "e4m3",
          "f8e5m2": "e5m2", "f64": "f64", "f32": "tf32", "i32": "s32"}  # fmt: skip
"""Names of operand types in matrix instructions."""


@lowering(DotOp)
def _dot(state: GpuLowering, op: DotOp) -> None:
    fragment = fragment_for(op)
    a, b, acc = op.operands
    tiles = _Tiles(layout_of(op.result), fragment)
    assert fragment.a is not None and fragment.b is not None
    a_words = _Operand(state, a, fragment.a)
    b_words = _Operand(state, b, fragment.b)
    results = list(state.registers_of(acc))
    steps = _steps(state.arch, op, fragment)
    depth = layout_of(a).shape[-1]
    for k in range(0, depth, fragment.k):
        for (*batch, row, column), registers in tiles.parts:
            left, right = a_words.at(*batch, row, k), b_words.at(*batch, k, column)
            accumulators = [results[r] for r in registers]
            # Several instructions of Turing do what one of Ampere does, in one accumulator.
            for step in steps:
                step.run(state, left, right, accumulators)
            for r, value in zip(registers, accumulators, strict=True):
                results[r] = value
    state.set_registers(op.result, results)


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction, with the packed registers of operands and accumulator that it takes."""

    text: str
    a: Sequence[int]
    b: Sequence[int]
    accumulators: Sequence[int]

    def run(
        self, state: GpuLowering, left: Sequence[Val], right: Sequence[Val], accumulators: list[Val]
    ) -> None:
        """Add to the accumulators."""
        a, b = [left[i] for i in self.a], [right[i] for i in self.b]
        dots = mma(state, self.text, a, b, [accumulators[i] for i in self.accumulators])
        for i, value in zip(self.accumulators, dots, strict=True):
            accumulators[i] = value


_ALL = (0, 1, 2, 3)
_SMALLER = {
    (16, 8, 16): ((16, 8, 8), (((0, 1), (0,), _ALL), ((2, 3), (1,), _ALL))),
    (16, 8, 32): (
        (8, 8, 16),
        (((0,), (0,), (0, 1)), ((1,), (0,), (2, 3)), ((2,), (1,), (0, 1)), ((3,), (1,), (2, 3))),
    ),
}
"""Instructions of Ampere -> those of Turing that do the same: their shape, and the words of A, of B
and the accumulators of each."""


def mma_instruction(arch: Arch, op: DotOp) -> str:
    """The instruction of a dot, as in `mma.sync.aligned.m16n8k16....`."""
    return _steps(arch, op, fragment_for(op))[0].text


def _steps(arch: Arch, op: DotOp, fragment: Fragment) -> list[_Step]:
    """Instructions that multiply two fragments."""
    kinds = [PTX_TYPES[dtype_of(v.type).name] for v in (op.a, op.b)]
    total = dtype_of(op.type)
    total_type = "f32" if total.name == "f32" else PTX_TYPES[total.name]
    shape = (fragment.m, fragment.n, fragment.k)

    def text(m: int, n: int, k: int) -> str:
        return (
            f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{total_type}.{kinds[0]}.{kinds[1]}.{total_type}"
        )

    operand = "tf32" if kinds[0] == "tf32" else dtype_of(op.a.type).name
    if any(form.operand == operand and form.shape == shape for form in arch.mma):
        assert fragment.a is not None and fragment.b is not None
        a, b = (range(_words(layout, fragment)) for layout in (fragment.a, fragment.b))
        return [_Step(text(*shape), a, b, range(fragment.c.in_size(REGISTER)))]
    smaller, parts = _SMALLER[shape]
    return [_Step(text(*smaller), *part) for part in parts]


def _words(operand: LinearLayout, fragment: Fragment) -> int:
    """Registers that a thread passes for an operand, of 32 bits or one f64 each."""
    return operand.in_size(REGISTER) * min(fragment.element_bits, 32) // 32


class _Tiles:
    """The instructions of a warp: origin of each in thread 0, and its result registers."""

    def __init__(self, result: LinearLayout, fragment: Fragment) -> None:
        per_part = fragment.c.in_size(REGISTER)
        self.parts: list[tuple[tuple[int, ...], list[int]]] = []
        for start in range(0, result.in_size(REGISTER), per_part):
            origin = result.apply(register=start)
            self.parts.append((origin, list(range(start, start + per_part))))


class _Operand:
    """Packed registers of one operand by fragment, made at their first use.

    A fragment is named by the coordinates of its origin in thread 0.
    """

    def __init__(self, state: GpuLowering, value: Value, single: LinearLayout) -> None:
        layout = layout_of(value)
        self.state, self.registers = state, state.registers_of(value)
        self.element = dtype_of(value.type)
        self.size = single.in_size(REGISTER)
        # Registers of one fragment are neighbours: its bits are the lowest ones.
        starts = range(0, layout.in_size(REGISTER), self.size)
        self.start = {layout.apply(register=start): start for start in starts}
        self.loaded: dict[tuple[int, ...], list[Val]] = {}

    def at(self, *origin: int) -> list[Val]:
        operand_registers = self.loaded.get(origin)
        if operand_registers is None:
            start = self.start[origin]
            packed = pack(self.state, self.registers[start : start + self.size], self.element)
            operand_registers = [as_mma_register(self.state, w, self.element) for w in packed]
            self.loaded[origin] = operand_registers
        return operand_registers


def as_mma_register(state: GpuLowering, packed_register: Val, element: DType) -> Val:
    """A packed register of an operand as matrix instructions take it."""
    if element.name == "f64":
        return state.code.let_here(f"bitcast i64 {packed_register} to double", "double")
    # mma ignores the low bits of an f32, as wgmma does: that truncates it (ADR 0027).
    return packed_register


def mma(
    state: GpuLowering, text: str, a: Sequence[Val], b: Sequence[Val], accumulators: Sequence[Val]
) -> list[Val]:
    """d = a @ b + d, the accumulators tied to the results."""
    type_, operands = accumulators[0].type, [*a, *b]
    kind = {"float": "f", "double": "d", "i32": "r"}[type_]
    inputs = {"i32": "r", "double": "d"}
    count = len(accumulators)
    names = [f"${count + count + i}" for i in range(len(operands))]
    outputs = ", ".join(f"${i}" for i in range(count))
    left, right = ", ".join(names[: len(a)]), ", ".join(names[len(a) :])
    instruction = f"{text} {{{outputs}}}, {{{left}}}, {{{right}}}, {{{outputs}}};"
    constraints = ",".join(
        [*[f"={kind}"] * count, *map(str, range(count)), *(inputs[v.type] for v in operands)]
    )
    result = f"{{ {', '.join([type_] * count)} }}"
    # Not pure_asm: the whole warp takes part, so it must not move into a branch.
    got = state.asm(instruction, constraints, result, *accumulators, *operands)
    return [state.code.let_here(f"extractvalue {result} {got}, {i}", type_) for i in range(count)]
