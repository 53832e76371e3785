"""Facts about IR; analyses never change it."""

from tilewright.analysis.alignment import LARGEST, Alignment, power_of_two_in
from tilewright.analysis.alignment_rules import analyze_alignment
from tilewright.analysis.dataflow import Forward

__all__ = ["LARGEST", "Alignment", "Forward", "analyze_alignment", "power_of_two_in"]
