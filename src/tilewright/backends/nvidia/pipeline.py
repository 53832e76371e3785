"""The passes between the frontend's tile IR and code for NVIDIA GPUs, in order: read this first.

One list of steps serves all architectures and options: `when` selects those of a compilation. The
properties of ir_properties.py order them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tilewright.backends.manifest import StageContext
from tilewright.backends.nvidia.arch import Arch, row_for
from tilewright.backends.nvidia.ir_properties import (
    FRONT_END,
    GLOBAL_ORDER,
    LAYOUTS,
    LEGAL_ARITHMETIC,
    LEGAL_CASTS,
    LEGAL_DOTS,
    MERGED,
    NO_EXCHANGES,
    OWN_BARRIERS,
    POWERS_OF_TWO,
    PROGRAM_ADDRESSES,
    ROLES,
    SCHEDULED,
    SELECTED_MMA,
    SHARED_ORDER,
    STORE_WAITS,
    TMA_ONLY,
    WGMMA_WAITS,
    bound,
)
from tilewright.backends.nvidia.passes.assign_layouts import AssignLayouts
from tilewright.backends.nvidia.passes.infer_noncoherent_loads import InferNoncoherentLoads
from tilewright.backends.nvidia.passes.insert_global_barriers import InsertGlobalBarriers
from tilewright.backends.nvidia.passes.insert_shared_barriers import InsertSharedBarriers
from tilewright.backends.nvidia.passes.insert_tma_store_waits import InsertTmaStoreWaits
from tilewright.backends.nvidia.passes.legalize_arithmetic import LegalizeArithmetic
from tilewright.backends.nvidia.passes.legalize_casts import LegalizeCasts
from tilewright.backends.nvidia.passes.legalize_dots import LegalizeDots
from tilewright.backends.nvidia.passes.legalize_shapes import LegalizeShapes
from tilewright.backends.nvidia.passes.lower_exchanges import LowerExchanges
from tilewright.backends.nvidia.passes.lower_non_tma_descriptors import LowerNonTmaDescriptors
from tilewright.backends.nvidia.passes.multicast_tma import MulticastTma
from tilewright.backends.nvidia.passes.peel_mask_selects import PeelMaskSelects
from tilewright.backends.nvidia.passes.predicate_accumulator_init import PredicateAccumulatorInit
from tilewright.backends.nvidia.passes.select_mma import SelectMma
from tilewright.backends.nvidia.passes.select_tma import SelectTma
from tilewright.backends.nvidia.passes.simplify_pid_division import SimplifyPidDivision
from tilewright.backends.nvidia.passes.sink_wgmma_waits import SinkWgmmaWaits
from tilewright.backends.nvidia.passes.skew_dependent_dots import SkewDependentDots
from tilewright.backends.nvidia.passes.software_pipeline import SoftwarePipeline
from tilewright.backends.nvidia.passes.specialize_warps import SpecializeWarps
from tilewright.backends.nvidia.passes.split_dot_k import SplitDotK
from tilewright.backends.nvidia.passes.split_reductions import SplitReductions
from tilewright.backends.nvidia.passes.strip_mine_tiles import StripMineTiles
from tilewright.backends.nvidia.passes.version_loop_body import VersionLoopBody
from tilewright.backends.nvidia.spill_recovery import OMITTED, WARPS
from tilewright.ir import Pass, Pipeline, Property, Step
from tilewright.support.data_class import dataclass
from tilewright.transforms import (
    AS_WRITTEN,
    CANONICAL,
    CLEAN_UP,
    DESCRIPTORS,
    INVARIANTS_HOISTED,
    NO_LAYOUTS,
    POINTERS,
    Canonicalize,
    Cse,
    FullUnroll,
    GuardInactivePrograms,
    Licm,
)

_SHORT_LOOP = 1024
"""The most elements per thread in all iterations of a fully unrolled loop."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The parameters of the passes of one compilation.

    warps: of a program; stages: slots of a loop's buffers, unless the loop has its own number;
    roles: whether further warps may issue copies; bulk_loads: see CommonOptions; persistent:
    whether blocks with such warps may run several programs, None if the pass decides; registers:
    the limit for a thread, None for the architecture's; omitted: names of passes to leave out
    """

    arch: Arch
    warps: int = 4
    stages: int = 3
    roles: bool = True
    bulk_loads: str = "all"
    persistent: bool | None = None
    registers: int | None = None
    omitted: tuple[str, ...] = ()

    @property
    def capability(self) -> int:
        """10 * major + minor."""
        return self.arch.capability

    @property
    def most_registers(self) -> int:
        """The limit of a thread."""
        limit = self.arch.registers_thread
        return limit if self.registers is None else min(self.registers, limit)

    @property
    def has_roles(self) -> bool:
        """Whether warps are specialized."""
        return self.roles and self.arch.cp_async and self.arch.setmaxnreg


def choices_of(context: StageContext) -> Choices:
    """The choices of a launch's target and options."""
    options = context.options
    return Choices(
        row_for(int(context.target.arch)),
        context.metadata.get(WARPS) or options.num_warps,
        options.num_stages,
        # Roles redistribute registers, so maxnreg excludes them; clusters run one block.
        roles=options.maxnreg is None and options.num_ctas == 1,
        bulk_loads=options.bulk_loads,
        persistent=False if options.launch_cooperative_grid else options.persistent,
        registers=options.maxnreg,
        omitted=tuple(context.metadata.get(OMITTED, ())),
    )


