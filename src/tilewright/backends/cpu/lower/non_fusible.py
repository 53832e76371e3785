"""Lowering of ops that are no single nest: dots, scans, atomics, assertions, prints, elements."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering, lowering
from tilewright.backends.cpu.lower.dot_operands import element_of_dot, is_zero
from tilewright.backends.cpu.lower.evaluate_lanes import Coords, Evaluator
from tilewright.backends.cpu.lower.fused_loop_nest import emit_loop_nest
from tilewright.backends.cpu.lower.fusion import LoopNest
from tilewright.backends.cpu.lower.lane_reductions import apply_region, scan_along
from tilewright.backends.cpu.lower.lane_values import Lanes, literal, uniform
from tilewright.backends.cpu.lower.loop_sections import loop
from tilewright.backends.cpu.lower.lowering_record import DotForm
from tilewright.backends.cpu.lower.prefetch import Prefetcher
from tilewright.backends.cpu.lower.vector_access import (
    Buffer,
    memory_type,
    read_buffer,
    to_memory,
    write_buffer,
)
from tilewright.backends.cpu.microkernel import DotSpec, are_whole_panels, memory_step
from tilewright.backends.cpu.ops import Bf16DotOp, BlockTransposeOp
from tilewright.backends.device_messages import packed
from tilewright.ir import Op, Value
from tilewright.ir.types import DType, TileType, dtype_of, element_of, shape_of
from tilewright.llvm import Code, Val, integer_literal
from tilewright.ops import (
    AssertOp,
    AssumeOp,
    AtomicCasOp,
    AtomicOp,
    BarrierOp,
    DotOp,
    HistogramOp,
    ItemOp,
    LoadOp,
    MapOp,
    PrintOp,
    ScanOp,
    TimerOp,
    operand_text,
    printed_kind,
)
from tilewright.support import SourceLoc, import_late
from tilewright.support.printed_lines import PRINT_KINDS

_LANES_OF_CONDITIONS = 32
"""Lanes of an assertion that are tested at once: bits of a number, and a step of ordinary nests."""


def copy_into(state: CpuLowering, value: Value, buffer: Buffer) -> None:
    """Evaluate a tile into a buffer, with a nest of its own."""
    existing = state.env.buffers.get(value)
    if existing is buffer:
        return
    if existing is not None:
        _copy_buffer(state, existing, buffer)
        return
    kept = state.assigned_buffers.get(value)
    state.assigned_buffers[value] = buffer
    emit_loop_nest(state, LoopNest(shape_of(value.type), 0, 0, materialized=[value]))
    # The buffer is the caller's, who may overwrite it: later uses must not read it.
    del state.env.buffers[value]
    if kept is None:
        del state.assigned_buffers[value]
    else:
        state.assigned_buffers[value] = kept


def _copy_buffer(state: CpuLowering, source: Buffer, target: Buffer) -> None:
    lines = source.shape[-1]
    width = min(lines & -lines, max(1, state.vector_bits // 8 // source.element.bytes))
    ev = state.evaluator(width)
    with ExitStack() as stack:
        coords = [
            uniform(stack.enter_context(loop(state.code, extent)).index)
            for extent in source.shape[:-1]
        ]
        last = stack.enter_context(loop(state.code, lines, width)).index
        coords_there = (*coords, Lanes(last, int(width > 1), width))
        write_buffer(ev.math, target, coords_there, read_buffer(ev.math, source, coords_there))


@lowering(DotOp, Bf16DotOp)
def lower_dot(state: CpuLowering, op: DotOp) -> None:
    """Copy the accumulator to the result's buffer, then call the micro-kernel for each pair of
    matrices."""
    a, b = state.env.buffers[op.a], state.env.buffers[op.b]
    c = state.buffer_for(op.result)
    # An accumulator that starts at zero is not read: the micro-kernel overwrites the result.
    fresh = is_zero(op.acc)
    if not fresh:
        copy_into(state, op.acc, c)
    (m, k), n = a.shape[-2:], b.shape[-1]
    spec = DotSpec(
        m, n, k, element_of_dot(op), state.unit,
        lda=max(a.strides[-2:]), ldb=max(b.strides[-2:]), ldc=c.strides[-2], accumulate=not fresh,
        a_columns=a.strides[-1] > 1, b_columns=b.strides[-1] > 1,
    )  # fmt: skip
    whole = _same_matmul_from_memory(state, spec)
    if state.record is not None:
        state.record.dot(op, DotForm(whole or spec, from_memory=False))
    name = microkernel_function(state, whole or spec, op.loc)
    if whole is not None:
        size = spec.operand.bytes
        sizes = (spec.lda * size, spec.ldb * size, spec.k, spec.m, spec.n)
        numbers = call_of_memory_matmul(whole, [integer_literal(n, "i64") for n in sizes], True)
        matrices = f"ptr {c.pointer}, ptr {a.pointer}, ptr {b.pointer}"
        state.code.line(f"call void @{name}({matrices}, {numbers})")
    elif len(a.shape) == 2:
        state.code.line(f"call void @{name}(ptr {c.pointer}, ptr {a.pointer}, ptr {b.pointer})")
    else:
        with loop(state.code, a.shape[0]) as opened:
            at = [_matrix(state, buffer, opened.index) for buffer in (c, a, b)]
            state.code.line(f"call void @{name}({', '.join(v.typed for v in at)})")
    state.env.buffers[op.result] = c


def _same_matmul_from_memory(state: CpuLowering, spec: DotSpec) -> DotSpec | None:
    """The matmul that runs most iterations of the loop, if it can also run one of the remaining
    ones: code for a few iterations alone would take as long to compile. Not that of a group of
    programs, where a panel of rows may belong to two programs."""
    whole = state.done_from_memory
    if whole is None or whole.by_tiles or spec.k % memory_step(whole):
        return None
    if whole.m != spec.m and not are_whole_panels(whole, spec.m):
        return None
    alike = replace(
        whole, m=spec.m, n=whole.c_columns or whole.n, k=spec.k, lda=spec.lda, ldb=spec.ldb,
        c_columns=0, aligned=spec.aligned, accumulate=True, from_memory=False,
    )  # fmt: skip
    return whole if alike == spec else None


def call_of_memory_matmul(
    spec: DotSpec, sizes: Sequence[Val], adds: bool, kept: Sequence[Val] = ()
) -> str:
    """The last arguments of its function. kept: see `gemm_groups.kept_panels`"""
    flag = [] if spec.accumulate else [integer_literal(int(adds), "i1")]
    null = Val("null", "ptr")
    keeping = (kept or (null, null, integer_literal(0, "i1"))) if spec.keeps else ()
    return ", ".join(v.typed for v in (*sizes, *flag, *keeping))


def microkernel_function(state: CpuLowering, spec: DotSpec, loc: SourceLoc | None) -> str:
    """The name of a micro-kernel, which is emitted at its first use."""
    name = state.dots.get(spec)
    if name is None:
        name = state.dots[spec] = f"dot{len(state.dots)}"
        # at the first dot: most kernels have none
        emitter = "tile_matmuls" if spec.by_tiles else "blocked_loops"
        microkernel = import_late(f"tilewright.backends.cpu.microkernel.{emitter}")
        for line in microkernel.dot_declarations(spec):
            state.module.declare(line.split("@", 1)[1].split("(", 1)[0], line)
        function, lines = microkernel.dot_function(name, spec), state.code.lines
        # The first dot of the form represents those that share the function.
        state.module.functions.append(lines.placed(function, loc) if lines else function)
    return name


def _matrix(state: CpuLowering, buffer: Buffer, index: Val) -> Val:
    step = state.code.binary("mul", index, integer_literal(buffer.strides[0]))
    return state.code.element_address(buffer.pointer, step, memory_type(buffer.element))


@lowering(ScanOp)
def lower_scan(state: CpuLowering, op: ScanOp) -> None:
    # Before the scan: it writes each element as soon as it is computed.
    outputs = [state.buffer_for(r) for r in op.results]
    scan_along(state.evaluator, state.vector_bits, op, outputs)
    for result, buffer in zip(op.results, outputs, strict=True):
        state.env.buffers[result] = buffer


@lowering(MapOp)
def lower_map(state: CpuLowering, op: MapOp) -> None:
    """One group of elements after the other."""
    *outer, last = shape_of(op.inputs[0].type)
    outputs = [state.buffer_for(result) for result in op.results]
    ev = state.evaluator()
    with ExitStack() as stack:
        coords = [uniform(stack.enter_context(loop(state.code, n)).index) for n in outer]
        start = uniform(stack.enter_context(loop(state.code, last, op.pack)).index)
        places = [(*coords, ev.math.add(start, literal(i))) for i in range(op.pack)]
        args = [ev.lanes(value, place) for value in op.inputs for place in places]
        results = iter(apply_region(ev, op.function, args))
        for output in outputs:
            for place in places:
                write_buffer(ev.math, output, place, next(results))
    state.env.buffers.update(zip(op.results, outputs, strict=True))


@lowering(HistogramOp)
def lower_histogram(state: CpuLowering, op: HistogramOp) -> None:
    """All bins start at 0, then one element after the other is counted; one without a bin adds 0 to
    the first."""
    code, counts = state.code, state.buffer_for(op.result)
    with loop(code, op.bins) as opened:
        address = code.element_address(counts.pointer, opened.index, "i32")
        code.line(f"store i32 0, ptr {address}")
    elements = _ElementLoops(state, op)
    with elements as coords:
        ev = elements.ev
        x = ev.lanes(op.x, coords).base
        counted = code.compare("icmp ult", x, integer_literal(op.bins, x.type))
        if op.mask is not None:
            counted = code.binary("and", counted, ev.lanes(op.mask, coords).base)
        # Emitted here: the load and the store must not leave the loop.
        bin_ = code.let_here(f"select {counted.typed}, {x.typed}, {x.type} 0", x.type)
        address = code.element_address(counts.pointer, bin_, "i32")
        before = code.let_here(f"load i32, ptr {address}", "i32")
        one = code.let_here(f"zext {counted.typed} to i32", "i32")
        after = code.let_here(f"add {before.typed}, {one}", "i32")
        code.line(f"store {after.typed}, ptr {address}")
    state.env.buffers[op.result] = counts


@lowering(BlockTransposeOp)
def lower_block_transpose(state: CpuLowering, op: BlockTransposeOp) -> None:
    """Read rows of square blocks as vectors, transpose the block, write the columns as rows."""
    source, target = op.operands[0], state.buffer_for(op.result)
    *others, rows, columns = shape_of(source.type)
    # 16 rows of fp32 take 16 of AVX-512's 32 registers.
    side = min(16, rows & -rows, columns & -columns)
    if state.record is not None:
        state.record.transposed[op] = side
    ev = state.evaluator(side)
    with ExitStack() as stack:
        outer = [uniform(stack.enter_context(loop(state.code, n)).index) for n in others]
        row = uniform(stack.enter_context(loop(state.code, rows, side)).index)
        column = uniform(stack.enter_context(loop(state.code, columns, side)).index)
        across = Lanes(column.base, int(side > 1), side)
        vectors = [
            ev.vector(source, (*outer, ev.math.add(row, literal(i)), across)) for i in range(side)
        ]
        down = Lanes(row.base, int(side > 1), side)
        prefetcher = Prefetcher(state, side)
        for prefetch in state.prefetches:
            # Stores walk the transposed tile, loads the source.
            line, lanes = (column, down) if prefetch.for_store else (row, across)
            for i in range(side):
                prefetcher.emit(prefetch, (*outer, ev.math.add(line, literal(i)), lanes))
        for j, vector in enumerate(_transposed(state.code, vectors)):
            coords_there = (*outer, ev.math.add(column, literal(j)), down)
            write_buffer(ev.math, target, coords_there, ev.math.wrap(vector))
    state.env.buffers[op.result] = target


def _transposed(code: Code, rows: list[Val]) -> list[Val]:
    """Swap ever smaller off-diagonal blocks of a square of vectors."""
    side = len(rows)
    half = side // 2
    while half:
        for i in (i for i in range(side) if not i & half):
            upper, lower = rows[i], rows[i + half]
            first = [n if not n & half else side + n - half for n in range(side)]
            second = [n + half if not n & half else side + n for n in range(side)]
            rows[i] = code.shuffle(upper, first, lower)
            rows[i + half] = code.shuffle(upper, second, lower)
        half //= 2
    return rows


@lowering(TimerOp)
def lower_timer(state: CpuLowering, op: TimerOp) -> None:
    """The time-stamp counter, which has one rate on all present processors."""
    function = "llvm.readcyclecounter"
    state.module.declare(function, f"declare i64 @{function}()")
    state.env.scalars[op.result] = uniform(state.code.let_here(f"call i64 @{function}()", "i64"))


@lowering(ItemOp)
def lower_item(state: CpuLowering, op: ItemOp) -> None:
    source = op.operands[0]
    coords_there = tuple(literal(0) for _ in shape_of(source.type))
    state.env.scalars[op.result] = state.evaluator().at(source, coords_there)


@lowering(LoadOp)
def lower_volatile_load(state: CpuLowering, op: LoadOp) -> None:
    """A volatile tile load runs here and once."""
    copy = state.buffer_for(op.result)
    copy_into(state, op.result, copy)
    state.env.buffers[op.result] = copy


@lowering(BarrierOp, AssumeOp)
def lower_to_nothing(state: CpuLowering, op: BarrierOp | AssumeOp) -> None:
    """One thread runs a program instance in order, so barriers and assumptions need no code."""


class _ElementLoops:
    """Loops over every element of an op's tile; in steps of up to `lanes` along its last dim."""

    def __init__(self, state: CpuLowering, op: Op, lanes: int = 1) -> None:
        shaped = next(
            (v for v in (*op.operands, *op.results) if isinstance(v.type, TileType)), None
        )
        self.shape = () if shaped is None else shape_of(shaped.type)
        last = self.shape[-1] if self.shape else 1
        self.width = min(lanes, last & -last)
        self.state, self.ev = state, state.evaluator(self.width)
        self.stack = ExitStack()

    def __enter__(self) -> Coords:
        steps = [1] * (len(self.shape) - 1) + [self.width]
        opened = [
            self.stack.enter_context(loop(self.state.code, n, step))
            for n, step in zip(self.shape, steps, strict=False)
        ]
        coords = [uniform(o.index) for o in opened]
        if self.width > 1:
            coords[-1] = Lanes(opened[-1].index, 1, self.width)
        return tuple(coords)

    def __exit__(self, *error: object) -> None:
        self.stack.close()


