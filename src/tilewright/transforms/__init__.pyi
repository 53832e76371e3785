from tilewright.transforms.canonicalize import Canonicalize
from tilewright.transforms.checks import (
    CheckSite,
    CheckTable,
    InstrumentAccesses,
    Violation,
    check_table,
)
from tilewright.transforms.count_trips import trip_count
from tilewright.transforms.cse import Cse
from tilewright.transforms.dce import Dce, backward_slice, is_root, keep_slice
from tilewright.transforms.full_unroll import FullUnroll
from tilewright.transforms.guard_inactive_programs import GuardInactivePrograms
from tilewright.transforms.licm import Licm
from tilewright.transforms.lower_descriptors import LowerDescriptors
from tilewright.transforms.narrow_integers import NarrowIntegers
from tilewright.transforms.region_slots import (
    add_choice,
    add_slot,
    defining_block,
    set_operands,
    yield_more,
)
from tilewright.transforms.shared_pipeline import (
    AS_WRITTEN,
    CANONICAL,
    CLEAN_UP,
    DESCRIPTORS,
    LOWER_DESCRIPTORS,
    NO_LAYOUTS,
    POINTERS,
    SHARED,
    layout_problem,
)
from tilewright.transforms.strength_reduce import StrengthReduce
from tilewright.transforms.unroll import Unroll

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
    "defining_block",
    "is_root",
    "keep_slice",
    "layout_problem",
    "set_operands",
    "trip_count",
    "yield_more",
]
