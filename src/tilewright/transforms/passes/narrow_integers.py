"""Compute integers in the width in which their results are used (`narrow-integers`).

    %a = arith.cast %x : tile<64xi32>              %c = arith.mul %x, %y : tile<64xi8>
    %b = arith.cast %y : tile<64xi32>         ->
    %m = arith.mul %a, %b : tile<64xi32>
    %c = arith.cast %m : tile<64xi8>               %x, %y: tile<64xi8>

The low bits of sums, differences, products and bitwise operations depend only on the low bits of
their operands. A backward walk finds how many low bits of each value are needed. Then connected ops
that are computed wider than that are narrowed together, if all inputs of the cluster were widened,
are constants, or are splats. No conversion is added inside, and those at the edges are removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.ir import Builder, Function, Op, Pass, Rewriter, Value
from tilewright.ir.types import DType, Type, element_of, with_element
from tilewright.ops import (
    AddOp,
    AndOp,
    BroadcastOp,
    CastOp,
    ConstantOp,
    ExpandDimsOp,
    MulOp,
    NegOp,
    OrOp,
    ReshapeOp,
    SelectOp,
    ShlOp,
    SplatOp,
    SubOp,
    TransposeOp,
    XorOp,
)
from tilewright.transforms.rules import constant_of, with_operands

_SHAPES = (BroadcastOp, ExpandDimsOp, ReshapeOp, TransposeOp)
_LOW_BITS = (AddOp, SubOp, MulOp, NegOp, AndOp, OrOp, XorOp, ShlOp, SelectOp, *_SHAPES)
"""Ops whose low bits depend on the low bits of their operands only."""

_ALL = 64


class NarrowIntegers(Pass, name="narrow-integers"):
    """Compute integers in the type to which their results are converted, where no bit is lost."""

    def run(self, function: Function) -> bool:
        ops = list(function.walk())
        needed = _needed_bits(ops)
        clusters = _NarrowingClusters(needed)
        for op in ops:
            clusters.add(op)
        changed = False
        for cluster in clusters.clusters():
            changed = _NarrowingCluster(cluster, needed).rewrite() or changed
        return changed


def _integer(type_: Type) -> DType | None:
    """The element type, if it is an integer of 8 bits or more."""
    element = element_of(type_)
    return element if isinstance(element, DType) and element.is_integer else None


def _is_truncation(op: Op) -> bool:
    """Whether an op keeps the low bits of an integer."""
    if not isinstance(op, CastOp):
        return False
    source, target = _integer(op.x.type), _integer(op.result_type)
    return source is not None and target is not None and target.bits < source.bits


def _needed_bits(ops: list[Op]) -> dict[Value, int]:
    """The number of low bits of each value that are used; unused values are missing."""
    needed: dict[Value, int] = {}
    # From users to definitions; all bits of loop-carried values count as used (_ALL), so that one
    # walk is enough.
    for op in reversed(ops):
        for index, value in enumerate(op.operands):
            bits = _bits_of_operand(op, index, needed)
            needed[value] = max(needed.get(value, 0), bits)
    return needed


def _bits_of_operand(op: Op, index: int, needed: dict[Value, int]) -> int:
    if _is_truncation(op):
        return element_of(op.type).bits
    if not isinstance(op, _LOW_BITS) or _integer(op.type) is None:
        return _ALL
    bits = needed.get(op.result, 0)
    if isinstance(op, ShlOp):
        amount = constant_of(op.rhs)
        # A shift by the narrow width or more would be undefined there.
        return bits if amount is not None and 0 <= amount < bits else _ALL
    # the condition of a select is no data
    return _ALL if isinstance(op, SelectOp) and index == 0 else bits


def _data(op: Op) -> list[Value]:
    """The operands that have the type of the result."""
    return op.operands[1:] if isinstance(op, SelectOp) else op.operands


class _NarrowingClusters:
    """Ops that could be narrower, joined where one of them feeds another of the same width."""

    def __init__(self, needed: dict[Value, int]) -> None:
        self.needed = needed
        self.leader: dict[Op, Op] = {}
        """Each op and one that stands for its cluster; chains are cut as they are followed."""

    def add(self, op: Op) -> None:
        """Add an op; those that define its operands were added before it."""
        if not self._could_be_narrower(op):
            return
        self.leader[op] = op
        for value in _data(op):
            before = value.op
            if before in self.leader and self.needed[value] == self.needed[op.result]:
                self.leader[self._find(before)] = self._find(op)

    def _could_be_narrower(self, op: Op) -> bool:
        if not isinstance(op, _LOW_BITS):
            return False
        element, bits = _integer(op.type), self.needed.get(op.result, 0)
        # Arithmetic exists for 8 bits and more.
        if element is None or not 8 <= bits < element.bits:
            return False
        # `_bits_of_operand` counts lhs as whole where the amount does not suit the narrow type
        return not isinstance(op, ShlOp) or self.needed[op.lhs] == bits

    def _find(self, op: Op) -> Op:
        while self.leader[op] is not op:
            # Union-find with path halving.
            self.leader[op] = op = self.leader[self.leader[op]]
        return op

    def clusters(self) -> Iterator[list[Op]]:
        """The clusters, each in the order of the text."""
        members: dict[Op, list[Op]] = {}
        for op in self.leader:
            members.setdefault(self._find(op), []).append(op)
        yield from members.values()


class _NarrowingCluster:
    """Connected ops of which the same number of low bits is used."""

    def __init__(self, ops: list[Op], needed: dict[Value, int]) -> None:
        self.ops = ops
        self.inside = {op.result for op in ops}
        self.bits = needed[ops[0].result]
        self.narrow: dict[Value, Value] = {}

    def rewrite(self) -> bool:
        """Compute the cluster in the narrower type if that adds no conversions."""
        target = self._target()
        flows_in = {v for op in self.ops for v in _data(op)} - self.inside
        # ops that move elements compute nothing: narrowing them would only move a conversion
        worthwhile = not all(isinstance(op, _SHAPES) for op in self.ops)
        if target is None or not worthwhile or not all(map(_is_free, flows_in)):
            return False
        for op in self.ops:
            self._make(op, target)
        for op in self.ops:
            self._replace_uses(op)
        for op in reversed(self.ops):
            Rewriter.erase(op)
        return True

    def _target(self) -> DType | None:
        """The type of a conversion that keeps as many bits as are used."""
        users = (user for value in self.inside for user in value.uses)
        casts = (user for user in users if _is_truncation(user))
        types = (element_of(user.type) for user in casts)
        # only a type that some user converts to: that conversion is removed, and none is added
        target = next((t for t in types if t.bits == self.bits), None)
        return target if isinstance(target, DType) else None

    def _make(self, op: Op, target: DType) -> None:
        builder = Builder.at(op)
        operands = [
            self.narrow[value] if value in self.inside else _narrowed(builder, value, target)
            for value in _data(op)
        ]
        if isinstance(op, SelectOp):
            operands.insert(0, op.condition)
        self.narrow[op.result] = builder.value(with_operands(op, operands))

    def _replace_uses(self, op: Op) -> None:
        """Conversions use the narrow value; other users of the low bits use it widened."""
        value, narrow = op.result, self.narrow[op.result]
        assert narrow.op is not None
        for user in list(value.uses):
            if user.results and user.result in self.inside:
                continue
            if not _is_truncation(user):
                wide = Builder.after(narrow.op).cast(narrow, value.type)
                Rewriter.replace_uses(value, wide)
                return
            same = user.type is narrow.type
            new = narrow if same else Builder.at(user).cast(narrow, user.type)
            Rewriter.replace(user, new)


def _is_free(value: Value) -> bool:
    """Whether a value can be narrowed without a new conversion of a tile."""
    op = value.op
    if isinstance(op, CastOp):
        source = element_of(op.x.type)
        return isinstance(source, DType) and not source.is_float
    return isinstance(op, ConstantOp | SplatOp)


def _narrowed(builder: Builder, value: Value, target: DType) -> Value:
    """The low bits of a value that `_is_free`."""
    type_, op = with_element(value.type, target), value.op
    if isinstance(op, ConstantOp):
        return builder.constant(target.wrap(int(op.value)), type_)
    if isinstance(op, SplatOp):
        return builder.splat(builder.cast(op.x, target), op.shape)
    assert isinstance(op, CastOp)
    return op.x if op.x.type is type_ else builder.cast(op.x, type_)