_ATOMIC_ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release"}


def _atomic_name(kind: str, element: DType) -> str:
    if element.is_float and kind in ("add", "max", "min"):
        return f"f{kind}"
    return f"u{kind}" if kind in ("max", "min") and not element.is_signed else kind


@lowering(AtomicOp, AtomicCasOp)
def lower_atomic(state: CpuLowering, op: AtomicOp | AtomicCasOp) -> None:
    """One element after the other; the CPU's atomics have no vectors."""
    code = state.code
    result = state.buffer_for(op.result) if isinstance(op.result.type, TileType) else None
    elements = _ElementLoops(state, op)
    with elements as coords:
        ev = elements.ev
        pointer, *values = (ev.lanes(v, coords).base for v in op.operands)
        mask = op.mask if isinstance(op, AtomicOp) else None
        after = code.label("after")
        old_slot = _stack_slot(state, op)
        if mask is not None:
            then = code.label("then")
            # A mask is the last operand.
            code.line(f"br i1 {values[-1]}, label %{then}, label %{after}")
            code.line(f"{then}:")
        old = _emit_atomic(state, op, pointer, values)
        code.line(f"store {old.typed}, ptr {old_slot}")
        code.line(f"br label %{after}")
        code.line(f"{after}:")
        element_value = uniform(code.let_here(f"load {old.type}, ptr {old_slot}", old.type))
        if result is not None:
            write_buffer(ev.math, result, coords, element_value)
        else:
            state.env.scalars[op.result] = element_value
    if result is not None:
        state.env.buffers[op.result] = result