_Make = Callable[[Choices], Pass]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A step of compilations for which `when` holds; see Step."""

    make: _Make
    does: str
    needs: tuple[Property, ...] = ()
    gives: tuple[Property, ...] = ()
    ends: tuple[Property, ...] = ()
    when: Callable[[Choices], bool] = lambda c: True

    def step(self, c: Choices) -> Step:
        """The step, with the contracts of its properties."""
        gives = tuple(bound(each, c.arch, c.warps) for each in self.gives)
        return Step(self.make(c), self.does, self.needs, gives, self.ends)


_FRONT: tuple[_Entry | Step, ...] = (
    _Entry(
        lambda c: LegalizeShapes(),
        "decompose odd tiles that feed a dot into power-of-two tiles, and pad all others",
        needs=(DESCRIPTORS,),
        gives=(POWERS_OF_TWO,),
    ),
    _Entry(
        lambda c: LowerNonTmaDescriptors(c.capability, loads=c.bulk_loads != "none"),
        "lower descriptor accesses that TMA cannot issue to masked pointer accesses",
        needs=(DESCRIPTORS, POWERS_OF_TWO),
        gives=(POINTERS,),
        ends=(DESCRIPTORS,),
    ),
    *CLEAN_UP,
    _Entry(
        lambda c: GuardInactivePrograms(),
        "exit early where the mask of a whole program is false",
        needs=(POWERS_OF_TWO,),
    ),
    _Entry(
        lambda c: FullUnroll(limit=_SHORT_LOOP * 32 * c.warps),
        "fully unroll short loops, so that loads of all iterations are in flight",
        ends=(CANONICAL,),
    ),
    _Entry(
        lambda c: LegalizeDots(capability=c.capability),
        "rewrite dots to what tensor cores compute, or to FMA dots",
        gives=(LEGAL_DOTS,),
        ends=(CANONICAL,),
    ),
    _Entry(
        lambda c: LegalizeArithmetic(capability=c.capability),
        "expand functions and arithmetic that are no instructions",
        needs=(LEGAL_DOTS,),
        gives=(LEGAL_ARITHMETIC,),
        ends=(CANONICAL,),
    ),
    _Entry(
        lambda c: Canonicalize(),
        "fold the constants of expansions, and the casts around them",
        gives=(CANONICAL,),
        ends=(LEGAL_CASTS,),
    ),
    _Entry(
        lambda c: LegalizeCasts(capability=c.capability),
        "expand casts that are no instructions",
        needs=(LEGAL_ARITHMETIC, CANONICAL),
        gives=(LEGAL_CASTS,),
    ),
    _Entry(lambda c: Cse(), "merge constants and steps that expansions repeat"),
    _Entry(
        lambda c: StripMineTiles(warps=c.warps),
        "loop over the parts of tiles that do not fit into registers",
        needs=(POWERS_OF_TWO, LEGAL_CASTS),
    ),
)
_FRONT_GIVEN = (AS_WRITTEN, DESCRIPTORS, NO_LAYOUTS, FRONT_END)
_FRONT_ENSURES = (POWERS_OF_TWO, POINTERS, LEGAL_CASTS)

_LAYOUT: tuple[_Entry, ...] = (
    _Entry(
        lambda c: InferNoncoherentLoads(),
        "mark loads of memory that the kernel never writes, for ld.global.nc",
        needs=(OWN_BARRIERS,),
    ),
    _Entry(
        lambda c: SelectMma(warps=c.warps, capability=c.capability),
        "select wgmma or mma for each dot, and put wgmma's operands in shared memory",
        needs=(LEGAL_CASTS, NO_LAYOUTS),
        gives=(SELECTED_MMA,),
    ),
    _Entry(
        lambda c: SelectTma(c.stages, c.capability, c.roles, pointers=c.bulk_loads == "all"),
        "select accesses that TMA issues, and lower the other descriptor accesses",
        needs=(SELECTED_MMA, PROGRAM_ADDRESSES),
        gives=(TMA_ONLY,),
        when=lambda c: c.arch.tma,
    ),
    _Entry(
        lambda c: PredicateAccumulatorInit(),
        "predicate the initialization of accumulators",
        needs=(SELECTED_MMA, NO_LAYOUTS),
    ),
    _Entry(
        lambda c: SkewDependentDots(c.stages, c.warps, c.capability, c.most_registers),
        "skew dependent dots into the next iteration",
        needs=(SELECTED_MMA, NO_LAYOUTS, TMA_ONLY),
        when=lambda c: c.arch.wgmma,
    ),
    _Entry(
        lambda c: PeelMaskSelects(warps=c.warps),
        "branch around selects whose mask is true for the whole tile",
        needs=(NO_LAYOUTS,),
        when=lambda c: c.arch.wgmma,
    ),
    _Entry(
        lambda c: AssignLayouts(
            warps=c.warps,
            access=c.arch.access_bytes,
            stages=c.stages if c.arch.cp_async else 0,
        ),
        "assign layouts: coalesced accesses, MMA fragments, few conversions",
        needs=(SELECTED_MMA, TMA_ONLY),
        gives=(LAYOUTS,),
        ends=(NO_LAYOUTS, MERGED),
    ),
    _Entry(
        lambda c: SplitReductions(),
        "reduce within warps first, then across them",
        needs=(LAYOUTS,),
        ends=(MERGED,),
    ),
    _Entry(lambda c: Cse(), "merge equal layout conversions", needs=(LAYOUTS,), gives=(MERGED,)),
    _Entry(
        lambda c: Licm(),
        "hoist conversions of loop-invariant values",
        needs=(MERGED,),
        gives=(INVARIANTS_HOISTED,),
    ),
    _Entry(
        lambda c: SpecializeWarps(c.stages, c.warps, c.capability, c.persistent),
        "move TMA loads of loops to a producer warp, and run programs persistently",
        needs=(LAYOUTS, PROGRAM_ADDRESSES, INVARIANTS_HOISTED),
        gives=(ROLES,),
        when=lambda c: c.has_roles,
    ),
    _Entry(
        lambda c: MulticastTma(c.capability),
        "multicast TMA loads of adjacent programs in a cluster",
        needs=(ROLES,),
        when=lambda c: c.has_roles,
    ),
    _Entry(
        lambda c: SoftwarePipeline(stages=c.stages, warps=c.warps, capability=c.capability),
        "issue loads of later iterations ahead, into multi-buffered shared memory",
        needs=(LAYOUTS, INVARIANTS_HOISTED),
        gives=(SCHEDULED,),
        when=lambda c: c.arch.cp_async,
    ),
    _Entry(
        lambda c: SinkWgmmaWaits(),
        "sink waits for wgmma to the first use of their results",
        needs=(SCHEDULED,),
        gives=(WGMMA_WAITS,),
        when=lambda c: c.arch.wgmma,
    ),
    _Entry(
        lambda c: VersionLoopBody(),
        "version loop bodies: without masks, and general",
        needs=(WGMMA_WAITS,),
        when=lambda c: c.arch.wgmma,
    ),
    _Entry(
        lambda c: SplitDotK(),
        "split mma along K, to interleave ldmatrix with them",
        needs=(SCHEDULED,),
    ),
    _Entry(
        lambda c: InsertGlobalBarriers(),
        "put barriers between accesses of threads to the same global memory",
        needs=(LAYOUTS, PROGRAM_ADDRESSES),
        gives=(GLOBAL_ORDER,),
        ends=(OWN_BARRIERS,),
    ),
    _Entry(
        lambda c: InsertTmaStoreWaits(),
        "wait for TMA stores before their buffers are written again",
        gives=(STORE_WAITS,),
        when=lambda c: c.arch.tma,
    ),
    _Entry(
        lambda c: SimplifyPidDivision(),
        "divide program ids on a fast path",
        needs=(GLOBAL_ORDER,),
        ends=(PROGRAM_ADDRESSES,),
    ),
    _Entry(
        lambda c: LowerExchanges(warps=c.warps, capability=c.capability),
        "lower exchanges between threads, and conversions across warps, to accesses of buffers",
        needs=(LAYOUTS, STORE_WAITS),
        gives=(NO_EXCHANGES,),
        ends=(SHARED_ORDER,),
    ),
    _Entry(
        lambda c: InsertSharedBarriers(capability=c.capability),
        "separate shared-memory hazards by barriers",
        needs=(NO_EXCHANGES, STORE_WAITS),
        gives=(SHARED_ORDER,),
    ),
)
_LAYOUT_GIVEN = (NO_LAYOUTS, OWN_BARRIERS, PROGRAM_ADDRESSES, LEGAL_CASTS)
_LAYOUT_ENSURES = (
    LAYOUTS, SCHEDULED, GLOBAL_ORDER, STORE_WAITS, NO_EXCHANGES, SHARED_ORDER,
)  # fmt: skip


def _vacuous(c: Choices) -> Iterable[Property]:
    """Properties that hold trivially without the hardware that they concern."""
    if not c.arch.tma:
        yield from (TMA_ONLY, STORE_WAITS)
    if not c.arch.cp_async:
        yield SCHEDULED


def front_pipeline(c: Choices) -> Pipeline:
    """The passes before layouts: clean-up, then legalization for an architecture."""
    return _pipeline("nvidia-front", c, _FRONT, _FRONT_GIVEN, _FRONT_ENSURES)


def layout_pipeline(c: Choices) -> Pipeline:
    """Layouts, and the passes that depend on them: asynchronous copies and barriers."""
    given = (*_vacuous(c), *_LAYOUT_GIVEN)
    return _pipeline("nvidia-layouts", c, _LAYOUT, given, _LAYOUT_ENSURES)


def _pipeline(
    name: str,
    c: Choices,
    entries: Sequence[_Entry | Step],
    given: Sequence[Property],
    ensures: Sequence[Property],
) -> Pipeline:
    steps = tuple(
        entry if isinstance(entry, Step) else entry.step(c)
        for entry in entries
        if isinstance(entry, Step) or entry.when(c)
    )
    steps = tuple(step for step in steps if step.work.name not in c.omitted)
    before = tuple(bound(each, c.arch, c.warps) for each in given)
    return Pipeline(name, steps, before, tuple(ensures))
