"""The target-independent steps that every backend starts with."""

from __future__ import annotations

from tilewright.ir import Contract, Pipeline, Property, Step
from tilewright.ir.types import TileType, Type
from tilewright.transforms.passes.canonicalize import Canonicalize
from tilewright.transforms.passes.cse import Cse
from tilewright.transforms.passes.dce import Dce
from tilewright.transforms.passes.licm import Licm
from tilewright.transforms.passes.lower_descriptors import LowerDescriptors
from tilewright.transforms.passes.narrow_integers import NarrowIntegers
from tilewright.transforms.passes.strength_reduce import StrengthReduce
from tilewright.transforms.passes.unroll import Unroll


def layout_problem(type_: Type) -> str | None:
    """Shared passes emit ops of any shape, and choose no layouts for their results."""
    has_layout = isinstance(type_, TileType) and type_.layout is not None
    return f"no layouts are assigned yet, but {type_} has one" if has_layout else None


NO_LAYOUTS = Property(
    "no tile has a layout", Contract("the front end", type_problem=layout_problem)
)
AS_WRITTEN = Property("ops are those of the front end, one for each access of the kernel")
DESCRIPTORS = Property("descriptor accesses are ops, not pointer arithmetic")
POINTERS = Property("all accesses are by pointers, except those that a backend has marked")
CANONICAL = Property("rewrite rules have been applied since ops were last added")
INVARIANTS_HOISTED = Property("loop-invariant values are defined outside of loops")

GIVEN = (NO_LAYOUTS, AS_WRITTEN, DESCRIPTORS)
"""Properties of the front end's IR."""

LOWER_DESCRIPTORS = Step(
    LowerDescriptors(),
    "lower descriptor accesses to masked pointer accesses",
    needs=(DESCRIPTORS,),
    gives=(POINTERS,),
    ends=(DESCRIPTORS,),
)

CLEAN_UP = (
    Step(
        Canonicalize(),
        "fold specialized arguments; make scalars of uniform tiles",
        needs=(POINTERS,),
        gives=(CANONICAL,),
        ends=(AS_WRITTEN,),
    ),
    Step(Cse(), "merge equal offsets, masks and constants", needs=(CANONICAL,)),
    Step(NarrowIntegers(), "undo C's integer promotion", ends=(CANONICAL,)),
    Step(Licm(), "hoist loop-invariant values", gives=(INVARIANTS_HOISTED,)),
    Step(
        StrengthReduce(),
        "make addresses in loops affine in a scalar induction variable",
        needs=(INVARIANTS_HOISTED,),
        ends=(CANONICAL,),
    ),
    Step(Unroll(), "unroll by tl.range(loop_unroll_factor=...)", ends=(CANONICAL,)),
    Step(
        Canonicalize(),
        "fold offsets by induction variables, and copies of unrolled bodies",
        gives=(CANONICAL,),
    ),
    Step(Cse(), "merge equal induction variables, and what copies repeat", needs=(CANONICAL,)),
    Step(Dce(), "remove loop-carried tiles without uses, and their computations"),
)

SHARED: Pipeline = Pipeline("shared", (LOWER_DESCRIPTORS, *CLEAN_UP), GIVEN)
"""The shared steps; backends add checks of the ops and types of their machine."""
