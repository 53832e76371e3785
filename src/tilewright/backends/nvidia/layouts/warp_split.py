"""Split each dot among warps, considering the ops around it.

A warp whose part of a dot is as square as it can be reads the fewest operands. But a reduction
of the dot along a side that warps share is an exchange between them, and so is a conversion
for the next dot: a barrier that nothing hides, while reads of operands overlap with the tensor
cores. Attention with 8 warps, for 128 x 64 scores and heads of 128, per iteration:

    scores, values    exchanges of the reductions, of the weights    barriers   reads of operands
    4 x 2, 4 x 2                              max, sum       yes             6               1600
    8 x 1, 8 x 1                                       -        -             1               2880

So where a dot has such neighbours the layouts of the whole function are inferred for several
shares, and those that cost least are taken if they save enough. Where it has none, parts are
square.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tilewright.analysis import Alignment
from tilewright.backends.nvidia.layouts.infer_layouts import LayoutInference, yielded_values
from tilewright.backends.nvidia.layouts.layout_cost import LayoutCost
from tilewright.backends.nvidia.layouts.mma_layouts import (
    DotLayouts,
    dot_layouts,
    fragment_for,
    shares,
    square_share,
)
from tilewright.backends.nvidia.ops import FmaDotOp
from tilewright.ir import Function, Op, Value
from tilewright.ir.types import shape_of
from tilewright.ops import DotOp, ForOp, IfOp, ReduceOp, ScanOp, WhileOp
from tilewright.support.reachable import reachable

WORTH = 0.9
"""The part of the cost of square shares that others may have: costs are estimates, and square parts
read the fewest operands (figures: ADR 0030). Not of shares without exchanges between warps in
loops: those are taken if they cost less at all, since warps that do not wait for each other hide
latency.
"""

Share = tuple[int, int]
Facts = Mapping[Value, Alignment]


def split_dots(
    function: Function, facts: Facts, warps: int, access_bytes: int, stages: int = 0
) -> LayoutInference:
    """The layouts of a function under the best shares that were tried.

    facts: alignment of all values; access_bytes: of the widest access to global memory; stages: see
    LayoutContext.
    """
    return _Search(function, facts, warps, access_bytes, stages).run()


class _Search:
    """Tries shares; dots of one shape in one block have one share.

    kinds: these dots; made: values that depend on a dot.
    """

    def __init__(
        self, function: Function, facts: Facts, warps: int, access_bytes: int, stages: int
    ) -> None:
        self.function, self.facts, self.warps = function, facts, warps
        self.access_bytes, self.stages = access_bytes, stages
        self.kinds: dict[tuple[object, ...], list[DotOp]] = defaultdict(list)
        for op in function.walk():
            if isinstance(op, DotOp):
                # Per block, since dots in a loop weigh more than those after it.
                self.kinds[op.parent, fragment_for(op).name, op.a.type, op.b.type].append(op)
        self.dots = [op for ops in self.kinds.values() for op in ops]
        self.made = _dependents([op.result for op in self.dots])

    def run(self) -> LayoutInference:
        chosen = [square_share(ops[0], self.warps) for ops in self.kinds.values()]
        best = self._inferred(chosen)
        if self.warps == 1 or not self._have_neighbours():
            return best
        square = LayoutCost(best, self.made)
        cost = whole = square.total()
        waits = square.waits_in_loops()
        # Greedy: `_single` changes the best shares so far. To infer layouts for all combinations of
        # shares would take too long.
        for trial in self._alike(chosen) + self._single():
            candidate = [new or old for new, old in zip(trial, chosen, strict=True)]
            if candidate != chosen:
                inference = self._inferred(candidate)
                costs = LayoutCost(inference, self.made)
                its_cost, is_free = costs.total(), waits and not costs.waits_in_loops()
                if its_cost < min(cost, whole if is_free else WORTH * whole):
                    best, chosen, cost = inference, candidate, its_cost
        return best

    def _inferred(self, chosen: Sequence[Share]) -> LayoutInference:
        """All layouts for a share of each kind."""
        dots: dict[Op, DotLayouts] = {
            op: dot_layouts(op, share)
            for ops, share in zip(self.kinds.values(), chosen, strict=True)
            for op in ops
        }
        inference = LayoutInference(
            self.function, self.facts, self.warps, self.access_bytes, dots, self.stages
        )
        inference.run()
        return inference

    def _have_neighbours(self) -> bool:
        """Whether values computed from a dot are reduced, or operands of another dot."""
        for op in self.function.walk():
            count = len(op.operands) if isinstance(op, ReduceOp | ScanOp) else 0
            # Not the sum: it stays in the layout of the result.
            count = 2 if isinstance(op, DotOp | FmaDotOp) else count
            if any(value in self.made for value in op.operands[:count]):
                return True
        return False

    def _alike(self, square: Sequence[Share]) -> list[list[Share | None]]:
        """All kinds with one share, as far as it fits them."""
        fitting = [self._fitting(ops[0]) for ops in self.kinds.values()]
        return [
            [share if share in fits else old for fits, old in zip(fitting, square, strict=True)]
            for share in shares(self.warps)
        ]

    def _single(self) -> list[list[Share | None]]:
        """One kind with another share; None: as it was."""
        trials: list[list[Share | None]] = []
        for number, ops in enumerate(self.kinds.values()):
            for share in self._fitting(ops[0]):
                trial: list[Share | None] = [None] * len(self.kinds)
                trial[number] = share
                trials.append(trial)
        return trials

    def _fitting(self, op: DotOp) -> list[Share]:
        """Shares in which every warp has a part of its own."""
        fragment, (*_, m, n) = fragment_for(op), shape_of(op.type)
        return [
            (rows, columns)
            for rows, columns in shares(self.warps)
            if m // rows >= fragment.m and n // columns >= fragment.n
        ]


def _dependents(values: Sequence[Value]) -> set[Value]:
    """The values, and all that are computed from them."""
    return set(
        reachable(values, lambda value: (x for user in value.uses for x in _carriers(user, value)))
    )


def _carriers(user: Op, value: Value) -> Sequence[Value]:
    """The results of a user, or of the structured op that it ends, that depend on an operand."""
    if isinstance(user, ForOp | WhileOp):
        first = user.carried if isinstance(user, ForOp) else user.before.args
        pairs = zip(first, user.inits, strict=True)
        return [arg for arg, init in pairs if init is value]
    if user.results:
        return user.results
    block = user.parent
    owner = block.owner if block is not None else None
    if block is None or not isinstance(owner, ForOp | WhileOp | IfOp) or block.last is not user:
        return ()
    carried: Sequence[Value] = ()
    if isinstance(owner, ForOp):
        carried = owner.carried
    elif isinstance(owner, WhileOp):
        carried = owner.body.args if block is owner.before else owner.before.args
    yielded = yielded_values(owner, block)
    targets = [owner.results] if not carried else [owner.results, carried]
    return [t for ts in targets for t, p in zip(ts, yielded, strict=True) if p is value]
