"""Common-subexpression elimination (`cse`).

    %a = arith.add %x, %y : i32
    %b = arith.add %y, %x : i32        ->    %a = arith.add %x, %y : i32, used for %b too

Pure ops merge with an equal one that dominates them. Loads merge where nothing
between them may write memory or order memory operations; a load in a `cf.while` never merges
with one outside, since the loop may wait for another program's write.
"""

from __future__ import annotations

from dataclasses import field

from tilewright.ir import Block, Effect, Function, Op, Pass, Rewriter, Trait, ops_with
from tilewright.ops import ConstantOp, LoadOp, WhileOp
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested

_CHANGES_MEMORY = frozenset((Effect.WRITE, Effect.BARRIER))


class Cse(Pass, name="cse"):
    """Merge equal ops."""

    def run(self, function: Function) -> bool:
        walk = _Walk(ops_with(function, _CHANGES_MEMORY))
        walk.block(function.body)
        return walk.changed


@dataclass(slots=True)
class _Walk:
    """available: ops that dominate the current one, by key; writes: ops that write memory, or
    contain such; epoch: their number so far: loads of one epoch may merge.
    """

    writes: set[Op]
    available: dict[object, Op] = field(default_factory=dict[object, Op])
    epoch: int = 0
    changed: bool = False

    @nested
    def block(self, block: Block) -> None:
        entered: list[object] = []
        for op in block:
            if op.regions:
                self._regions(op)
            elif Trait.PURE in op.traits or (isinstance(op, LoadOp) and not op.volatile):
                key = self._key(op)
                equal = self.available.get(key)
                if equal is None:
                    self.available[key] = op
                    entered.append(key)
                else:
                    Rewriter.replace(op, equal.results)
                    self.changed = True
            elif op.effects & _CHANGES_MEMORY:
                self.epoch += 1
        for key in entered:  # values of this block are not available in the blocks around it
            del self.available[key]

    def _regions(self, op: Op) -> None:
        """Visit regions; iterations of a loop see one another's writes."""
        if isinstance(op, WhileOp) or op in self.writes:
            self.epoch += 1
        for region in op.regions:
            self.block(region)

    def _key(self, op: Op) -> object:
        """A key that is equal for equal ops."""
        operands = [id(value) for value in op.operands]
        if isinstance(op, ConstantOp):
            # By text: 0.0 and -0.0 differ, as 1 and 1.0 do, and nan equals nan.
            return (ConstantOp, repr(op.value), op.result_type)
        if Trait.COMMUTATIVE in op.traits and operands[0] > operands[1]:
            # any fixed order will do; ids are valid as long as the function's values live
            operands[0], operands[1] = operands[1], operands[0]
        epoch = self.epoch if isinstance(op, LoadOp) else 0
        # Equal ops may have results in different layouts. None ends the operands, of which some
        # ops take any number.
        types = [value.type for value in op.results]
        return (type(op), *operands, None, *op.attrs.values(), epoch, *types)
