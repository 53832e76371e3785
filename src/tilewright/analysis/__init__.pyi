from tilewright.analysis.access_forms import MemoryForms
from tilewright.analysis.access_overlap import (
    Relation,
    apart,
    is_injective,
    is_same,
)
from tilewright.analysis.affine_addresses import (
    Form,
    Kind,
    Stride,
    Symbol,
    added,
    as_constant,
    constant,
    strides_of,
    symbols_of,
)
from tilewright.analysis.alignment import LARGEST, Alignment, power_of_two_in
from tilewright.analysis.alignment_rules import analyze_alignment
from tilewright.analysis.argument_aliasing import argument_pairs
from tilewright.analysis.argument_pair import ArgumentPair, Sum
from tilewright.analysis.argument_uses import ArgumentUses
from tilewright.analysis.dataflow import Forward
from tilewright.analysis.disjoint_windows import Advance, Way
from tilewright.analysis.integer_ranges import IntegerRange, integer_range
from tilewright.analysis.interval_packing import LiveRange, Request, pack
from tilewright.analysis.memory_dependence import is_fence, memory_dependences
from tilewright.analysis.pointer_roots import MAY_OVERLAP, roots
from tilewright.analysis.program_windows import ANY_PROGRAM, axis_of_windows, step_of_programs
from tilewright.analysis.strided_blocks import (
    BlockDim,
    Bound,
    NotABlock,
    StridedBlock,
    bound_of,
    quotient_of,
    strided_block,
)

__all__ = [
    "ANY_PROGRAM",
    "axis_of_windows",
    "LARGEST",
    "Advance",
    "Alignment",
    "ArgumentPair",
    "ArgumentUses",
    "BlockDim",
    "Bound",
    "Form",
    "Forward",
    "IntegerRange",
    "Kind",
    "LiveRange",
    "MemoryForms",
    "NotABlock",
    "Relation",
    "Request",
    "Stride",
    "StridedBlock",
    "Sum",
    "Symbol",
    "Way",
    "added",
    "analyze_alignment",
    "memory_dependences",
    "apart",
    "as_constant",
    "bound_of",
    "constant",
    "argument_pairs",
    "MAY_OVERLAP",
    "integer_range",
    "is_fence",
    "is_injective",
    "is_same",
    "pack",
    "power_of_two_in",
    "quotient_of",
    "roots",
    "step_of_programs",
    "strided_block",
    "strides_of",
    "symbols_of",
]
