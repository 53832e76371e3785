"""Control flow: loops and branches with carried scalars (phis) and carried tiles (buffers).

A carried tile has two buffers. The body reads the current one and writes the next; the pointers are
swapped from one iteration to the next, so nothing is copied. If the only reader of the current tile
is the dot that makes the next one (`acc = dot(a, b, acc)`), or the nest that computes it element by
element, one buffer is enough.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering, lowering
from tilewright.backends.cpu.lower.emit_memory_matmul import MemoryMatmulEmitter
from tilewright.backends.cpu.lower.evaluate_lanes import Evaluated
from tilewright.backends.cpu.lower.fusion import FusionPlanner
from tilewright.backends.cpu.lower.gemm_groups import accumulators_of_group, group_spec
from tilewright.backends.cpu.lower.lane_values import Address, Lanes
from tilewright.backends.cpu.lower.lowering_record import DotForm
from tilewright.backends.cpu.lower.matmuls_from_memory import MemoryMatmul, memory_matmul
from tilewright.backends.cpu.lower.memory_order import reads_columns
from tilewright.backends.cpu.lower.non_fusible import copy_into, microkernel_function
from tilewright.backends.cpu.lower.split_blocks import separate_loops
from tilewright.backends.cpu.lower.vector_access import Buffer
from tilewright.backends.cpu.microkernel import DotSpec
from tilewright.backends.cpu.program_waits import LEAVE
from tilewright.ir import Block, Value
from tilewright.ir.types import DType, TileType, dtype_of, element_of, shape_of
from tilewright.llvm import Val, llvm_type
from tilewright.ops import ConstantOp, DotOp, ForOp, IfOp, StopOp, WhileOp
from tilewright.support import operating_system
from tilewright.support.data_class import dataclass


@dataclass(slots=True)
class _Carried:
    """One carried value: its phi, and for a tile the phi of the buffer that is written next."""

    phi: Val
    init: Val
    following: Val | None = None
    spare: Val | None = None
    spare_init: Val | None = None
    buffer: Buffer | None = None
    spare_buffer: Buffer | None = None

    def lines(self, before: str, latch: str) -> list[str]:
        """The phi instructions of the loop's head."""
        text = [self._phi(self.phi, self.init, self.following, before, latch)]
        if self.spare is not None and self.spare_init is not None:
            text.append(self._phi(self.spare, self.spare_init, self.phi, before, latch))
        return text

    @staticmethod
    def _phi(phi: Val, init: Val, following: Val | None, before: str, latch: str) -> str:
        assert following is not None
        return f"{phi} = phi {phi.type} [ {init}, %{before} ], [ {following}, %{latch} ]"


def scalar_operand(evaluated: Evaluated) -> Val:
    assert not isinstance(evaluated, Address) or evaluated.offset is None
    return evaluated.base


def _bind(state: CpuLowering, value: Value, base: Val) -> None:
    """Bind a scalar IR value to an LLVM operand."""
    element, facts = element_of(value.type), state.alignments.get(value)
    if not isinstance(element, DType):
        state.env.scalars[value] = Address(base)
        return
    multiple = facts.every if element.is_integer and facts is not None else 1
    state.env.scalars[value] = Lanes(base, 0, multiple)


def _scalar(state: CpuLowering, value: Value) -> Val:
    return scalar_operand(state.env.scalars[value])


def _carry(
    state: CpuLowering,
    init: Value,
    in_place: bool = False,
    strides: tuple[int, ...] | None = None,
    filled: bool = True,
    buffer: Buffer | None = None,
) -> _Carried:
    """Set up one carried value before a loop. strides: of a tile's buffers; filled: its buffer
    holds the initial value; buffer: the one to use, if not a new one"""
    code = state.code
    if not isinstance(init.type, TileType):
        phi = Val(code.name("c"), llvm_type(element_of(init.type)))
        return _Carried(phi, _scalar(state, init))
    shape, element = shape_of(init.type), element_of(init.type)
    assert isinstance(init.type, TileType)
    # A copy even where the tile has a buffer: the loop overwrites this one.
    current = buffer or state.allocate(shape, element, strides)
    if filled:
        copy_into(state, init, current)
    if in_place:
        return _Carried(current.pointer, current.pointer, buffer=current)
    # The copy is complete: the spare may use the memory of blocks that only the copy needed.
    state.scratch.step()
    spare = state.allocate(shape, element, strides)
    phi, spare_phi = Val(code.name("now"), "ptr"), Val(code.name("next"), "ptr")
    # The pointers are swapped, so either buffer may be in either block.
    blocks = (*current.blocks, *spare.blocks)
    return _Carried(
        phi, current.pointer, spare=spare_phi, spare_init=spare.pointer,
        buffer=Buffer(phi, shape, current.strides, element, blocks),
        spare_buffer=Buffer(spare_phi, shape, current.strides, element, blocks),
    )  # fmt: skip


