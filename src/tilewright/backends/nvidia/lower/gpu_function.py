"""From a kernel with layouts to the LLVM text of one GPU function."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.analysis import MemoryForms, analyze_alignment
from tilewright.backends.nvidia.arch import Arch
from tilewright.backends.nvidia.lower import (
    buffers,
    bulk_copies,
    bulk_stores,
    combine_regions,
    control_flow,
    device_records,
    float_remainder,
    fma_dot,
    fp8_casts,
    gather,
    global_atomics,
    global_memory,
    inline_assembly,
    layout_conversion,
    per_register_ops,
    shared_histogram,
    tensor_cores,
    warp_reductions,
    warp_roles,
    warp_scans,
    warp_sort,
    warpgroup_mma,
)
from tilewright.backends.nvidia.lower.element_groups import lower_in_groups
from tilewright.backends.nvidia.lower.gpu_lowering import BODY, GpuLowering, lowering
from tilewright.backends.nvidia.message_records import PrintedText
from tilewright.backends.nvidia.ops import ConvertOp
from tilewright.backends.nvidia.role_ops import PRODUCER_WARPS, BlocksOp, RolesOp
from tilewright.backends.nvidia.tensor_maps import TensorMapSource
from tilewright.ir import Block, Effect, Function, Op, Trait, ops_with
from tilewright.ir.types import element_of
from tilewright.llvm import (
    LINE_DIRECTIVES,
    Code,
    DebugLines,
    ModuleText,
    Val,
    data_layout,
    llvm_type,
)
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested

HANDLER_MODULES = (
    buffers,
    bulk_copies,
    bulk_stores,
    combine_regions,
    control_flow,
    device_records,
    float_remainder,
    fma_dot,
    fp8_casts,
    gather,
    global_atomics,
    global_memory,
    inline_assembly,
    layout_conversion,
    per_register_ops,
    tensor_cores,
    shared_histogram,
    warp_reductions,
    warp_roles,
    warp_scans,
    warp_sort,
    warpgroup_mma,
)
"""Modules whose import registers lowering handlers."""


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """LLVM text of a kernel and what its launch needs.

    asserts, prints: see message_records.py; tensor_maps: the contents of the parameters after the
    kernel's own; threads: of a block, with those of further roles; registers: of each of them at
    the start, 0 where ptxas is free to choose; is_persistent: blocks run several programs, whose
    grid is passed by three parameters in front of the maps; shares_copies: as of RolesOp.
    """

    text: str
    symbol: str
    asserts: tuple[str, ...] = ()
    prints: tuple[PrintedText, ...] = ()
    tensor_maps: tuple[TensorMapSource, ...] = ()
    threads: int = 0
    registers: int = 0
    is_persistent: bool = False
    shares_copies: bool = False


_MEETINGS = {Effect.SHARED, Effect.BARRIER}
"""Ops at which warps synchronize."""
_MAP = 'ptr byval([128 x i8]) align 64 "nvvm.grid_constant"'
"""A parameter that holds a tensor map."""


def lower_function(
    function: Function,
    arch: Arch,
    warps: int,
    offsets: Mapping[Op, int],
    maxnreg: int | None = None,
    contract: bool = True,
    num_ctas: int = 1,
) -> LoweredKernel:
    """Lower a kernel whose tiles all have layouts, for `warps` warps, without other roles.

    offsets: in shared memory, of the ops that exchange data; see allocate_shared.py;
    num_ctas: blocks of the cluster that runs a program: all but its first one end at once
    """
    module = ModuleText()
    lines = DebugLines.of(function, LINE_DIRECTIVES)
    code = Code(module, "contract " if contract else "", lines)
    # Section 0 is the entry, section 1 (BODY) all that follows it.
    code.sections = [[], []]
    facts = analyze_alignment(function)
    forms = MemoryForms(function, (ConvertOp,))
    state = GpuLowering(module, code, arch, warps, facts, forms, lower_block, function.args)
    state.num_ctas = num_ctas
    state.warps_meet = bool(offsets or ops_with(function, _MEETINGS))
    state.offsets = dict(offsets)
    state.roles = next((op for op in function.body if isinstance(op, RolesOp)), None)
    state.is_persistent = any(isinstance(op, BlocksOp) for op in function.walk())
    parameters: list[str] = []
    for i, arg in enumerate(function.args):
        name = Val(f"%arg{i}", llvm_type(element_of(arg.type)), BODY)
        state.set_registers(arg, [name])
        parameters.append(name.typed)
    lower_block(state, function.body)
    parameters += [f"i32 %grid{axis}" for axis in range(3 if state.is_persistent else 0)]
    parameters += [f"{_MAP} %map{number}" for number in state.tensor_maps.values()]
    place = "" if lines is None else f" !dbg !{lines.function}"
    head = f"define ptx_kernel void @{function.name}({', '.join(parameters)}) #0{place} {{"
    entry = [line for lines in state.entry.values() for line in lines]
    # In this order: what was moved to section 0 uses lane and warp.
    threads, entry_registers = _roles_of(state.roles, 32 * warps)
    groups = 1 if state.roles is None else state.roles.groups
    thread = _thread(module, threads, 32 * warps if groups > 1 else 0)
    maps = _prefetched(len(state.tensor_maps), threads)
    first = [*thread, *maps, *entry, *code.sections[0]]
    body = [head, "entry:", *first, *_start(module, num_ctas), "start:", *code.sections[1], "}"]
    module.functions.append("\n".join(body))
    attributes = _attributes(threads, maxnreg or entry_registers, num_ctas)
    module.footer += [*attributes, *(lines.footer() if lines else ())]
    text = module.text(arch.target.triple, data_layout(arch.target))
    return LoweredKernel(
        text,
        function.name,
        tuple(state.asserts),
        tuple(state.prints),
        tuple(state.tensor_maps),
        threads,
        entry_registers or 0,
        state.is_persistent,
        shares_copies=state.roles is not None and state.roles.shares_copies,
    )


def _roles_of(roles: RolesOp | None, threads: int) -> tuple[int, int | None]:
    """Threads of a block, and registers of each at its start, None where ptxas is free to choose;
    threads: of the program."""
    if roles is None:
        return threads, None
    # Without a known number ptxas ignores what moves registers between warps (C7508).
    return roles.groups * threads + 32 * PRODUCER_WARPS, roles.registers[0]


def _thread(module: ModuleText, threads: int, group: int) -> list[str]:
    """Thread, lane, and warp in the program, and the base of shared memory.

    threads: of the block; group: of a group of consumers, 0 where there is one.
    """
    name = "llvm.nvvm.read.ptx.sreg.tid.x"
    module.declare(name, f"declare i32 @{name}()")
    # External and without a size: dynamic shared memory, whose size the launch sets.
    module.globals.append("@shared_memory = external addrspace(3) global [0 x i8], align 1024")
    pointer = "ptrtoint ptr addrspace(3) @shared_memory to i32"
    # Extents of tiles are powers of two, and so are numbers of warps that share them.
    own = f"and i32 %thread, {group - 1}" if group else "or i32 %thread, 0"
    return [
        f"%thread = call range(i32 0, {threads}) i32 @{name}()",
        f"%tid = {own}",
        "%lane = and i32 %thread, 31",
        "%warp = lshr i32 %tid, 5",
        f"%shared = {pointer}",
    ]


def _prefetched(maps: int, threads: int) -> list[str]:
    """Fetch tensor maps while mbarriers are made and coordinates computed: the first thread of the
    last warp does, as that of the first one makes the mbarriers."""
    if not maps:
        return []
    text = '"@$1 prefetch.tensormap [$0];", "l,b,~{memory}"'
    fetch = [f"call void asm sideeffect {text}(ptr %map{i}, i1 %fetches) #1" for i in range(maps)]
    return [f"%fetches = icmp eq i32 %thread, {threads - 32}", *fetch]


def _start(module: ModuleText, num_ctas: int) -> list[str]:
    """The end of the entry: the first block of a cluster continues."""
    if num_ctas == 1:
        return ["br label %start"]
    name = "llvm.nvvm.read.ptx.sreg.cluster.ctarank"
    module.declare(name, f"declare i32 @{name}()")
    return [
        f"%rank = call i32 @{name}()",
        "%first = icmp eq i32 %rank, 0",
        "br i1 %first, label %start, label %idle",
        "idle:",
        "ret void",
    ]


def _attributes(threads: int, maxnreg: int | None, num_ctas: int) -> list[str]:
    limit = f' "nvvm.maxnreg"="{maxnreg}"' if maxnreg else ""
    cluster = f' "nvvm.cluster_dim"="{num_ctas},1,1"' if num_ctas > 1 else ""
    return [
        f'attributes #0 = {{ nounwind "nvvm.reqntid"="{threads}"{limit}{cluster} }}',
        # convergent: LLVM must not move barriers and shuffles under other conditions
        "attributes #1 = { convergent nounwind }",
    ]


@nested
def lower_block(state: GpuLowering, block: Block) -> None:
    """Lower the ops of a block in order. Handlers rely on the contracts of the layout pipeline."""
    attachment = state.code.attachment
    lower_in_groups(state, block, _lower_op)
    # The op around the block continues, at its own place.
    state.code.attachment = attachment


def _lower_op(state: GpuLowering, op: Op) -> None:
    state.code.locate(op.loc)
    if Trait.ELEMENTWISE in op.traits and not lowering.has(op):
        per_register_ops.lower_by_register(state, op)
    else:
        lowering.lower(state, op)
