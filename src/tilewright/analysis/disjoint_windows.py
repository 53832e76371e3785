"""Launch conditions under which the windows that a loop writes, one an iteration, are disjoint.

A window is a tile of addresses that moves with the iterations. There are two sufficient conditions:

    rows      for r ...: p + r * stride + i          the step is at least as long as the window:
                                                     stride >= 64, for 0 <= i < 64
    columns   for k ...: p + i * stride + 8 * k + j  it is along the fine dims, and the walk of the
                                                     whole loop fits into each coarse step:
                                                     8 >= 8, and stride >= 8 * iterations

A condition is a list of forms that must not be negative, without those that are known not to be. A
mask `i < n` bounds a window, or a walk, if its extents do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import cast

from tilewright.analysis.access_overlap import Access
from tilewright.analysis.affine_addresses import Form, Kind, Symbol, added, as_constant, constant
from tilewright.analysis.affine_addresses import multiplied as product
from tilewright.ir import Op
from tilewright.support.data_class import dataclass

Way = tuple[Form, ...]
Limit = tuple[Form, Form]
"""(x, y): x < y for the elements that are accessed."""


@dataclass(frozen=True)
class LoopRange:
    """The range of a loop whose step is a positive constant."""

    lower: Form
    upper: Form
    step: int


@dataclass
class _Window:
    """An access as a linear form of coordinates and iterations.

    factors: the coefficients of coordinates, and of the iterations of loops
    """

    factors: dict[Symbol, Form] = field(default_factory=dict[Symbol, Form])

    @classmethod
    def of(cls, form: Form, inside: frozenset[Op]) -> _Window | None:
        """The window of a form; None if it is not linear. inside: the loop and those in it."""
        window = cls()
        for monomial, coefficient in form:
            moving = [s for s in monomial if s.over_tile or s.loops & inside]
            if not moving:
                continue
            if len(moving) > 1 or moving[0].kind not in (Kind.DIM, Kind.ITERATION):
                return None
            rest = tuple(s for s in monomial if s is not moving[0])
            factor = window.factors.get(moving[0], ())
            window.factors[moving[0]] = added(factor, ((rest, coefficient),))
        return window


class Advance:
    """The motion of an access with a loop.

    limits: the limits of the mask; bounds: the ranges of loops with constant steps
    """

    def __init__(
        self, access: Access, loop: Op, limits: Sequence[Limit], bounds: Mapping[Op, LoopRange]
    ) -> None:
        self.access, self.loop, self.limits, self.bounds = access, loop, limits, bounds
        self.inside = frozenset(access.loops[access.loops.index(loop) :])
        window = _Window.of(access.form, self.inside)
        self.factors = {} if window is None else window.factors
        self.walk = next((s for s in self.factors if s.key is loop), None)

    def ways(self) -> list[Way]:
        """The sufficient conditions for disjoint windows; () is one that always holds."""
        if self.walk is None:
            return []
        window = [s for s in self.factors if s is not self.walk]
        ways = (*self._by_rows(window), *self._by_columns())
        return [way for way in map(self._simplified, ways) if way is not None]

    def _by_rows(self, window: Sequence[Symbol]) -> list[Way]:
        """The step is at least as long as the window."""
        assert self.walk is not None
        step = self.factors[self.walk]
        return [
            (added(step, extent, -1), *self._not_negative(window))
            for extent in self._extents(window)
        ]

    def _by_columns(self) -> list[Way]:
        """The step is as long as the fine part of the window, and the walk fits the coarse one."""
        assert self.walk is not None
        step = self.factors[self.walk]
        # Only a step of one term can be compared with coefficients.
        if len(step) != 1 or step[0][1] < 0:
            return []
        (unit, size), *_ = step
        others = [s for s in self.factors if s is not self.walk]
        fine = [s for s in others if _is_within(self.factors[s], unit, size)]
        coarse = [s for s in others if s not in fine]
        numbers = [as_constant(self.factors[s]) for s in coarse]
        if not coarse or any(n is not None and not unit and n <= size for n in numbers):
            return []
        conditions: list[Way] = []
        for inner in self._extents(fine):
            for whole in self._walks(fine, inner):
                nested = self._nested(coarse, whole)
                if nested is not None:
                    conditions.append((added(step, inner, -1), *self._not_negative(fine), *nested))
        return conditions

    def _nested(self, coarse: Sequence[Symbol], whole: Form) -> list[Form] | None:
        """The forms by which the whole walk fits into the coarse steps; None without a proof.

        Coarse steps that are arguments of the launch are assumed to be disjoint.
        """
        sizes = {s: as_constant(self.factors[s]) for s in coarse}
        sized = sorted((s for s in coarse if sizes[s] is not None), key=lambda s: sizes[s] or 0)
        sums: list[Form] = []
        for symbol in sized + [s for s in coarse if sizes[s] is None]:
            sums.append(added(self.factors[symbol], whole, -1))
            span = self._span(symbol) if symbol in sized else ()
            if span is None:
                return None
            whole = added(whole, span)
        return sums

    def _extents(self, symbols: Sequence[Symbol]) -> list[Form]:
        """The known bounds on the bytes that a part of the window spans."""
        total: Form | None = constant(self.access.size)
        for symbol in symbols:
            span = self._span(symbol)
            total = None if span is None or total is None else added(total, span)
        return [*([] if total is None else [total]), *self._limited(symbols)]

    def _span(self, symbol: Symbol) -> Form | None:
        """The largest multiple of a coordinate, or of an iteration number."""
        factor, last = self.factors[symbol], self.access.last(symbol)
        if last is not None:
            size = as_constant(factor)
            return added((), factor, last) if size is None else constant(abs(size) * last)
        bounds = self.bounds.get(cast("Op", symbol.key))
        if bounds is None or any(c % bounds.step for _, c in factor):
            return None
        return product(
            tuple((m, c // bounds.step) for m, c in factor), _length(bounds, constant(-1))
        )

    def _walks(self, fine: Sequence[Symbol], inner: Form) -> list[Form]:
        """Bytes from the first position of the fine part to the end of the last one."""
        assert self.walk is not None
        limited = self._limited([*fine, self.walk])
        span = self._span(self.walk)
        return limited if span is None else [added(span, inner), *limited]

    def _limited(self, symbols: Sequence[Symbol]) -> list[Form]:
        """Bounds by masks on the bytes of a part."""
        sums: list[Form] = []
        wanted = {s: self.factors[s] for s in symbols}
        if any((as_constant(factor) or 0) < 0 for factor in wanted.values()):
            return []
        for left, right in self.limits:
            scaled = added((), left, self.access.size)
            window = _Window.of(scaled, self.inside)
            if window is not None and window.factors == wanted:
                fixed = [(m, c) for m, c in scaled if not any(s in window.factors for s in m)]
                sums.append(added(added((), right, self.access.size), tuple(fixed), -1))
        return sums

    def _not_negative(self, symbols: Sequence[Symbol]) -> list[Form]:
        """Coefficients that are assumed not to be negative."""
        factors = [self.factors[s] for s in symbols]
        return [factor for factor in factors if as_constant(factor) is None]

    def _simplified(self, way: Way) -> Way | None:
        """A condition without forms that always hold; None if one never does."""
        numbers = [as_constant(form) for form in way]
        if any(number is not None and number < 0 for number in numbers):
            return None
        kept = [form for form, number in zip(way, numbers, strict=True) if number is None]
        return tuple(dict.fromkeys(kept))


def _is_within(factor: Form, unit: object, size: int) -> bool:
    """Whether a coefficient is a smaller multiple of the same unit."""
    return len(factor) == 1 and factor[0][0] == unit and abs(factor[0][1]) < size


def _length(bounds: LoopRange, more: Form) -> Form:
    return added(added(bounds.upper, bounds.lower, -1), more)