def _enter(state: CpuLowering, carried: Sequence[_Carried], args: Sequence[Value]) -> None:
    """Bind the arguments of the body (or the results) to the carried values."""
    for slot, arg in zip(carried, args, strict=True):
        if slot.buffer is None:
            _bind(state, arg, slot.phi)
        else:
            state.env.buffers[arg] = slot.buffer


def _reserve(state: CpuLowering, carried: Sequence[_Carried], yielded: Sequence[Value]) -> None:
    """Assign the buffers of the next iteration to the values of the body that the loop carries."""
    for slot, value in zip(carried, yielded, strict=True):
        target = slot.spare_buffer or slot.buffer
        # Arguments have buffers, and a value may be carried twice: `_leave` copies those.
        if target is not None and value.op is not None and value not in state.assigned_buffers:
            state.assigned_buffers[value] = target


def _leave(state: CpuLowering, carried: Sequence[_Carried], yielded: Sequence[Value]) -> None:
    """At the end of the body, set the values of the next iteration."""
    for slot, value in zip(carried, yielded, strict=True):
        if slot.buffer is None:
            slot.following = _scalar(state, value)
            continue
        # Both blocks are live to the end of the body, where the pointers are swapped.
        slot.buffer.touch()
        if slot.spare_buffer is None:
            copy_into(state, value, slot.buffer)
        else:
            copy_into(state, value, slot.spare_buffer)
            slot.following = slot.spare


def _head(state: CpuLowering, position: int, lines: list[str]) -> None:
    """Insert the phis of a loop's head, whose operands the body defines."""
    # Section 0: control flow is in no loop of a nest.
    state.code.sections[0][position:position] = lines


def _phis(carried: Sequence[_Carried], before: str, latch: str) -> list[str]:
    moving = (slot for slot in carried if slot.following is not None)
    return [line for slot in moving for line in slot.lines(before, latch)]


def _finish(state: CpuLowering, carried: Sequence[_Carried], results: Sequence[Value]) -> None:
    _enter(state, carried, results)


def _only_summed(arg: Value, yielded: Value) -> bool:
    """Whether a carried tile is only the accumulator of the dot that yields the next one."""
    op = yielded.op
    # Any other reader might be after the dot, which overwrites the tile.
    return isinstance(op, DotOp) and op.acc is arg and list(arg.uses) == [op]


def _updated_in_place(state: CpuLowering, loop: ForOp) -> list[bool]:
    """For each carried value, whether only the nest that computes the next one reads it, each
    element before it is written: then one buffer is enough, which saves cache."""
    if not any(isinstance(arg.type, TileType) for arg in loop.carried):
        return [False] * len(loop.carried)
    planner = FusionPlanner(loop.body, state.alignments)
    state.plans[loop.body] = planner.run()
    readers = (planner.uses_by_nest(arg).values() for arg in loop.carried)
    return [
        all(use.elementwise and value in use.nest.materialized for use in uses)
        for uses, value in zip(readers, _yielded(loop.body), strict=True)
    ]


def _strides_of_carried(state: CpuLowering, loop: ForOp, number: int) -> tuple[int, ...] | None:
    """Column-major strides, for a matrix that is computed from loads with contiguous columns.

    The sum over rows of a matrix whose rows are the second dimension of the tile would scatter its
    lanes in row-major order. Dots have layouts of their own.
    """
    yielded = _yielded(loop.body)[number]
    shape, names = shape_of(yielded.type), (loop.carried[number], yielded, loop.results[number])
    if len(shape) != 2 or any(isinstance(user, DotOp) for name in names for user in name.uses):
        return None
    in_columns = reads_columns(yielded, state.alignments, loop.carried)
    return (1, shape[0]) if in_columns else None


