"""The passes between the frontend's tile IR and code for NVIDIA GPUs, in order: read this first."""

from __future__ import annotations

from tilewright.backends.manifest import StageContext
from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.contracts import (
    front_end,
    legal_arithmetic,
    legal_copies,
    legal_instructions,
    legal_layouts,
    legal_products,
    padded_tiles,
    selected_products,
)
from tilewright.backends.nvidia.passes.assign_layouts import AssignLayouts
from tilewright.backends.nvidia.passes.delay_product_waits import DelayProductWaits
from tilewright.backends.nvidia.passes.expand_conversions import ExpandConversions
from tilewright.backends.nvidia.passes.expand_exchanges import ExpandExchanges
from tilewright.backends.nvidia.passes.infer_quotient_rounding import InferQuotientRounding
from tilewright.backends.nvidia.passes.insert_global_barriers import InsertGlobalBarriers
from tilewright.backends.nvidia.passes.insert_shared_barriers import InsertSharedBarriers
from tilewright.backends.nvidia.passes.legalize_arithmetic import LegalizeArithmetic
from tilewright.backends.nvidia.passes.legalize_casts import LegalizeCasts
from tilewright.backends.nvidia.passes.legalize_dots import LegalizeDots
from tilewright.backends.nvidia.passes.mark_read_only_loads import MarkReadOnlyLoads
from tilewright.backends.nvidia.passes.order_bulk_stores import OrderBulkStores
from tilewright.backends.nvidia.passes.pad_tiles import PadTiles
from tilewright.backends.nvidia.passes.promote_copies import PromoteCopies
from tilewright.backends.nvidia.passes.restart_sums import RestartSums
from tilewright.backends.nvidia.passes.rotate_products import RotateProducts
from tilewright.backends.nvidia.passes.select_bulk_loads import CheckBulkLoads, SelectBulkLoads
from tilewright.backends.nvidia.passes.select_bulk_stores import CheckBulkStores, SelectBulkStores
from tilewright.backends.nvidia.passes.select_products import SelectProducts
from tilewright.backends.nvidia.passes.share_copies import ShareCopies
from tilewright.backends.nvidia.passes.shorten_divisions import ShortenDivisions
from tilewright.backends.nvidia.passes.skip_full_masks import SkipFullMasks
from tilewright.backends.nvidia.passes.software_pipeline import SoftwarePipeline
from tilewright.backends.nvidia.passes.specialize_warps import SpecializeWarps
from tilewright.backends.nvidia.passes.split_products import SplitProducts
from tilewright.backends.nvidia.passes.split_reductions import SplitReductions
from tilewright.backends.nvidia.passes.split_tiles import SplitTiles
from tilewright.backends.nvidia.passes.version_iterations import VersionIterations
from tilewright.ir import Contract, Pipeline, Step
from tilewright.transforms import (
    SHARED,
    Canonicalize,
    Cse,
    Dce,
    ExpandDescriptors,
    LeaveIdlePrograms,
    Licm,
    Unroll,
)

_SHORT_LOOP = 1024
"""Elements of a thread in all iterations of a loop that becomes straight code."""


def front_pipeline(capability: int, bulk_loads: str = "all", warps: int = 4) -> Pipeline:
    """The target-independent passes, then legalization for an architecture (10 * major + minor).

    bulk_loads: see CommonOptions; warps: of a program instance.
    """
    arch = row_for(capability)
    dots = LegalizeDots(capability=capability)
    arithmetic = LegalizeArithmetic(capability=capability)
    casts = LegalizeCasts(capability=capability)
    flatten = Unroll(short=_SHORT_LOOP * 32 * warps)
    own = (
        Step(LeaveIdlePrograms(), "one branch for masks of whole rows, which fold below"),
        Step(flatten, "loads of all iterations in flight; first ones, and counts, fold below"),
        Step(dots, "first: its expansions need legalization themselves", legal_products(arch)),
        Step(InferQuotientRounding(), "the next expands functions to comparisons of its own"),
        Step(arithmetic, "GPUs compute exp2 and f16, not sin and fp8", legal_arithmetic(arch)),
        Step(Canonicalize(), "fold the constants of expansions and the casts around them"),
        Step(casts, "last: canonicalization would merge its casts", legal_instructions(arch)),
        Step(Cse(), "expansions of one function repeat their constants and steps"),
        Step(Dce(), "remove values that only expanded ops used"),
    )
    before = "before descriptors are expanded"
    loads = Step(SelectBulkLoads(capability=capability), before)
    stores = Step(SelectBulkStores(capability=capability), before)
    kept = (stores,) if bulk_loads == "none" else (loads, stores)
    odd = Step(ExpandDescriptors(odd_blocks=True), "padding knows pointers, not descriptors")
    split = Step(SplitTiles(), "before padding, which it spares products")
    pad = Step(PadTiles(), "then: all that follows knows powers of two only", padded_tiles())
    return Pipeline("nvidia-front", (odd, split, pad, *kept, *SHARED.steps, *own), front_end())


def options_pipeline(context: StageContext) -> Pipeline:
    """The layout pipeline of a launch's target and options."""
    options, arch = context.options, row_for(int(context.target.arch))
    # Roles move registers, so their number is theirs to say; clusters run one block.
    roles = options.maxnreg is None and options.num_ctas == 1
    persistent = False if options.launch_cooperative_grid else options.persistent
    stages, chosen = options.num_stages, options.bulk_loads
    registers = options.maxnreg
    return layout_pipeline(arch, options.num_warps, stages, roles, chosen, persistent, registers)


