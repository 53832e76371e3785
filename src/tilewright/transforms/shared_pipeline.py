"""The shared pipeline that every back end starts with: what holds for any machine."""

from __future__ import annotations

from tilewright.ir import Contract, Pipeline, pipeline_of
from tilewright.ir.types import TileType, Type
from tilewright.transforms.canonicalize import Canonicalize
from tilewright.transforms.cse import Cse
from tilewright.transforms.dce import Dce
from tilewright.transforms.expand_descriptors import ExpandDescriptors
from tilewright.transforms.licm import Licm
from tilewright.transforms.narrow_integers import NarrowIntegers
from tilewright.transforms.uniform_induction import UniformInduction
from tilewright.transforms.unroll import Unroll


def layout_problem(type_: Type) -> str | None:
    """Shared passes make ops of any shape, and choose no layouts for their results."""
    has_layout = isinstance(type_, TileType) and type_.layout is not None
    return f"no layouts are assigned yet, but {type_} has one" if has_layout else None


SHARED: Pipeline = pipeline_of(
    "shared",
    (
        (ExpandDescriptors(), "first: addresses and masks are for all other passes to simplify"),
        (Canonicalize(), "fold specialized arguments; uniform tiles become scalars"),
        (Cse(), "front ends repeat offsets, masks and constants"),
        (NarrowIntegers(), "C computes in int what it stores as char"),
        (Licm(), "uniform-induction needs the amounts of its updates outside of their loop"),
        (UniformInduction(), "addresses in loops become affine in a scalar induction variable"),
        (Unroll(), "asked for by tl.range(loop_unroll_factor=...)"),
        (Canonicalize(), "fold offsets by induction variables, and the copies of unrolled bodies"),
        (Cse(), "tiles that moved alike have equal induction variables now; copies repeat code"),
        (Dce(), "remove carried tiles that are no longer used, and what computed them"),
    ),
    Contract("the front end", type_problem=layout_problem),
)
"""Backends check more on the way: which ops and types there may be on their machine."""