def _yielded(block: Block) -> list[Value]:
    return block.terminator.operands


class _Count:
    """The test of a counted loop, which also exits where the next index would wrap.

    Where that is possible, the test after an iteration is `index < upper - step`, saturating, and
    the loop's head reads its result; elsewhere the head tests `index < upper`.
    """

    def __init__(self, state: CpuLowering, loop: ForOp, lower: Val, upper: Val) -> None:
        self.code = state.code
        self.upper = upper
        self.sign = "s" if dtype_of(loop.lower.type).is_signed else "u"
        self.carried: list[_Carried] = []
        self.limit: Val | None = None
        if _may_wrap(loop):
            step = _scalar(state, loop.step)
            go = self.code.compare(f"icmp {self.sign}lt", lower, upper)
            self.carried.append(_Carried(Val(self.code.name("go"), "i1"), go))
            # Saturating: upper - step may be below the smallest number of the type.
            self.limit = self.code.intrinsic(f"{self.sign}sub.sat", upper.type, upper, step)

    def go(self, index: Val) -> Val:
        """Whether there is another iteration, at the head of the loop."""
        if self.carried:
            return self.carried[0].phi
        return self.code.compare(f"icmp {self.sign}lt", index, self.upper)

    def following(self, index: Val, step: Val) -> Val:
        """The next index, at the end of the body."""
        if self.limit is None:
            # `_may_wrap` has excluded a wrap here, so LLVM may rely on that.
            return self.code.binary(f"add n{self.sign}w", index, step)
        self.carried[0].following = self.code.compare(f"icmp {self.sign}lt", index, self.limit)
        return self.code.binary("add", index, step)


def _may_wrap(loop: ForOp) -> bool:
    """Whether an index below the upper bound may be within a step of the end of its type."""
    step, upper = loop.step.op, loop.upper.op
    if not isinstance(step, ConstantOp):
        return True
    highest = dtype_of(loop.upper.type).max_int
    bound = upper.value if isinstance(upper, ConstantOp) else highest
    return bound - 1 + step.value > highest


def _split_before_loop(state: CpuLowering, carried: Sequence[_Carried]) -> None:
    """Split the block before a loop; see split_blocks.py."""
    integers = [slot for slot in carried if slot.init.type.startswith("i")]
    starts = separate_loops(state, [slot.init for slot in integers])
    for slot, start in zip(integers, starts, strict=True):
        slot.init = start


@lowering(ForOp)
def lower_for(state: CpuLowering, op: ForOp) -> None:
    """for (index = lower; index < upper; index += step) body"""
    code = state.code
    yielded = _yielded(op.body)
    lower, upper, step = (_scalar(state, v) for v in (op.lower, op.upper, op.step))
    matmul = memory_matmul(state, op)
    accumulators = None if matmul is None else accumulators_of_group(state, matmul)
    carried = [
        _carry(
            state,
            init,
            isinstance(init.type, TileType) and (in_place or _only_summed(arg, value)),
            _strides_of_carried(state, op, n),
            filled=matmul is None or matmul.spec.accumulate,
            buffer=accumulators,
        )
        for n, (init, arg, value, in_place) in enumerate(
            zip(op.inits, op.carried, yielded, _updated_in_place(state, op), strict=True)
        )
    ]
    whole = None
    if matmul is not None:
        whole = _spec_of_group(state, matmul, accumulators)
        lower = _multiply_whole_iterations(
            state, matmul, carried, lower, upper, accumulators, whole
        )
    _split_before_loop(state, carried)
    before, head, body, latch, done = (code.label(n) for n in
                                       ("before", "head", "body", "latch", "done"))  # fmt: skip
    for line in (f"br label %{before}", f"{before}:"):
        code.line(line)
    # Before the head: its first test and its limit are computed once.
    count = _Count(state, op, lower, upper)
    for line in (f"br label %{head}", f"{head}:"):
        code.line(line)
    position = len(code.sections[0])
    index = _Carried(Val(code.name("i"), lower.type), lower)
    go = count.go(index.phi)
    code.line(f"br i1 {go}, label %{body}, label %{done}")
    code.line(f"{body}:")
    _bind(state, op.index, index.phi)
    _enter(state, carried, op.carried)
    with state.scratch.loop():
        _reserve(state, carried, yielded)
        around, state.done_from_memory = state.done_from_memory, whole
        state.lower_block(state, op.body)
        state.done_from_memory = around
        _leave(state, carried, yielded)
    code.line(f"br label %{latch}")
    code.line(f"{latch}:")
    index.following = count.following(index.phi, step)
    code.line(f"br label %{head}")
    code.line(f"{done}:")
    _head(state, position, _phis([*count.carried, index, *carried], before, latch))
    _finish(state, carried, op.results)


