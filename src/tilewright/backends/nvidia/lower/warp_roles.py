"""Roles of warps: the consumers are the program's warps, the producer is one thread more.

bar.sync 0                      mbarriers are there
warp < 8:  setmaxnreg.inc, consumers; their barriers count them alone
else:      setmaxnreg.dec by the whole warpgroup; one thread: producer
"""

from __future__ import annotations

from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering
from tilewright.backends.nvidia.lower.warpgroup_mma import warpgroup
from tilewright.backends.nvidia.role_ops import BlockOp, BlocksOp, RolesOp
from tilewright.llvm import Val

_CONSUMERS_BARRIER = 1
"""Number of the barrier that the consumers have for themselves; 0 is that of all."""


@lowering(RolesOp)
def _roles(state: GpuLowering, op: RolesOp) -> None:
    code, (_, fewer, more) = state.code, op.registers
    consume, produce, copy, done = map(code.label, ("consume", "produce", "copy", "done"))
    state.barrier()
    group = warpgroup(state)
    consumes = code.let_here(f"icmp ult {group.typed}, {state.warps // 4}", "i1")
    code.line(f"br i1 {consumes}, label %{consume}, label %{produce}")
    code.line(f"{produce}:")
    _set_registers(state, "dec", fewer)
    code.line(f"br i1 {_is_producer(state)}, label %{copy}, label %{done}")
    code.line(f"{copy}:")
    state.is_producer = True
    state.lower_block(state, op.producer)
    state.is_producer = False
    code.line(f"br label %{done}")
    code.line(f"{consume}:")
    _set_registers(state, "inc", more)
    state.barrier_text = f"bar.sync {_CONSUMERS_BARRIER}, {32 * state.warps};"
    state.lower_block(state, op.consumers)
    code.line(f"br label %{done}")
    code.line(f"{done}:")


def _set_registers(state: GpuLowering, direction: str, count: int) -> None:
    state.asm(f"setmaxnreg.{direction}.sync.aligned.u32 {count};", "~{memory}", "void")


def _is_producer(state: GpuLowering) -> Val:
    """Whether this is the chosen thread of the first warp behind the consumers."""
    name, code = "llvm.nvvm.elect.sync", state.code
    state.module.declare(name, f"declare {{ i32, i1 }} @{name}(i32)")
    first = code.let_here(f"icmp eq i32 {state.warp}, {state.warps}", "i1")
    elected = code.let_here(f"call {{ i32, i1 }} @{name}(i32 -1)", "{ i32, i1 }")
    chosen = code.let_here(f"extractvalue {elected.typed}, 1", "i1")
    return Val(code.let_here(f"and i1 {first}, {chosen}", "i1").text, "i1", BODY)


@lowering(BlockOp)
def _block(state: GpuLowering, op: BlockOp) -> None:
    state.set_registers(op.result, [state.grid_register("ctaid", 0)])


@lowering(BlocksOp)
def _blocks(state: GpuLowering, op: BlocksOp) -> None:
    state.set_registers(op.result, [state.grid_register("nctaid", 0)])
