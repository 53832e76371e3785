from tilewright.transforms.checks import (
    CheckSite,
    CheckTable,
    InstrumentAccesses,
    Violation,
    check_table,
)
from tilewright.transforms.count_trips import trip_count
from tilewright.transforms.passes.canonicalize import Canonicalize
from tilewright.transforms.passes.cse import Cse
from tilewright.transforms.passes.dce import (
    Dce,
    backward_slice,
    is_root,
    keep_slice,
    remove_dead,
)
from tilewright.transforms.passes.full_unroll import FullUnroll
from tilewright.transforms.passes.guard_inactive_programs import GuardInactivePrograms
from tilewright.transforms.passes.licm import Licm
from tilewright.transforms.passes.lower_descriptors import LowerDescriptors, lower_descriptors
from tilewright.transforms.passes.narrow_integers import NarrowIntegers
from tilewright.transforms.passes.strength_reduce import StrengthReduce
from tilewright.transforms.passes.unroll import Unroll
from tilewright.transforms.region_slots import (
    add_choice,
    add_slot,
    set_operands,
    yield_more,
)
from tilewright.transforms.shared_pipeline import (
    AS_WRITTEN,
    CANONICAL,
    CLEAN_UP,
    DESCRIPTORS,
    INVARIANTS_HOISTED,
    LOWER_DESCRIPTORS,
    NO_LAYOUTS,
    POINTERS,
    SHARED,
    layout_problem,
)

__all__ = [
    "CheckSite",
    "CheckTable",
    "InstrumentAccesses",
    "Violation",
    "check_table",
    "AS_WRITTEN",
    "CANONICAL",
    "CLEAN_UP",
    "DESCRIPTORS",
    "INVARIANTS_HOISTED",
    "LOWER_DESCRIPTORS",
    "NO_LAYOUTS",
    "POINTERS",
    "SHARED",
    "Canonicalize",
    "GuardInactivePrograms",
    "Licm",
    "Cse",
    "NarrowIntegers",
    "Dce",
    "LowerDescriptors",
    "StrengthReduce",
    "FullUnroll",
    "Unroll",
    "add_choice",
    "add_slot",
    "backward_slice",
    "is_root",
    "keep_slice",
    "layout_problem",
    "lower_descriptors",
    "remove_dead",
    "set_operands",
    "trip_count",
    "yield_more",
]