def _spec_of_group(state: CpuLowering, matmul: MemoryMatmul, of_group: Buffer | None) -> DotSpec:
    if of_group is None or state.group is None:
        return matmul.spec
    return group_spec(matmul.spec, state.group.most_rows, state.group.most_columns)


def _multiply_whole_iterations(
    state: CpuLowering,
    found: MemoryMatmul,
    carried: Sequence[_Carried],
    lower: Val,
    upper: Val,
    of_group: Buffer | None,
    whole: DotSpec,
) -> Val:
    """Run whole iterations as one matmul, see emit_memory_matmul.py; returns where the loop starts
    after it. whole: of the group"""
    name = microkernel_function(state, whole, found.loop.loc)
    if state.record is not None:
        programs = (whole.m // found.spec.m, whole.n // found.spec.n)
        (dot,) = (op for op in found.loop.body if isinstance(op, DotOp))
        state.record.dot(dot, DotForm(whole, from_memory=True, programs=programs))
    starts = [lower, *(slot.init for slot in carried)]
    emitter = MemoryMatmulEmitter(state, found, starts, upper, of_group is not None)
    number, accumulators = next(
        (n, s.buffer) for n, s in enumerate(carried) if s.buffer is not None
    )

    def fill() -> None:
        if not found.spec.accumulate:
            copy_into(state, found.loop.inits[number], accumulators)

    rest = emitter.emit(name, whole, accumulators.pointer, fill)
    for slot, start in zip(carried, rest[1:], strict=True):
        if slot.buffer is None:
            slot.init = start
    return rest[0]


@lowering(WhileOp)
def lower_while(state: CpuLowering, op: WhileOp) -> None:
    """Test at the head; the body and the results are bound to the values that the condition
    yields."""
    code = state.code
    passed, yielded = _yielded(op.before)[1:], _yielded(op.body)
    carried = [_carry(state, init, in_place=False) for init in op.inits]
    _split_before_loop(state, carried)
    before, head, body, latch, done = (code.label(n) for n in
                                       ("before", "head", "body", "latch", "done"))  # fmt: skip
    for line in (f"br label %{before}", f"{before}:", f"br label %{head}", f"{head}:"):
        code.line(line)
    position = len(code.sections[0])
    _enter(state, carried, op.before.args)
    with state.scratch.loop():
        state.lower_block(state, op.before)
        go = _scalar(state, _yielded(op.before)[0])
        _pass_on(state, passed, op)
        code.line(f"br i1 {go}, label %{body}, label %{done}")
        code.line(f"{body}:")
        if op in state.waits:
            _exit_after_timeout(state, state.waits.index(op))
        _reserve(state, carried, yielded)
        state.lower_block(state, op.body)
        _leave(state, carried, yielded)
    code.line(f"br label %{latch}")
    code.line(f"{latch}:")
    code.line(f"br label %{head}")
    code.line(f"{done}:")
    _head(state, position, _phis(carried, before, latch))


def _exit_after_timeout(state: CpuLowering, number: int) -> None:
    """End the program if it has waited for too long; see waiting_loops.py."""
    code = state.code
    leave, stay = code.label("leave"), code.label("stay")
    poll = code.let_here("load atomic i32, ptr %poll monotonic, align 4", "i32")
    told = code.let_here(f"icmp uge {poll.typed}, {LEAVE}", "i1")
    code.line(f"br {told.typed}, label %{leave}, label %{stay}")
    code.line(f"{leave}:")
    code.line(f"store atomic i32 {LEAVE + 1 + number}, ptr %poll monotonic, align 4")
    code.line("ret void")
    code.line(f"{stay}:")
    if not operating_system.IS_WINDOWS:
        # The awaited program may need this CPU: another thread, or another process.
        code.module.declare("sched_yield", "declare i32 @sched_yield() nounwind")
        code.line("call i32 @sched_yield()")


def _pass_on(state: CpuLowering, values: Sequence[Value], loop: WhileOp) -> None:
    """Bind the arguments of the body, and the results, to the values that the condition yields."""
    for value, arg, result in zip(values, loop.body.args, loop.results, strict=True):
        if isinstance(value.type, TileType):
            buffer = state.env.buffers.get(value)
            if buffer is None:
                buffer = state.allocate(shape_of(value.type), element_of(value.type))
                copy_into(state, value, buffer)
            state.env.buffers[arg] = state.env.buffers[result] = buffer
        else:
            evaluated = state.env.scalars[value]
            state.env.scalars[arg] = state.env.scalars[result] = evaluated


@lowering(IfOp)
def lower_if(state: CpuLowering, op: IfOp) -> None:
    """Both branches write tile results to one buffer; scalars become phis."""
    code = state.code
    buffers = [
        state.allocate(shape_of(r.type), element_of(r.type))
        if isinstance(r.type, TileType)
        else None
        for r in op.results
    ]
    labels = [code.label(n) for n in ("then", "else", "join")]
    condition = _scalar(state, op.condition)
    code.line(f"br i1 {condition}, label %{labels[0]}, label %{labels[1]}")
    ends: list[tuple[str, list[Val | None]]] = []
    # Not strict: the third label is that of the join.
    for label, block in zip(labels, (op.then, op.orelse), strict=False):
        code.line(f"{label}:")
        yielded = _yielded(block)
        for buffer, value in zip(buffers, yielded, strict=True):
            # A value from outside the branch exists already and is copied.
            if buffer is not None and value.op is not None and value.op.parent is block:
                state.assigned_buffers.setdefault(value, buffer)
        state.lower_block(state, block)
        # A block of its own: the phis need the label of the last block, and a branch may have many.
        ends.append((code.label("end"), [
            _branch_result(state, v, b) for v, b in zip(yielded, buffers, strict=True)
        ]))  # fmt: skip
        code.line(f"br label %{ends[-1][0]}")
        code.line(f"{ends[-1][0]}:")
        code.line(f"br label %{labels[2]}")
    code.line(f"{labels[2]}:")
    _join(state, op.results, buffers, ends)


@lowering(StopOp)
def lower_stop(state: CpuLowering, op: StopOp) -> None:
    """The code after it in the block is unreachable, but needs a label."""
    code, record = state.code, _scalar(state, op.record)
    # The first word last, since others test it.
    for index, word in reversed(list(enumerate(op.words))):
        value = _scalar(state, word)
        place = code.let_here(f"getelementptr {value.type}, {record.typed}, i64 {index}", "ptr")
        code.line(f"store {value.typed}, ptr {place}")
    code.line("ret void")
    code.line(f"{code.label('stopped')}:")


def _branch_result(state: CpuLowering, value: Value, buffer: Buffer | None) -> Val | None:
    if buffer is None:
        return _scalar(state, value)
    copy_into(state, value, buffer)
    return None


def _join(
    state: CpuLowering,
    results: Sequence[Value],
    buffers: Sequence[Buffer | None],
    ends: list[tuple[str, list[Val | None]]],
) -> None:
    for i, (result, buffer) in enumerate(zip(results, buffers, strict=True)):
        if buffer is not None:
            state.env.buffers[result] = buffer
            continue
        sources = ", ".join(f"[ {values[i]}, %{label} ]" for label, values in ends)
        type_ = llvm_type(element_of(result.type))
        _bind(state, result, state.code.let_here(f"phi {type_} {sources}", type_))
