"""Facts about IR; analyses never change it."""

from tilewright.analysis.alignment import LARGEST, Alignment, power_of_two_in
from tilewright.analysis.alignment_rules import analyze_alignment
from tilewright.analysis.dataflow import Forward
from tilewright.analysis.liveness import Liveness, LiveRange, analyze_liveness
from tilewright.analysis.packing import Packing, Request, pack
from tilewright.analysis.pointers import roots

__all__ = [
    "LARGEST",
    "Alignment",
    "Forward",
    "LiveRange",
    "Liveness",
    "Packing",
    "Request",
    "analyze_alignment",
    "analyze_liveness",
    "pack",
    "power_of_two_in",
    "roots",
]