def layout_pipeline(
    arch: Arch,
    warps: int,
    stages: int,
    roles: bool = True,
    bulk_loads: str = "all",
    persistent: bool | None = None,
    registers: int | None = None,
) -> Pipeline:
    """Layouts, and what depends on them: asynchronous copies and barriers.

    warps: of a program instance; stages: slots of a loop's buffers, where the loop does not say;
    roles: whether further warps may ask for copies; bulk_loads: see CommonOptions; persistent:
    whether blocks with such warps may run several programs; registers: the most of a thread, if it
    may have fewer than it can.
    """
    specialize = SpecializeWarps(stages, warps, arch.capability, persistent) if roles else None
    copied = stages if arch.cp_async else 0
    layouts = AssignLayouts(warps=warps, access=arch.access_bytes, stages=copied)
    expand = ExpandConversions(capability=arch.capability)
    exchanges = ExpandExchanges(warps=warps, capability=arch.capability)
    shared_barriers = InsertSharedBarriers(capability=arch.capability)
    fragments = "coalesced accesses, tensor-core fragments, few conversions"
    products = SelectProducts(warps=warps, capability=arch.capability)
    steps = (
        Step(MarkReadOnlyLoads(), "first: barriers between threads are no part of the source yet"),
        Step(products, "layouts depend on what computes them", selected_products(arch)),
        *_bulk_accesses(arch, stages, roles, bulk_loads),
        Step(RestartSums(), "before layouts: the zeros need none", selected_products(arch)),
        *_rotated_products(arch, warps, stages, registers),
        Step(layouts, fragments, legal_layouts(arch, warps)),
        Step(SplitReductions(), "layouts say which warps hold parts of what is reduced"),
        Step(Cse(), "two uses of a value may have got equal conversions"),
        Step(Licm(), "move conversions of loop invariants out of loops"),
        Step(Dce(), "remove copies of values in layouts that nothing uses"),
        *(_async_copies(arch, warps, stages, specialize) if arch.cp_async else ()),
        *_delayed_waits(arch),
        Step(SplitProducts(), "behind pipelining, which says what is read from shared memory"),
        Step(InsertGlobalBarriers(), "needs layouts: which thread accesses which address"),
        *((Step(OrderBulkStores(), _BULK_ORDER),) if arch.tma else ()),
        Step(ShortenDivisions(), "behind all that looks at how addresses follow from programs"),
        Step(exchanges, _EXCHANGES, legal_copies(arch, warps)),
        Step(expand, "conversions are exchanges, too", legal_copies(arch, warps)),
        Step(shared_barriers, "last: later passes must not add or remove uses of shared memory"),
    )
    return Pipeline("nvidia-layouts", steps, legal_instructions(arch))


def _rotated_products(
    arch: Arch, warps: int, stages: int, registers: int | None
) -> tuple[Step, ...]:
    """Dependent products beside those of the next iteration."""
    if not arch.wgmma:
        return ()
    most = arch.registers_thread if registers is None else min(registers, arch.registers_thread)
    rotation = RotateProducts(stages, warps, arch.capability, most)
    return (
        Step(rotation, "before layouts: carried operands need some", selected_products(arch)),
        Step(SkipFullMasks(warps=warps), "what masks leave is for the tensor cores' idle time"),
        Step(Dce(), "remove masks that only branches compute now"),
    )


def _delayed_waits(arch: Arch) -> tuple[Step, ...]:
    """Waits for products of warpgroups, where they are used."""
    why = "behind pipelining, which orders copies and products"
    straight = "where waits stand: those in straight code are moved on by ptxas"
    steps = (Step(DelayProductWaits(), why), Step(VersionIterations(), straight))
    return steps if arch.wgmma else ()


_EXCHANGES = "exchanges are ops on buffers, between which barriers can stand"
_BULK_ORDER = "before barriers in shared memory: waits for the copy engine bring some"


def _bulk_accesses(arch: Arch, stages: int, roles: bool, loads: str) -> tuple[Step, ...]:
    """Those by the copy engine: what it does not make after all is expanded."""
    if not arch.tma:
        return ()
    promotion = PromoteCopies(stages=stages, capability=arch.capability, roles=roles)
    check = CheckBulkLoads(stages=stages, capability=arch.capability, roles=roles)
    where = "behind the choice of products, since only these read what is copied so"
    return (
        Step(CheckBulkStores(), "fragments of products go through shared memory anyway"),
        *([Step(promotion, where, selected_products(arch))] if loads == "all" else ()),
        Step(check, "only products of warpgroups read what is copied so"),
        # Not simplified here: canonicalization would merge the casts that were legalized.
        Step(ExpandDescriptors(), "what the copy engine does not copy"),
    )


def _roles(arch: Arch, specialize: SpecializeWarps, copies: Contract) -> tuple[Step, ...]:
    """A producer for copies by the copy engine, and clusters that share them."""
    by_roles = "no warp that multiplies asks for copies, no barrier stands in the loop"
    share = Step(ShareCopies(arch.capability), "behind the loop over programs, which it follows")
    return Step(specialize, by_roles, copies), share


def _async_copies(
    arch: Arch, warps: int, stages: int, specialize: SpecializeWarps | None
) -> tuple[Step, ...]:
    """Loads for later iterations, by the copy engine or by `cp.async`."""
    copies = legal_copies(arch, warps)
    pipelining = SoftwarePipeline(stages=stages, warps=warps, capability=arch.capability)
    latency = "hide the latency of global memory behind earlier products"
    return (
        *(_roles(arch, specialize, copies) if specialize and arch.setmaxnreg else ()),
        Step(pipelining, latency, copies),
        Step(Dce(), "remove address computations of loads that became copies"),
    )
