"""Facts about IR; analyses never change it."""

from tilewright.analysis.alignment import LARGEST, Alignment, power_of_two_in
from tilewright.analysis.alignment_rules import analyze_alignment
from tilewright.analysis.dataflow import Forward
from tilewright.analysis.memory_dependence import Dependence, memory_dependences
from tilewright.analysis.packing import LiveRange, Request, pack
from tilewright.analysis.pointers import roots

__all__ = [
    "LARGEST",
    "Alignment",
    "Dependence",
    "Forward",
    "LiveRange",
    "Request",
    "analyze_alignment",
    "memory_dependences",
    "pack",
    "power_of_two_in",
    "roots",
]
