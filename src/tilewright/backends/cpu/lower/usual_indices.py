"""Variant of a loop nest for the usual values of its indices.

    %at = (splat %start) + tile.range 0, 256
    %q = arith.div %at, 16                        at least 0: one quotient for 16 lanes
    %r = arith.rem %at, (splat %n)                no wrap within the tile: %at less a number

The usual case is tested once for the nest, and the general code is emitted as well: see
`natural_dividends.py` and `wrapped_tiles.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from tilewright.backends.cpu.lower.cpu_lowering import CpuLowering
from tilewright.backends.cpu.lower.lane_values import Lanes, uniform
from tilewright.backends.cpu.lower.natural_dividends import CountingDividend, counting_dividends
from tilewright.backends.cpu.lower.vector_access import Buffer
from tilewright.backends.cpu.lower.wrapped_tiles import run_remainders, shift_without_wrap
from tilewright.ir import Value
from tilewright.ir.types import element_of
from tilewright.llvm import Val, integer_literal, llvm_type

_WORTH_TWO_VARIANTS = 0.75
"""Largest fraction of a nest's cost that its variant may have for both to be emitted."""


class NestCode(Protocol):
    """The interface of a nest's emitter. results: of reductions, scalars without a buffer"""

    state: CpuLowering
    results: list[tuple[Value, Buffer | None]]

    def inputs(self) -> list[Value]: ...
    def cost(self, inside: bool = False) -> float: ...
    def emit(self) -> None: ...
    def variant(self, shifts: Mapping[Value, Lanes]) -> NestCode: ...


class UsualVariant(NamedTuple):
    """A nest for indices that are not negative and do not wrap.

    condition: of its use; natural: dividends that are not negative then
    """

    condition: Val
    nest: NestCode
    natural: Sequence[Value]

    def emit(self) -> None:
        with self.nest.state.env.where_natural(self.natural):
            self.nest.emit()


def usual_variant(nest: NestCode) -> UsualVariant | None:
    """The variant of a nest for the usual values of its indices.

    None where it would not be cheaper, or defines scalars, which would have to be merged.
    """
    state = nest.state
    if any(buffer is None for _, buffer in nest.results):
        return None
    natural, condition = _cheaper_if_natural(nest), integer_literal(1, "i1")
    for dividend in natural:
        condition = state.code.binary("and", condition, dividend.is_natural(state))
    values = [dividend.value for dividend in natural]
    with state.env.where_natural(values):
        inside, shifts = _shifts(nest)
        if not values and not shifts:
            return None
        condition = state.code.binary("and", condition, inside)
        return UsualVariant(condition, nest.variant(shifts), values)


def _cheaper_if_natural(nest: NestCode) -> list[CountingDividend]:
    """The dividends without a negative element that make a nest cheaper.

    In steps without masks: in others, an address that all lanes share is also gathered.
    """
    env = nest.state.env
    found = counting_dividends(nest.state, nest.inputs())
    cost, kept = nest.cost(inside=True) if found else 0.0, list[CountingDividend]()
    for dividend in found:
        with env.where_natural(d.value for d in (*kept, dividend)):
            cheaper = nest.variant({}).cost(inside=True)
        if cheaper < _WORTH_TWO_VARIANTS * cost:
            kept.append(dividend)
            cost = cheaper
    return kept


def _shifts(nest: NestCode) -> tuple[Val, dict[Value, Lanes]]:
    """The numbers to subtract from the dividends of tiles that do not wrap, and whether none
    wraps."""
    state, condition, shifts = nest.state, integer_literal(1, "i1"), dict[Value, Lanes]()
    tiles = run_remainders(state, nest.inputs())
    limit = _WORTH_TWO_VARIANTS * nest.variant({}).cost() if tiles else 0.0
    for tile in tiles:
        # For any number: each tile by itself has to make the nest cheaper.
        shift = uniform(Val("%shift", llvm_type(element_of(tile.op.result.type))))
        if nest.variant({tile.op.result: shift}).cost() < limit:
            inside, shifts[tile.op.result] = shift_without_wrap(state, tile)
            condition = state.code.binary("and", condition, inside)
    return condition, shifts
