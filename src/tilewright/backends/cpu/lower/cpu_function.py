"""Lowering of a tile IR function to the LLVM text of one CPU kernel.

The entry unpacks the arguments and runs a range of program instances in a loop, as
`driver.thread_pool` requires. The loop contains the code of one program, since LLVM compiles a
second function slower. A kernel whose programs are batched into one GEMM (`gemm_groups.py`) has its
program in a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tilewright.analysis import analyze_alignment
from tilewright.backends.cpu.lower import (
    gemm_groups,
    index_functions,
    non_fusible,
    structured_control,
)
from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering, lowering
from tilewright.backends.cpu.lower.fused_loop_nest import emit_loop_nest
from tilewright.backends.cpu.lower.fusion import FusionPlanner, LoopNest
from tilewright.backends.cpu.lower.lane_values import Address, Lanes, uniform
from tilewright.backends.cpu.lower.lowering_record import LoweringRecord
from tilewright.backends.cpu.lower.matmul_windows import loop_of_windows
from tilewright.backends.cpu.lower.program_cost import programs_alone
from tilewright.backends.cpu.lower.program_order import program_order
from tilewright.backends.cpu.lower.region_functions import define_region_functions
from tilewright.backends.cpu.lower.split_blocks import split_long_block
from tilewright.backends.cpu.lower.streaming_stores import bytes_of_program, releases
from tilewright.backends.cpu.lower.vector_access import Access, memory_type, store
from tilewright.backends.cpu.lower.waiting_loops import run_together, spin_loops
from tilewright.backends.cpu.microkernel import TILE_CONFIGURATION, VectorUnit
from tilewright.ir import Block, Function, Op, Trait, Value
from tilewright.ir.types import PointerType, element_of
from tilewright.llvm import LINE_TABLES, Code, DebugLines, ModuleText, Val, llvm_type
from tilewright.ops import (
    ConditionOp,
    LoadOp,
    NumProgramsOp,
    ProgramIdOp,
    ReturnOp,
    StoreOp,
    YieldOp,
    pointee,
)
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested

HANDLER_MODULES = (index_functions, non_fusible, structured_control)
"""Modules whose import registers lowering handlers or index functions."""


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """LLVM text of a kernel and the properties that its launch needs.

    alone: see `program_cost`; together, waits: how programs run, and their spin loops, see
    `waiting_loops`
    """

    text: str
    symbol: str
    scratch_bytes: int
    alone: int
    together: int
    waits: tuple[Op, ...]


def lower_function(
    function: Function,
    unit: VectorUnit,
    attributes: str,
    contract: bool = True,
    stream_above: int = 0,
    fetch_above: int = 0,
    record: LoweringRecord | None = None,
) -> LoweredKernel:
    """Lower a prepared function.

    attributes: LLVM's function attributes for this machine; contract: a * b + c may round once;
    stream_above: bytes that a grid touches above which stores are non-temporal (0: never);
    fetch_above: bytes above which reductions prefetch their loads (0: never); record: of choices
    """
    module = ModuleText()
    lines = DebugLines.of(function, LINE_TABLES)
    code = Code(module, "contract " if contract else "", lines, unit.extrema)
    state = CpuLowering(module, code, unit, lower_block, analyze_alignment(function))
    parameters = [_parameter(state, i, arg) for i, arg in enumerate(function.args)]
    state.program = tuple(Val(f"%pid{axis}", "i32") for axis in range(3))
    state.grid = tuple(Val(f"%grid{axis}", "i32") for axis in range(3))
    state.waits, state.record = spin_loops(function), record
    order = program_order(function)
    state.steps = order.steps
    _bind_program_ids(state, function, order.axis)
    state.streams, state.fetches = stream_above > 0 and not releases(function), fetch_above > 0
    define_region_functions(state, function)
    lower_block(state, function.body)
    if state.group is not None:
        for block in (state.group.accumulators, state.group.kept):
            if block is not None:
                block.touch()
    # After the body: only now are the lifetimes of the blocks known, and whether there are
    # streaming stores.
    addresses, scratch_bytes = state.scratch.assign_offsets()
    following = f"{_NEXT_PROGRAM} = add i32 %pid{order.axis}, 1"
    first, body = [*state.entry, *addresses], [following, *code.sections[0]]
    place = "" if lines is None else f" !dbg !{lines.function}"
    if state.group is not None:
        signature = _passed(state, parameters)
        # LLVM takes longer to find that it is too large to be inlined
        head = f"define internal void @program({signature}) noinline {attributes}{place} {{"
        module.functions.append("\n".join([head, "entry:", *first, *body, "}"]))
        call = f"call void @program({signature})"
        first = gemm_groups.record_lines()
        loop, place = partial(loop_of_windows, state.group, call), ""
        # LLVM takes longer to optimise the loop, whose micro-kernels are functions of their own
        attributes = f"{attributes} noinline optnone"
    else:
        loop = partial(_program_loop, [*map(_to_next_program, body), f"{_RAN}:"], order.axis)
    head = f"{_head(function, attributes)}{place} {{"
    flags = _flags_of_grid(state, function, stream_above, fetch_above)
    entry = _entry(state, function, [*flags, *first], loop)
    module.functions.append("\n".join([head, *entry]))
    module.footer += lines.footer() if lines else ()
    # No triple and data layout: `compile_ir` sets those of its target.
    alone = programs_alone(function, unit.bits)
    together, waits = run_together(function), tuple(state.waits)
    return LoweredKernel(module.text("", ""), function.name, scratch_bytes, alone, together, waits)


_NEXT_PROGRAM = "%pid_next"
_RAN = "ran"
"""Label after a program in the loop."""


def _passed(state: CpuLowering, parameters: Sequence[str]) -> str:
    """The parameters of a program, which have the same names in the entry."""
    ids = [v.typed for v in (*state.program, *state.grid)]
    flags = ("i1 %streaming", "i1 %fetching")
    waits = ("ptr %poll",) if state.waits else ()
    rest = ("ptr noalias %scratch", "ptr %console", *waits, *flags, *gemm_groups.PARAMETERS)
    return ", ".join([*parameters, *ids, *rest])


def _to_next_program(line: str) -> str:
    """A line of a program, with a branch to the next program instead of a return."""
    return line.replace("ret void", f"br label %{_RAN}", 1) if line.startswith("ret void") else line


def _bind_program_ids(state: CpuLowering, function: Function, first_along: int) -> None:
    """Fill the environments of prefetches: this program instance, and the next one."""
    following = Val(_NEXT_PROGRAM, "i32")
    for ahead in (state.this_program, state.next_program):
        ahead.scalars.update(state.env.scalars)
    for op in function.walk():
        if isinstance(op, (ProgramIdOp, NumProgramsOp)):
            axis = op.axis
            current = (state.program if isinstance(op, ProgramIdOp) else state.grid)[axis]
            # At the end of a row the guess is wrong and the prefetch is useless.
            is_next = isinstance(op, ProgramIdOp) and axis == first_along
            state.this_program.scalars[op.result] = uniform(current)
            state.next_program.scalars[op.result] = uniform(following if is_next else current)


def _parameter(state: CpuLowering, index: int, arg: Value) -> str:
    element = element_of(arg.type)
    name = Val(f"%arg{index}", llvm_type(element))
    if isinstance(element, PointerType):
        state.env.scalars[arg] = Address(name)
        return name.typed
    facts = arg.facts or {}
    state.env.scalars[arg] = Lanes(name, 0, facts.get("multiple_of") or 1)
    return name.typed


def _flags_of_grid(
    state: CpuLowering, function: Function, stream_above: int, fetch_above: int
) -> list[str]:
    """Compute %streaming and %fetching: whether the grid touches more memory than the last-level
    cache holds, and more than the caches of a core. A program may have the flags as parameters in
    any case."""
    limits = {
        "%streaming": stream_above if state.streamed_nests else 0,
        "%fetching": fetch_above if state.fetching_nests else 0,
    }
    lines = [
        "%plane = mul i64 %wide.0, %wide.1",
        "%programs = mul i64 %plane, %wide.2",
        f"%touched = mul i64 %programs, {bytes_of_program(function)}",
    ]
    flags = [
        f"{name} = icmp ugt i64 %touched, {limit}" if limit else f"{name} = and i1 false, false"
        for name, limit in limits.items()
    ]
    return [*lines, *flags] if any(limits.values()) else flags


def _head(function: Function, attributes: str) -> str:
    """int64 NAME(args, begin, end, grid, scratch, poll): the programs begin..end-1.

    Returns the next one to run: `end`, or earlier where *poll was set after a program had ended.
    """
    return (
        f"define i64 @{function.name}(ptr %args, i64 %begin, i64 %end, ptr %grid, "
        f"ptr noalias %scratch, ptr %poll) {attributes}"
    )


def _entry(
    state: CpuLowering,
    function: Function,
    first: Sequence[str],
    loop: Callable[[list[str]], list[str]],
) -> list[str]:
    """The body of the entry. first: lines before the loop over programs; loop: gets the lines after
    it"""
    lines = ["entry:"]
    for i, arg in enumerate(function.args):
        lines.append(f"%slot.{i} = getelementptr i64, ptr %args, i64 {i}")
        element = element_of(arg.type)
        kind = llvm_type(element)
        stored = memory_type(element)
        raw = f"%arg{i}" if stored == kind else f"%raw.{i}"
        lines.append(f"{raw} = load {stored}, ptr %slot.{i}")
        if stored != kind:
            lines.append(f"%arg{i} = icmp ne {stored} {raw}, 0")
    count = len(function.args)
    lines += [
        f"%table = getelementptr i64, ptr %args, i64 {count}",
        "%console = load ptr, ptr %table",
    ]
    for axis in range(3):
        lines.append(f"%grid.{axis} = getelementptr i32, ptr %grid, i64 {axis}")
        lines.append(f"%grid{axis} = load i32, ptr %grid.{axis}")
        lines.append(f"%wide.{axis} = zext i32 %grid{axis} to i64")
    fence = []
    # Non-temporal stores are weakly ordered: a fence publishes them to other threads.
    if state.streamed_nests:
        state.module.declare("llvm.x86.sse.sfence", "declare void @llvm.x86.sse.sfence()")
        fence = ["call void @llvm.x86.sse.sfence()"]
    configure, release = _tile_lines(state)
    return [*lines, *first, *configure, *loop([*fence, *release])]


def _tile_lines(state: CpuLowering) -> tuple[list[str], list[str]]:
    """Lines before and after the programs if dots use AMX tiles; released at the end, since
    otherwise each context switch would save them."""
    if not any(spec.by_tiles for spec in state.dots):
        return [], []
    state.module.declare("llvm.x86.ldtilecfg", "declare void @llvm.x86.ldtilecfg(ptr)")
    state.module.declare("llvm.x86.tilerelease", "declare void @llvm.x86.tilerelease()")
    data = ", ".join(f"i8 {byte}" for byte in TILE_CONFIGURATION)
    state.module.globals.append(f"@tiles = private constant [64 x i8] [{data}], align 64")
    return ["call void @llvm.x86.ldtilecfg(ptr @tiles)"], ["call void @llvm.x86.tilerelease()"]


def _program_loop(program: Sequence[str], first_along: int, at_end: list[str]) -> list[str]:
    """The loop over the programs, which exits after one if *poll is set. program: lines that run
    one program and continue in the block `_RAN`; first_along: the fastest axis; at_end: lines after
    the loop"""
    axes = (first_along, *(axis for axis in range(3) if axis != first_along))
    place, ids, step = _counted_ids(program, axes)
    return [
        "%any = icmp slt i64 %begin, %end",
        "br i1 %any, label %place, label %done",
        "place:",
        *place,
        "br label %head",
        "head:",
        f"%id = phi i64 [ %begin, %place ], [ %next, %{_RAN} ]",
        *ids,
        *program,
        *step,
        "%next = add i64 %id, 1",
        "%more = icmp slt i64 %next, %end",
        # Monotonic: no other data depends on the flag, so no order is needed.
        "%polled = load atomic i32, ptr %poll monotonic, align 4",
        "%runs = icmp eq i32 %polled, 0",
        "%goes.on = and i1 %more, %runs",
        "br i1 %goes.on, label %head, label %done",
        "done:",
        f"%reached = phi i64 [ %begin, %entry ], [ %next, %{_RAN} ]",
        *at_end,
        "ret i64 %reached",
        "}",
    ]


def _counted_ids(
    program: Sequence[str], axes: Sequence[int]
) -> tuple[list[str], list[str], list[str]]:
    """Program ids in a grid whose axes run in this order: those of the first program, phis, and
    those of the next one. Only for the axes that the program uses, since LLVM takes time for the
    others."""
    last = max(n for n, axis in enumerate(axes) if n == 0 or _mentions(program, f"%pid{axis}"))
    place, ids, step = list[str](), list[str](), list[str]()
    left, carry = "%begin", "1"
    for n, axis in enumerate(axes[: last + 1]):
        at, size = f"%at{axis}", f"%wide.{axis}"
        ids.append(f"%pid{axis} = phi i32 [ {at}.first, %place ], [ {at}.next, %{_RAN} ]")
        if n == 2:  # no program is beyond the last axis
            place.append(f"{at}.first = trunc i64 {left} to i32")
            step.append(f"{at}.next = add i32 %pid{axis}, {carry}")
            break
        place += [
            f"{at}.wide = urem i64 {left}, {size}",
            f"{at}.first = trunc i64 {at}.wide to i32",
        ]
        step += [
            # Counted, since two divisions take as long as a small program.
            f"{at}.after = add i32 %pid{axis}, {carry}",
            f"{at}.ends = icmp eq i32 {at}.after, %grid{axis}",
            f"{at}.next = select i1 {at}.ends, i32 0, i32 {at}.after",
        ]
        if n < last:
            place.append(f"{at}.left = udiv i64 {left}, {size}")
            step.append(f"{at}.carry = zext i1 {at}.ends to i32")
            left, carry = f"{at}.left", f"{at}.carry"
    return place, ids, step


def _mentions(lines: Sequence[str], name: str) -> bool:
    return any(name in line for line in lines)


@nested
def lower_block(state: CpuLowering, block: Block) -> None:
    """Lower the ops of a block in the order of its plan."""
    attachment = state.code.attachment
    plan = state.plans.pop(block, None) or FusionPlanner(block, state.alignments).run()
    for step in plan.steps:
        state.scratch.step()
        for op in step.sinks[:1] if isinstance(step, LoopNest) else [step]:
            state.code.locate(op.loc)
        if not isinstance(step, LoopNest):
            lower_scalar(state, step)
        elif step.fused:
            emit_loop_nest(state, step)
        else:
            state.prefetches = step.prefetches
            lowering.lower(state, step.sinks[0])
        if not isinstance(step, ReturnOp):  # a return has ended the last block
            split_long_block(state)
    # The op around the block continues at its own location.
    state.code.attachment = attachment


def lower_scalar(state: CpuLowering, op: Op) -> None:
    """Lower an op without tiles."""
    # The handler of loads is for volatile tiles; a scalar load is evaluated like any value.
    if lowering.has(op) and not isinstance(op, LoadOp):
        lowering.lower(state, op)
    elif isinstance(op, LoadOp) or Trait.PURE in op.traits:
        ev = state.evaluator()
        for result in op.results:
            state.env.scalars[result] = ev.at(result, ())
    else:
        raise lowering.missing(op)


@lowering(StoreOp)
def _store(state: CpuLowering, op: StoreOp) -> None:
    ev = state.evaluator()
    mask = None if op.mask is None else ev.lanes(op.mask, ())
    access = Access(ev.at(op.pointer, ()), element_of(pointee(op.pointer.type)), mask)
    if state.record is not None:
        state.record.access(op, access, 1)
    store(ev.math, access, ev.lanes(op.stored, ()))


@lowering(ProgramIdOp, NumProgramsOp)
def _grid(state: CpuLowering, op: ProgramIdOp | NumProgramsOp) -> None:
    current = state.program if isinstance(op, ProgramIdOp) else state.grid
    state.env.scalars[op.result] = uniform(current[op.axis])


@lowering(YieldOp, ConditionOp)
def _terminator(state: CpuLowering, op: YieldOp | ConditionOp) -> None:
    """No code: the lowering of the op around the region reads the operands itself."""


@lowering(ReturnOp)
def _return(state: CpuLowering, op: ReturnOp) -> None:
    state.code.line("ret void")