def _stack_slot(state: CpuLowering, op: AtomicOp | AtomicCasOp) -> str:
    """Stack memory for the old value of an atomic."""
    # In the entry block: an alloca in a loop would take stack memory in each iteration.
    name = state.code.name("slot")
    state.entry.append(f"{name} = alloca {memory_type(element_of(op.result.type))}")
    return name


def _emit_atomic(
    state: CpuLowering, op: AtomicOp | AtomicCasOp, pointer: Val, values: list[Val]
) -> Val:
    code, element = state.code, dtype_of(op.result.type)
    order = _ATOMIC_ORDERS.get(op.order, "acq_rel")
    kind = memory_type(element)
    if isinstance(op, AtomicOp):
        name = _atomic_name(op.kind, element)
        value = to_memory(code, values[0], element)
        if op.kind == "load":
            text = f"load atomic {kind}, {pointer.typed} {order}, align {element.bytes}"
            return code.let_here(text, kind)
        if op.kind == "store":
            code.line(f"store atomic {value.typed}, {pointer.typed} {order}, align {element.bytes}")
            return value
        # `let_here`: an atomic must not be hoisted, even with operands known outside the loop.
        return code.let_here(f"atomicrmw {name} {pointer.typed}, {value.typed} {order}", kind)
    bits = f"i{8 * element.bytes}"
    expected, new = (code.convert("bitcast", v, bits) for v in values)
    # LLVM permits no release order for a compare-and-swap that fails: it writes nothing.
    failure = "acquire" if order in ("acquire", "acq_rel") else "monotonic"
    text = f"cmpxchg {pointer.typed}, {expected.typed}, {new.typed} {order} {failure}"
    pair = code.let_here(text, f"{{ {bits}, i1 }}")
    old = code.let_here(f"extractvalue {pair.typed}, 0", bits)
    return code.let_here(f"bitcast {old.typed} to {kind}", kind)


