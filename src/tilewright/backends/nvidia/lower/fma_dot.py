"""Dots without tensor cores: operands in shared memory, each thread a block of the result.

Both operands have the reduced dim first, so that a step reads the rows and columns of a
thread's block as vectors and multiplies each pair of their elements:

    for k:  a[m0..], b[n0..] = shared_a[k, m0..], shared_b[k, n0..];  c[m, n] += a[m] * b[n]
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.nvidia.buffer_ops import buffer_type
from tilewright.backends.nvidia.exchange_ops import SharedFmaDotOp
from tilewright.backends.nvidia.layouts.access_vectors import MAX_VECTOR_BYTES
from tilewright.backends.nvidia.layouts.tile_layout import layout_of
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering
from tilewright.backends.nvidia.lower.layout_conversion import load_vector
from tilewright.backends.nvidia.lower.register_packing import Element, unpack
from tilewright.ir import Value
from tilewright.ir.types import dtype_of
from tilewright.layout import REGISTER
from tilewright.llvm import Val, integer_literal, mangle
from tilewright.support.data_class import dataclass

_UNROLLED = 2048
"""Multiplications of one thread that are written out; more make a loop over k."""


@dataclass(frozen=True, slots=True)
class _Buffer:
    """One operand in shared memory: element (batch, k, i) is at base + bytes of its number."""

    base: Val
    depth: int
    pitch: int
    element: Element

    @classmethod
    def of(cls, state: GpuLowering, buffer: Value) -> _Buffer:
        type_ = buffer_type(buffer)
        depth, pitch = type_.shape[-2:]
        return cls(state.scalar(buffer), depth, pitch, type_.element)

    @property
    def matrix(self) -> int:
        return self.depth * self.pitch


@lowering(SharedFmaDotOp)
def _fma_dot(state: GpuLowering, op: SharedFmaDotOp) -> None:
    _Block(state, op, _Buffer.of(state, op.a), _Buffer.of(state, op.b)).run()


def _number(state: GpuLowering, buffer: _Buffer, batch: Sequence[Val], k: Val, i: Val) -> Val:
    code = state.code
    scaled = code.let_here(f"mul i32 {k}, {buffer.pitch}", "i32")
    number = code.let_here(f"add i32 {scaled}, {i}", "i32")
    for index in batch:
        start = code.let_here(f"mul i32 {index}, {buffer.matrix}", "i32")
        number = code.let_here(f"add i32 {number}, {start}", "i32")
    return number


def _address(state: GpuLowering, buffer: _Buffer, number: Val) -> Val:
    code = state.code
    offset = code.let_here(f"mul i32 {number}, {buffer.element.bytes}", "i32")
    start = code.let_here(f"add i32 {state.shared}, {offset}", "i32")
    return code.let_here(f"add i32 {start}, {buffer.base}", "i32")


class _Block:
    """Part of the result of one thread: its registers, and the rows and columns that they need."""

    def __init__(self, state: GpuLowering, op: SharedFmaDotOp, a: _Buffer, b: _Buffer) -> None:
        self.state, self.op, self.code = state, op, state.code
        self.buffers = a, b
        self.layout = layout_of(op.result)
        count = self.layout.in_size(REGISTER)
        self.coordinates = [self.layout.apply(register=r) for r in range(count)]
        self.sides = [self._lines(dim) for dim in (-2, -1)]
        self.starts = [
            {run[0]: self._start(side, run) for run in runs} for side, runs in enumerate(self.sides)
        ]

    def _lines(self, dim: int) -> list[list[tuple[int, ...]]]:
        """Places (batch, row) or (batch, column) of the registers, in runs that one load reads."""
        lines = sorted({(*p[:-2], p[dim]) for p in self.coordinates})
        longest = max(1, MAX_VECTOR_BYTES // dtype_of(self.op.type).bytes)
        runs: list[list[tuple[int, ...]]] = []
        for line in lines:
            last = runs[-1] if runs else []
            follows = bool(last) and line == (*last[0][:-1], last[0][-1] + len(last))
            if follows and len(last) < longest:
                last.append(line)
            else:
                runs.append([line])
        return [part for run in runs for part in _aligned(run)]

    def _start(self, side: int, run: list[tuple[int, ...]]) -> Val:
        """Address of the first element of a run for k = 0."""
        dim, first = side - 2, run[0]
        register = next(r for r, p in enumerate(self.coordinates) if (*p[:-2], p[dim]) == first)
        rank = len(self.coordinates[0])
        batch = [self.state.coordinate(self.layout, d, register) for d in range(rank - 2)]
        i = self.state.coordinate(self.layout, rank + dim, register)
        number = _number(self.state, self.buffers[side], batch, integer_literal(0), i)
        return _address(self.state, self.buffers[side], number)

    def run(self) -> None:
        accumulators = list(self.state.registers_of(self.op.acc))
        depth = self.buffers[0].depth
        steps = max(1, min(depth, _UNROLLED // len(accumulators)))
        if steps == depth:
            accumulators = self._steps(accumulators, integer_literal(0), depth)
        else:
            # A power of two, as the depth is: it divides the depth.
            accumulators = self._loop(accumulators, depth, 1 << (steps.bit_length() - 1))
        self.state.set_registers(self.op.result, accumulators)

    def _loop(self, accumulators: list[Val], depth: int, steps: int) -> list[Val]:
        code, type_ = self.code, accumulators[0].type
        before, head, done = (code.label(name) for name in ("before", "fmas", "done"))
        for line in (f"br label %{before}", f"{before}:", f"br label %{head}", f"{head}:"):
            code.line(line)
        position = len(code.sections[-1])
        index = Val(code.name("k"), "i32", BODY)
        inner = [Val(code.name("c"), type_, BODY) for _ in accumulators]
        final = self._steps(inner, index, steps)
        following = code.let_here(f"add i32 {index}, {steps}", "i32")
        # Tested at the end only: the depth is never 0.
        more = code.let_here(f"icmp ult i32 {following}, {depth}", "i1")
        latch = code.label("latch")
        for line in (f"br label %{latch}", f"{latch}:"):
            code.line(line)
        code.line(f"br i1 {more}, label %{head}, label %{done}")
        code.line(f"{done}:")
        code.sections[-1][position:position] = [
            f"{phi} = phi {phi.type} [ {start}, %{before} ], [ {end}, %{latch} ]"
            for phi, start, end in zip(
                [index, *inner],
                [integer_literal(0), *accumulators],
                [following, *final],
                strict=True,
            )
        ]
        return final

    def _steps(self, accumulators: list[Val], index: Val, count: int) -> list[Val]:
        """FMAs for k = index .. index + count - 1."""
        offsets = [
            self.code.let_here(f"mul i32 {index}, {b.pitch * b.element.bytes}", "i32")
            for b in self.buffers
        ]
        for step in range(count):
            rows, columns = (self._read(side, offsets[side], step) for side in (0, 1))
            accumulators = [
                self._multiply(rows[(*p[:-2], p[-2])], columns[(*p[:-2], p[-1])], total)
                for p, total in zip(self.coordinates, accumulators, strict=True)
            ]
        return accumulators

    def _read(self, side: int, offset: Val, step: int) -> dict[tuple[int, ...], Val]:
        buffer = self.buffers[side]
        moved = step * buffer.pitch * buffer.element.bytes
        elements: dict[tuple[int, ...], Val] = {}
        for run in self.sides[side]:
            address = self.starts[side][run[0]]
            if offset.text != "0":
                address = self.code.let_here(f"add i32 {address}, {offset}", "i32")
            if moved:
                address = self.code.let_here(f"add i32 {address}, {moved}", "i32")
            packed = load_vector(self.state, address, buffer.element, len(run))
            values = unpack(self.state, packed, len(run), buffer.element)
            elements.update(zip(run, values, strict=True))
        return elements

    def _multiply(self, x: Val, y: Val, total: Val) -> Val:
        code = self.code
        if total.type == "i32":
            multiplied = code.let_here(f"mul i32 {x}, {y}", "i32")
            return code.let_here(f"add i32 {multiplied}, {total}", "i32")
        name = f"llvm.fma.{mangle(total.type)}"
        type_ = total.type
        self.state.module.declare(name, f"declare {type_} @{name}({type_}, {type_}, {type_})")
        return code.let_here(f"call {type_} @{name}({x.typed}, {y.typed}, {total.typed})", type_)


def _aligned(run: list[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """A run cut into parts whose length is a power of two that divides where they start."""
    parts: list[list[tuple[int, ...]]] = []
    while run:
        start = run[0][-1]
        # Threads differ in bits that no run spans: what is aligned in thread 0 is so in all.
        limit = len(run) if start == 0 else min(len(run), start & -start)
        size = 1 << (limit.bit_length() - 1)
        parts.append(run[:size])
        run = run[size:]
    return parts
