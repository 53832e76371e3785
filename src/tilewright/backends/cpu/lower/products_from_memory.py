"""Does the whole iterations of a loop of products as one product of matrices in memory.

    for k in 0..K step 64 { acc = dot (load a + k), (load b + 64 k), acc }

Each iteration would copy both tiles to scratch memory, and read and write acc once. Where addresses
are linear in rows, columns and iterations, and masks hold, the loop is instead

    n = iterations in which every mask holds           all, or all but the last
    product(acc, a, b, strides, 64 n)                  panels of b are copied, a is read where it is
    for k in 64 n..K step 64 { ... }                   what is left

What is linear is decided here, of the values; the strides, and whether tiles wrap around or reach
past an edge, by the program. As elsewhere in this back end, index arithmetic on signed integers is
taken not to wrap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import gcd

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.dot_operands import element_of_product
from tilewright.backends.cpu.lower.evaluate_lanes import Environment, Evaluator
from tilewright.backends.cpu.lower.lane_values import Address, Lanes, literal, uniform
from tilewright.backends.cpu.lower.memory_order import reads_columns
from tilewright.backends.cpu.lower.vector_access import memory_type
from tilewright.backends.cpu.lower.wrapped_tiles import run_remainders, shift_without_wrap
from tilewright.backends.cpu.microkernel import DotSpec, memory_depth, memory_step
from tilewright.ir import Op, Trait, Value
from tilewright.ir.types import DType, TileType, dtype_of, element_of, shape_of
from tilewright.llvm import Val, integer_literal
from tilewright.ops import (
    AddOp,
    AndOp,
    BitcastOp,
    BroadcastOp,
    CastOp,
    CompareOp,
    ConstantOp,
    DotOp,
    ExpandDimsOp,
    ForOp,
    HintOp,
    LoadOp,
    MulOp,
    OffsetOp,
    RangeOp,
    RemOp,
    SplatOp,
    SubOp,
    TransposeOp,
    pointee,
)

_MOST_OPS = 128
"""From which addresses are computed; more are generated code."""

_MOVES = (SplatOp, BroadcastOp, ExpandDimsOp, TransposeOp, HintOp)


@dataclass(slots=True)
class _Linearity:
    """Which values are linear in coordinates and in the number of the iteration.

    remainders: those that have to be without a wrap for it
    """

    loop: ForOp
    known: dict[Value, int | None] = field(default_factory=dict[Value, int | None])
    remainders: list[RemOp] = field(default_factory=list[RemOp])

    def degree(self, value: Value) -> int | None:
        """0: the same everywhere; 1: linear; None: neither."""
        if value not in self.known:
            self.known[value] = None  # what has too many operands stays so
            if len(self.known) <= _MOST_OPS:
                self.known[value] = self._degree(value)
        return self.known[value]

    def _degree(self, value: Value) -> int | None:
        op = value.op
        if op is None:
            return int(value in self.loop.body.args)
        inside = op.parent is self.loop.body
        if isinstance(op, ConstantOp) or not (inside or isinstance(value.type, TileType)):
            return 0
        if isinstance(op, RangeOp):
            return 1
        if isinstance(op, RemOp) and not inside:
            self.remainders.append(op)
            return self.degree(op.lhs)
        return self._of_operands(op)

    def _of_operands(self, op: Op) -> int | None:
        degrees = [self.degree(operand) for operand in op.operands]
        if None in degrees or Trait.PURE not in op.traits or op.regions:
            return None
        highest = max((d for d in degrees if d is not None), default=0)
        linear = isinstance(op, (*_MOVES, AddOp, SubOp, OffsetOp)) or (
            isinstance(op, MulOp) and 0 in degrees
        )
        widened = isinstance(op, CastOp) and _widens(op)
        return highest if linear or widened or not highest else None


def _widens(op: CastOp) -> bool:
    source, target = (element_of(v.type) for v in (op.x, op.result))
    if not isinstance(source, DType) or not isinstance(target, DType):
        return False
    return source.is_integer and source.is_signed and target.is_integer and (
        target.bits >= source.bits
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemoryProduct:
    """A loop of products that may be done as one.

    depth: of an iteration along K; together: iterations that the micro-kernel does at once
    steps: of the carried scalars, what an iteration adds to each (None: nothing)
    """

    loop: ForOp
    spec: DotSpec
    a: LoadOp
    b: LoadOp
    depth: int
    together: int
    steps: tuple[Value | None, ...]
    conditions: tuple[Value, ...]
    linearity: _Linearity


def memory_product(state: CpuLowering, loop: ForOp) -> MemoryProduct | None:
    """The product that a loop is, if the values say so much."""
    dot = _only_product(loop)
    if dot is None or not _counts_up(loop):
        return None
    a, b = _loaded(dot.a), _loaded(dot.b)
    linearity = _Linearity(loop)
    steps = [_step(linearity, loop, n) for n in range(len(loop.inits))]
    if a is None or b is None or "none" in steps:
        return None
    spec, depth = _spec(state, dot, a, b), shape_of(dot.a.type)[1]
    conditions = [c for load in (a, b) if load.mask is not None for c in _conjuncts(load.mask)]
    step = memory_step(spec)
    linear = [*(v for c in conditions for v in c.operands), a.pointer, b.pointer]
    together = max(step // depth, 1) if step else 1
    fits = step and gcd(depth * together, spec.k) % step == 0 and all(map(_is_order, conditions))
    if not fits or any(linearity.degree(v) is None for v in linear):
        return None
    known = tuple(s for s in steps if not isinstance(s, str))
    found = tuple(c.result for c in conditions)
    return MemoryProduct(loop, spec, a, b, depth, together, known, found, linearity)


def _only_product(loop: ForOp) -> DotOp | None:
    """The product that a loop sums up, if it does nothing else with tiles or memory."""
    *ops, end = loop.body
    dots = [op for op in ops if isinstance(op, DotOp)]
    quiet = all(Trait.PURE in op.traits or _plain_load(op) for op in ops)
    tiles = [v for v in end.operands if isinstance(v.type, TileType)]
    if len(dots) != 1 or not quiet or tiles != [dots[0].result] or len(shape_of(tiles[0].type)) > 2:
        return None
    arg = loop.carried[end.operands.index(tiles[0])]
    return dots[0] if dots[0].acc is arg and list(arg.uses) == [dots[0]] else None


def _plain_load(op: Op) -> bool:
    return isinstance(op, LoadOp) and not op.volatile


def _counts_up(loop: ForOp) -> bool:
    step = loop.step.op
    signed = dtype_of(loop.index.type).is_signed
    return signed and isinstance(step, ConstantOp) and step.value > 0


def _loaded(operand: Value) -> LoadOp | None:
    op = operand.op
    if isinstance(op, BitcastOp):
        op = op.x.op
    return op if isinstance(op, LoadOp) and op.parent is not None else None


def _step(linearity: _Linearity, loop: ForOp, number: int) -> Value | None | str:
    """What an iteration adds to a carried value; "none" if it does something else."""
    arg, yielded = loop.carried[number], loop.body.terminator.operands[number]
    if yielded is arg or isinstance(arg.type, TileType):
        return None
    op = yielded.op
    if not isinstance(op, (AddOp, OffsetOp)) or arg not in op.operands:
        return "none"
    left, right = op.operands
    step = right if left is arg else left
    integer = isinstance(op, OffsetOp) or dtype_of(arg.type).is_integer
    return step if integer and step is not arg and linearity.degree(step) == 0 else "none"


def _spec(state: CpuLowering, dot: DotOp, a: LoadOp, b: LoadOp) -> DotSpec:
    m, n = shape_of(dot.result.type)
    a_columns, b_columns = (reads_columns(load.result, state.alignments) for load in (a, b))
    sizes = DotSpec(m, n, shape_of(dot.a.type)[1], element_of_product(dot), state.unit)
    return replace(
        sizes, k=memory_depth(sizes), ldc=n, a_columns=a_columns, b_columns=b_columns,
        from_memory=True,
    )  # fmt: skip


def _conjuncts(mask: Value) -> Iterator[Op]:
    """The ops whose results all hold where a mask does."""
    op = mask.op
    if isinstance(op, AndOp):
        for operand in op.operands:
            yield from _conjuncts(operand)
    elif isinstance(op, _MOVES):
        yield from _conjuncts(op.operands[0])
    elif op is not None and not (isinstance(op, ConstantOp) and op.value):
        yield op


def _is_order(op: Op) -> bool:
    """A comparison that, of linear values, holds between places where it does."""
    kind = element_of(op.operands[0].type) if isinstance(op, CompareOp) else None
    signed = isinstance(kind, DType) and kind.is_integer and kind.is_signed
    return signed and isinstance(op, CompareOp) and op.predicate in ("lt", "le", "gt", "ge")


# --- emission -------------------------------------------------------------------------------------


class MemoryProductEmitter:
    """Emits a product in front of its loop, from the values of the loop's scalars there.

    starts: lower bound, then initial values; of tiles anything
    """

    def __init__(
        self, state: CpuLowering, found: MemoryProduct, starts: Sequence[Val], upper: Val
    ) -> None:
        self.state, self.code, self.found, self.starts = state, state.code, found, starts
        self.inside, self.shifts = integer_literal(1, "i1"), dict[Value, Lanes]()
        self.linear: list[Val] = []
        self.trips = self._trips(upper)

    def emit(self, name: str, sums: Val) -> list[Val]:
        """The call of the micro-kernel, where it may be; the starts of the rest of the loop."""
        code, one = self.code, integer_literal(1, "i64")
        last = code.binary("sub", self.trips, one)
        whole = self._masks_hold(last)
        count = code.select(whole, self.trips, last)
        if self.found.together > 1:
            count = code.binary("and", count, integer_literal(-self.found.together, "i64"))
        before = self._masks_hold(code.binary("sub", last, one))
        fits = code.binary("and", code.binary("or", whole, before), self.inside)
        first = integer_literal(0, "i64")
        fits = code.binary("and", fits, self._masks_hold(first))
        fits = code.binary("and", fits, code.compare("icmp sgt", count, first))
        a, a_row = self._operand(self.found.a, in_columns=False, along=1)
        b, b_row = self._operand(self.found.b, in_columns=self.found.spec.b_columns, along=0)
        fits = code.binary("and", fits, code.binary("and", self.linear[0], self.linear[1]))
        depth = code.binary("mul", count, integer_literal(self.found.depth, "i64"))
        then, done = code.label("whole"), code.label("rest")
        code.line(f"br i1 {fits}, label %{then}, label %{done}")
        code.line(f"{then}:")
        numbers = ", ".join(v.typed for v in (a_row, b_row, depth))
        code.line(f"call void @{name}({sums.typed}, {a.typed}, {b.typed}, {numbers})")
        code.line(f"br label %{done}")
        code.line(f"{done}:")
        done_trips = code.select(fits, count, first)
        return [self._after(n, done_trips) for n in range(len(self.starts))]

    def _trips(self, upper: Val) -> Val:
        """Iterations of the loop, as an i64."""
        code, step = self.code, self._constant_step()
        low, high = (code.convert("sext", v, "i64") for v in (self.starts[0], upper))
        distance = code.binary("sub", high, low)
        above = code.binary("add", distance, integer_literal(step - 1, "i64"))
        trips = code.binary("sdiv", above, integer_literal(step, "i64"))
        some = code.compare("icmp sgt", distance, integer_literal(0, "i64"))
        return code.select(some, trips, integer_literal(0, "i64"))

    def _constant_step(self) -> int:
        op = self.found.loop.step.op
        assert isinstance(op, ConstantOp)
        return int(op.value)

    def unwrap(self) -> bool:
        """Put shifts in place of all remainders, which hold if `inside` does; False if one is not
        known well enough."""
        found = self.found
        tiles = run_remainders(self.state, [found.a.pointer, found.b.pointer])
        wrapping = {op.result for op in found.linearity.remainders if _is_tile(op)}
        if wrapping - {tile.op.result for tile in tiles}:
            return False
        for tile in (t for t in tiles if t.op.result in wrapping):
            inside, self.shifts[tile.op.result] = shift_without_wrap(self.state, tile)
            self.inside = self.code.binary("and", self.inside, inside)
        return True

    def _after(self, number: int, trips: Val) -> Val:
        """A scalar of the loop after so many iterations: the index, then the others."""
        code, start = self.code, self.starts[number]
        if number == 0:
            step: Val | None = integer_literal(self._constant_step(), start.type)
        else:
            value = self.found.steps[number - 1]
            step = None if value is None else self.state.evaluator().lanes(value, ()).base
        if step is None:
            return start
        if start.type == "ptr":
            wide = code.convert("sext", step, "i64")
            element = element_of(pointee(self.found.loop.inits[number - 1].type))
            distance = code.binary("mul", wide, trips)
            return code.element_address(start, distance, memory_type(element))
        count = trips if start.type == "i64" else code.convert("trunc", trips, start.type)
        return code.binary("add", start, code.binary("mul", step, count))

    def _evaluator(self, trips: Val) -> Evaluator:
        """Of values in the iteration that comes after so many."""
        env, outside = Environment(), self.state.env
        env.functions, env.buffers = outside.functions, outside.buffers
        env.scalars = dict(outside.scalars)
        for number, arg in enumerate(self.found.loop.body.args):
            if not isinstance(arg.type, TileType):
                value = self._after(number, trips)
                env.scalars[arg] = Address(value) if value.type == "ptr" else uniform(value)
        return Evaluator(self.code, env, 1, self.shifts)

    def _masks_hold(self, trips: Val) -> Val:
        """Whether the masks hold everywhere in one iteration: they do if they do in the corners."""
        holds, ev = integer_literal(1, "i1"), self._evaluator(trips)
        for condition in self.found.conditions:
            ends = [sorted({0, n - 1}) for n in shape_of(condition.type)]
            for corner in product(*ends):
                at = ev.lanes(condition, tuple(map(literal, corner)))
                holds = self.code.binary("and", holds, at.base)
        return holds

    def _operand(self, load: LoadOp, in_columns: bool, along: int) -> tuple[Val, Val]:
        """Where the first element is, and the bytes from a row (or column) to the next; `linear`
        says whether the other dimension is dense, and an iteration goes on where one ends.

        along: the dimension of K
        """
        code, now = self.code, self._evaluator(integer_literal(0, "i64"))
        soon = self._evaluator(integer_literal(1, "i64"))
        start = self._address(now, load, (0, 0))
        down, across = (self._distance(start, now, load, at) for at in ((1, 0), (0, 1)))
        dense, row = (down, across) if in_columns else (across, down)
        size = dtype_of(load.result.type).bytes
        step = across if along else down
        expected = code.binary("mul", step, integer_literal(self.found.depth, "i64"))
        goes_on = code.compare("icmp eq", self._distance(start, soon, load, (0, 0)), expected)
        packed = code.compare("icmp eq", dense, integer_literal(size, "i64"))
        self.linear.append(code.binary("and", goes_on, packed))
        return start, row

    def _distance(self, start: Val, ev: Evaluator, load: LoadOp, at: tuple[int, int]) -> Val:
        """Bytes from an address to that of an element."""
        code = self.code
        ends = [code.convert("ptrtoint", v, "i64") for v in (self._address(ev, load, at), start)]
        return code.binary("sub", *ends)

    def _address(self, ev: Evaluator, load: LoadOp, at: tuple[int, int]) -> Val:
        address = ev.at(load.pointer, tuple(map(literal, at)))
        assert isinstance(address, Address)
        return ev.math.first(address, memory_type(element_of(load.result.type)))


def _is_tile(op: Op) -> bool:
    return isinstance(op.results[0].type, TileType)