@lowering(AssertOp)
def lower_assert(state: CpuLowering, op: AssertOp) -> None:
    """Report the first element that fails to the host and end the program instance."""
    code = state.code
    elements = _ElementLoops(state, op, _LANES_OF_CONDITIONS)
    with elements as coords:
        failing = _failing_lanes(elements.ev, op, coords)
        failed, holds = code.label("failed"), code.label("holds")
        none = code.compare("icmp eq", failing, integer_literal(0, failing.type))
        code.line(f"br {none.typed}, label %{holds}, label %{failed}")
        code.line(f"{failed}:")
        message, place = state.string(packed(op.message, op.loc)), _indices(coords)
        # Of more than three dimensions the first three are reported, which vectors do not cross.
        if 0 < len(coords) <= len(place):
            place[len(coords) - 1] = _first_lane(code, coords[-1], failing)
        _call_console(state, 0, [message, integer_literal(0), zero_bits(), *place])
        code.line("ret void")
        code.line(f"{holds}:")


def _failing_lanes(ev: Evaluator, op: AssertOp, coords: Coords) -> Val:
    """The lanes in which an assertion fails, as bits; one bit for all where they agree."""
    lanes = [ev.lanes(v, coords) for v in op.operands]
    same = all(x.is_uniform for x in lanes)
    condition, *masks = [x.base if same else ev.math.vector(x) for x in lanes]
    one = ev.code.splat(integer_literal(1, "i1"), condition.width)
    failing = ev.code.binary("xor", condition, one)
    for mask in masks:
        failing = ev.code.binary("and", failing, mask)
    if same:
        return failing
    bits = f"i{failing.width}"
    return ev.code.let(f"bitcast {failing.typed} to {bits}", bits, failing)


