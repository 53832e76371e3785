"""Roles of warps: consumers are the program's warps, the producer is one additional thread.

    bar.sync 0                      mbarriers are initialized
    warp < 8:  setmaxnreg.inc, consumers; their barriers count them alone
    else:      setmaxnreg.dec by the whole warpgroup; one thread: producer

Each of several groups of consumers numbers its own warps from 0, and has its own barrier and shared
memory: its exchanges are at the same offsets from another base.
"""

from __future__ import annotations

from tilewright.backends.nvidia.buffer_ops import AllocOp
from tilewright.backends.nvidia.bulk_ops import MbarriersOp
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering
from tilewright.backends.nvidia.role_ops import BlockOp, BlocksOp, NeighbourOp, RolesOp
from tilewright.ir import Op
from tilewright.llvm import Val, integer_literal

_GROUP_WARPS = 4


@lowering(RolesOp)
def _roles(state: GpuLowering, op: RolesOp) -> None:
    code, (_, fewer, more) = state.code, op.registers
    consume, produce, copy, done = map(code.label, ("consume", "produce", "copy", "done"))
    if op.shares_copies:
        # Nothing is multicast to a block whose mbarriers are not initialized.
        _cluster_barrier(state)
    role = _warpgroup_of_block(state)
    consumers = op.groups * state.warps // _GROUP_WARPS
    consumes = code.let_here(f"icmp ult {role.typed}, {consumers}", "i1")
    code.line(f"br i1 {consumes}, label %{consume}, label %{produce}")
    code.line(f"{produce}:")
    _set_registers(state, "dec", fewer)
    chosen = _is_producer(state, op.groups * state.warps)
    code.line(f"br i1 {chosen}, label %{copy}, label %{done}")
    code.line(f"{copy}:")
    state.is_producer = True
    state.lower_block(state, op.producer)
    state.is_producer = False
    code.line(f"br label %{done}")
    code.line(f"{consume}:")
    _set_registers(state, "inc", more)
    _consume(state, op, role)
    code.line(f"br label %{done}")
    code.line(f"{done}:")
    if op.shares_copies:
        # No block ends while others arrive at its mbarriers.
        _cluster_barrier(state)


def _cluster_barrier(state: GpuLowering) -> None:
    """All threads of a cluster wait for each other."""
    state.asm("barrier.cluster.arrive.relaxed;", "~{memory}", "void")
    state.asm("barrier.cluster.wait;", "~{memory}", "void")


def _consume(state: GpuLowering, op: RolesOp, role: Val) -> None:
    """The consumers' code; role: the number of their warpgroup in the block."""
    shared, state.group = state.shared, integer_literal(0)
    if op.groups > 1:
        code = state.code
        state.group = code.let_here(f"udiv {role.typed}, {state.warps // _GROUP_WARPS}", "i32")
        moved = code.let_here(f"mul i32 {state.group}, {state.offsets[op]}", "i32")
        state.shared = code.let_here(f"add i32 {shared}, {moved}", "i32")
        # The rings are those of all groups.
        for ring in _before(op):
            for result in ring.results:
                place = f"sub i32 {state.scalar(result)}, {moved}"
                state.set_registers(result, [code.let_here(place, "i32")])
    state.set_registers(op.consumers.args[0], [Val(state.group.text, "i32", BODY)])
    state.lower_block(state, op.consumers)
    state.shared, state.group = shared, None


def _before(op: RolesOp) -> list[Op]:
    """Setup before the roles: rings and mbarriers."""
    assert op.parent is not None
    return [other for other in op.parent if isinstance(other, AllocOp | MbarriersOp)]


def _warpgroup_of_block(state: GpuLowering) -> Val:
    """The number of this thread's warpgroup in the block, uniform to ptxas."""
    name, code = "llvm.nvvm.shfl.sync.idx.i32", state.code
    state.module.declare(name, f"declare i32 @{name}(i32, i32, i32, i32)")
    own = code.let_here(f"lshr i32 %thread, {(32 * _GROUP_WARPS).bit_length() - 1}", "i32")
    return code.let_here(f"call i32 @{name}(i32 -1, {own.typed}, i32 0, i32 31)", "i32")


def _set_registers(state: GpuLowering, direction: str, count: int) -> None:
    state.asm(f"setmaxnreg.{direction}.sync.aligned.u32 {count};", "~{memory}", "void")


def _is_producer(state: GpuLowering, warps: int) -> Val:
    """Whether this is the chosen thread of the first warp after the consumers."""
    name, code = "llvm.nvvm.elect.sync", state.code
    state.module.declare(name, f"declare {{ i32, i1 }} @{name}(i32)")
    warp = code.let_here("lshr i32 %thread, 5", "i32")
    first = code.let_here(f"icmp eq i32 {warp}, {warps}", "i1")
    elected = code.let_here(f"call {{ i32, i1 }} @{name}(i32 -1)", "{ i32, i1 }")
    chosen = code.let_here(f"extractvalue {elected.typed}, 1", "i1")
    return Val(code.let_here(f"and i1 {first}, {chosen}", "i1").text, "i1", BODY)


@lowering(BlockOp)
def _block(state: GpuLowering, op: BlockOp) -> None:
    state.set_registers(op.result, [state.grid_register("ctaid", 0)])


@lowering(NeighbourOp)
def _neighbour(state: GpuLowering, op: NeighbourOp) -> None:
    """Clusters have two blocks or one, and the first of two has an even number."""
    code, blocks = state.code, state.register("cluster.nctarank")
    other = code.let_here(f"sub i32 {blocks}, 1", "i32")
    found = code.let_here(f"xor i32 {state.scalar(op.program)}, {other}", "i32")
    state.set_registers(op.result, [found])


@lowering(BlocksOp)
def _blocks(state: GpuLowering, op: BlocksOp) -> None:
    state.set_registers(op.result, [state.grid_register("nctaid", 0)])
