"""Facts about IR; analyses never change it."""

from tilewright.analysis.access_forms import MemoryForms
from tilewright.analysis.access_overlap import (
    Relation,
    apart,
    is_injective,
    is_same,
)
from tilewright.analysis.affine_addresses import Form, Symbol
from tilewright.analysis.alignment import LARGEST, Alignment, power_of_two_in
from tilewright.analysis.alignment_rules import analyze_alignment
from tilewright.analysis.argument_aliasing import ArgumentPair, argument_pairs
from tilewright.analysis.argument_uses import ArgumentUses, Sum
from tilewright.analysis.dataflow import Forward
from tilewright.analysis.disjoint_windows import Advance, Way
from tilewright.analysis.interval_packing import LiveRange, Request, pack
from tilewright.analysis.memory_dependence import is_fence, memory_dependences
from tilewright.analysis.pointer_roots import roots

__all__ = [
    "LARGEST",
    "Advance",
    "Alignment",
    "ArgumentPair",
    "ArgumentUses",
    "Form",
    "Forward",
    "LiveRange",
    "MemoryForms",
    "Relation",
    "Request",
    "Sum",
    "Symbol",
    "Way",
    "analyze_alignment",
    "memory_dependences",
    "apart",
    "argument_pairs",
    "is_fence",
    "is_injective",
    "is_same",
    "pack",
    "power_of_two_in",
    "roots",
]