def _first_lane(code: Code, coord: Lanes, failing: Val) -> Val:
    """The index of the first lane whose bit is set."""
    if failing.type == "i1":
        return coord.base
    lane = code.intrinsic("cttz", failing.type, failing, integer_literal(1, "i1"))
    return code.binary("add", coord.base, code.convert("zext", lane, "i32"))


def zero_bits() -> Val:
    return integer_literal(0, "i64")


def _indices(coords: Coords) -> list[Val]:
    # Console functions take three indices; -1 marks an absent dimension.
    padded = [c.base for c in coords[:3]] + [integer_literal(-1)] * (3 - len(coords))
    return padded


def _call_console(state: CpuLowering, function: int, args: list[Val]) -> None:
    """Call a function of the console table: (text, kind, bits, 3 indices, 3 program ids)."""
    code = state.code
    everything = [*args, *state.program]
    where = code.let_here(f"getelementptr ptr, {state.console.typed}, i64 {function}", "ptr")
    target = code.let_here(f"load ptr, ptr {where}", "ptr")
    types = ", ".join(v.type for v in everything)
    code.line(f"call void ({types}) {target}({', '.join(v.typed for v in everything)})")


@lowering(PrintOp)
def lower_print(state: CpuLowering, op: PrintOp) -> None:
    """One line for each element, through the host so that it reaches Python's stdout."""
    if not op.args:
        text, blank = state.string(op.prefix), [integer_literal(-1)] * 3
        _call_console(
            state, 1, [text, integer_literal(PRINT_KINDS.index("text")), zero_bits(), *blank]
        )
    for number, arg in enumerate(op.args):
        text = state.string(operand_text(op.prefix, op.args, number))
        # 8: `_HEX` of driver/cpu_messages.py.
        code = PRINT_KINDS.index(printed_kind(arg)) + (8 if op.hex else 0)
        shape = shape_of(arg.type)
        with ExitStack() as stack:
            opened = (stack.enter_context(loop(state.code, n)) for n in shape)
            coords = tuple(uniform(o.index) for o in opened)
            bits = _as_bits(state, arg, coords)
            _call_console(state, 1, [text, integer_literal(code), bits, *_indices(coords)])


def _as_bits(state: CpuLowering, value: Value, coords: Coords) -> Val:
    """An element widened to 64 bits: integers extended, floats as the bits of a double."""
    ev, element = state.evaluator(), element_of(value.type)
    element_value = ev.lanes(value, coords).base
    if not isinstance(element, DType):
        return state.code.convert("ptrtoint", element_value, "i64")
    if element.is_float:
        wide = element_value
        if wide.type != "double":
            wide = state.code.convert("fpext", wide, "double")
        return state.code.convert("bitcast", wide, "i64")
    return state.code.convert("sext" if element.is_signed else "zext", element_value, "i64")
