"""Target-independent rewrites and passes over tile IR."""

from tilewright.transforms.canonicalize import Canonicalize
from tilewright.transforms.cse import MergeEqual
from tilewright.transforms.dce import RemoveDead
from tilewright.transforms.hoist import Hoist
from tilewright.transforms.narrow_integers import NarrowIntegers
from tilewright.transforms.pipeline import SHARED
from tilewright.transforms.trips import trip_count
from tilewright.transforms.uniform_induction import UniformInduction
from tilewright.transforms.unroll import Unroll

__all__ = [
    "SHARED",
    "Canonicalize",
    "Hoist",
    "MergeEqual",
    "NarrowIntegers",
    "RemoveDead",
    "UniformInduction",
    "Unroll",
    "trip_count",
]
