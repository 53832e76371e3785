"""Loads through pointers as blocks of strided arrays: start, shape and bounds.

    %i = (%pid * 64 + range(0, 64)) % %M            rows        start 64 * pid, extent M, wrapped
    %j = range(0, 32)                               columns     start 32 * n, extent K
    cf.for %k = 0 .. (%n iterations) (%p) {
      %x = mem.load %p + %i * %stride + %j, %j < %K - %k * 32
      cf.yield %p + 32
    }

All numbers are forms (affine_addresses.py). A mask must be a conjunction of bounds on single dims,
and a remainder that of one dim; any other load has elements outside of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from tilewright.analysis.access_forms import MemoryForms, comparisons
from tilewright.analysis.affine_addresses import (
    AffineForms,
    Form,
    Kind,
    Monomial,
    Symbol,
    added,
    as_constant,
    constant,
    frozen,
    substituted,
    symbols_of,
)
from tilewright.analysis.disjoint_windows import Limit
from tilewright.analysis.pointer_roots import roots
from tilewright.ir import Value
from tilewright.ir.types import PointerType, element_of, shape_of
from tilewright.ops import DivOp, LoadOp
from tilewright.support.data_class import dataclass

IsStride = Callable[[Value], bool]


class NotABlock(Exception):
    """The reason why a load is not a block of an array that a launch can describe."""


@dataclass(frozen=True, slots=True)
class BlockDim:
    """A dim of a block.

    start: index of its first element in the array; stride: elements from one index to the next;
    extent: that of the array, None if nothing bounds the block; wrap: the opcode that wraps indices
    beyond the extent, "" without one.
    """

    start: Form
    stride: Form
    extent: Form | None = None
    wrap: str = ""

    @property
    def beyond(self) -> Form:
        """start - extent: coordinate + beyond is negative exactly for indices within the extent."""
        assert self.extent is not None
        return added(self.start, self.extent, -1)


@dataclass(frozen=True, slots=True)
class StridedBlock:
    """A load of a block. base: the pointer argument at which the array starts; dims: those of the
    tile; outer: further dims, along which the tile has one index."""

    base: Value
    dims: tuple[BlockDim, ...]
    outer: tuple[BlockDim, ...] = ()


class Bound(NamedTuple):
    """A bound on the coordinate of a dim: d + rest < 0, or rest - d < 0 for a lower bound."""

    dim: int
    is_upper: bool
    rest: Form


def bound_of(limit: Limit) -> Bound | None:
    """A limit as a bound on the coordinate of one dim; None for other limits."""
    difference = added(limit[0], limit[1], -1)
    over = [(m, c) for m, c in difference if any(s.over_tile for s in m)]
    if len(over) != 1 or len(over[0][0]) != 1 or abs(over[0][1]) != 1:
        return None
    ((symbol,), sign) = over[0]
    if symbol.kind is not Kind.DIM:
        return None
    rest = added(difference, (((symbol,), 1),), -sign)
    return Bound(cast("int", symbol.key), sign > 0, rest)


def quotient_of(form: Form) -> tuple[Symbol, Form, int] | None:
    """The symbol, dividend and divisor of a form that is a quotient by a positive number."""
    if len(form) != 1 or len(form[0][0]) != 1 or form[0][1] != 1:
        return None
    (symbol,) = form[0][0]
    if symbol.kind is not Kind.COMPUTED:
        return None
    opcode, _, forms = cast("tuple[str, object, tuple[Form, ...]]", symbol.key)
    divisor = as_constant(forms[1]) if opcode == DivOp.opcode else None
    return (symbol, forms[0], divisor) if divisor and divisor > 0 else None


def strided_block(load: LoadOp, forms: MemoryForms, is_stride: IsStride) -> StridedBlock:
    """A load of a matrix as a block. Raises NotABlock.

    is_stride: whether an argument may be the stride of a dim along which the tile has one index
    """
    starts = list(roots(load.pointer))
    if len(starts) != 1 or starts[0].op is not None:
        raise NotABlock("its array is not known at the launch")
    size = cast("PointerType", element_of(load.pointer.type)).element.bytes
    offset = added(forms.forms.form(load.pointer), forms.forms.form(starts[0]), -1)
    wraps = list(_wraps(offset))
    for wrap in wraps:
        offset = substituted(offset, wrap.symbol, wrap.index)
    strides, rest = _by_dims(offset, len(shape_of(load.type)))
    numbers = [_in_elements(form, size) for form in (*strides, rest)]
    conditions = [_without_multiples(c, forms.forms) for c in forms.conditions(load)]
    dims = _with_bounds(_with_starts(numbers[:-1], numbers[-1]), conditions, shape_of(load.type))
    outer: dict[Form, Form] = {}
    dims = [
        _without_outer(dim, outer, is_stride) if as_constant(dim.stride) == 1 else dim
        for dim in dims
    ]
    further = tuple(BlockDim(start, stride) for stride, start in outer.items())
    return StridedBlock(starts[0], _with_wraps(dims, wraps), further)


@dataclass(frozen=True, slots=True)
class _Wrap:
    """A symbol that equals an index where the limit holds."""

    symbol: Symbol
    index: Form
    limit: Limit
    opcode: str


def _wraps(offset: Form) -> Iterator[_Wrap]:
    """The remainders, and selects between an index and another one, in an offset."""
    for symbol in symbols_of(offset):
        if not symbol.over_tile or symbol.kind is Kind.DIM:
            continue
        if symbol.kind is not Kind.COMPUTED:
            raise NotABlock("its address depends on what is loaded or carried")
        opcode, _, forms = cast("tuple[str, object, tuple[Form, ...]]", symbol.key)
        if opcode == "arith.rem":
            yield _Wrap(symbol, forms[0], (forms[0], forms[1]), opcode)
        elif opcode == "arith.select" and (limit := _only_limit(forms[0])) is not None:
            yield _Wrap(symbol, forms[1], limit, opcode)
        else:
            raise NotABlock(f"its address is no sum: {opcode} of indices")


def _only_limit(truth: Form) -> Limit | None:
    found = list(comparisons(truth))
    return found[0] if len(found) == 1 else None


def _by_dims(offset: Form, rank: int) -> tuple[list[Form], Form]:
    """The factors of the coordinates, and the terms without a coordinate."""
    factors: list[dict[Monomial, int]] = [{} for _ in range(rank + 1)]
    for monomial, coefficient in offset:
        over = [s for s in monomial if s.over_tile]
        if len(over) > 1 or any(s.kind is not Kind.DIM for s in over):
            raise NotABlock("its address is no sum of multiples of rows and columns")
        dim = cast("int", over[0].key) if over else rank
        factors[dim][tuple(s for s in monomial if not s.over_tile)] = coefficient
    *strides, rest = map(frozen, factors)
    return strides, rest


def _in_elements(form: Form, size: int) -> Form:
    if any(coefficient % size for _, coefficient in form):
        raise NotABlock("it begins within an element")
    return tuple((monomial, coefficient // size) for monomial, coefficient in form)


def _with_starts(strides: Sequence[Form], offset: Form) -> list[BlockDim]:
    """The dims with their starts; one must be contiguous, and has all terms of the offset that are
    not multiples of another stride."""
    unit = [dim for dim, stride in enumerate(strides) if as_constant(stride) == 1]
    if not unit:
        raise NotABlock("no stride is known to be 1")
    starts: list[dict[Monomial, int]] = [{} for _ in strides]
    for monomial, coefficient in offset:
        dim, term = next(_multiples(monomial, coefficient, strides, unit[-1]))
        starts[dim][term[0]] = starts[dim].get(term[0], 0) + term[1]
    pairs = zip(starts, strides, strict=True)
    return [BlockDim(frozen(start), stride) for start, stride in pairs]


def _multiples(
    monomial: Monomial, coefficient: int, strides: Sequence[Form], unit: int
) -> Iterator[tuple[int, tuple[Monomial, int]]]:
    """The dims whose strides divide a term, with the factor; `unit` is the last."""
    for dim, stride in enumerate(strides):
        number = as_constant(stride)
        if dim == unit or number == 0:
            continue
        if number is not None:
            if coefficient % number == 0:
                yield dim, (monomial, coefficient // number)
        elif len(stride) == 1 and coefficient % stride[0][1] == 0:
            rest = _without(monomial, stride[0][0])
            if rest is not None:
                yield dim, (rest, coefficient // stride[0][1])
    yield unit, (monomial, coefficient)


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    """The quotient of two products of symbols, or None."""
    rest = list(monomial)
    for symbol in factor:
        if symbol not in rest:
            return None
        rest.remove(symbol)
    return tuple(rest)


def _without_multiples(limit: Limit | None, forms: AffineForms) -> Limit | None:
    """A limit with exact multiples moved out of a division: d < (K - 64 n) / 2 is d < K / 2 - 32 n.

    Division truncates. This holds for a comparison with a coordinate, which is not negative: a
    quotient above it has a positive dividend.
    """
    bound = None if limit is None else bound_of(limit)
    if limit is None or bound is None or not bound.is_upper:
        return limit
    quotient = quotient_of(added((), bound.rest, -1))
    if quotient is None:
        return limit
    symbol, numerator, divisor = quotient
    multiples = frozen({m: c - c % divisor for m, c in numerator})
    kept = added(numerator, multiples, -1)
    passed = tuple((m, c // divisor) for m, c in multiples)
    if as_constant(kept) is None:
        rest = forms.recomputed(symbol, kept, constant(divisor))
        passed = added((((rest,), 1),), passed)
    return added(added(limit[0], limit[1], -1), bound.rest, -1), passed


def _with_bounds(
    dims: Sequence[BlockDim], conditions: Sequence[Limit | None], shape: Sequence[int]
) -> list[BlockDim]:
    """The dims with the bounds of the mask."""
    bounded = list(dims)
    for condition in conditions:
        bound = None if condition is None else bound_of(condition)
        if bound is None:
            raise NotABlock("its mask says more than where rows and columns end")
        dim, last = bounded[bound.dim], as_constant(bound.rest)
        if bound.is_upper and last is not None and shape[bound.dim] + last <= 0:
            continue  # it holds for the whole tile
        if bound.is_upper:
            bounded[bound.dim] = _with_extent(dim, added(dim.start, bound.rest, -1))
        elif (before := as_constant(added(dim.start, bound.rest))) is None or before >= 0:
            raise NotABlock("its mask begins behind the first row or column")
    return bounded


def _without_outer(dim: BlockDim, outer: dict[Form, Form], is_stride: IsStride) -> BlockDim:
    """A contiguous dim without multiples of other strides in its start that the mask does not have.

    outer: the indices by strides, to which these are added
    """
    kept, ended = dict(dim.start), None if dim.extent is None else dict(dim.extent)
    for monomial, coefficient in dim.start:
        strides = [s for s in monomial if isinstance(s.key, Value) and is_stride(s.key)]
        # A term that is also in the mask is part of the index.
        is_index = ended is not None and ended.get(monomial) != coefficient
        if monomial == tuple(strides[-1:]) or not strides or is_index:
            continue
        stride: Form = (((strides[-1],), 1),)
        index = frozen({cast("Monomial", _without(monomial, (strides[-1],))): coefficient})
        outer[stride] = added(outer.get(stride, ()), index)
        del kept[monomial]
        if ended is not None:
            del ended[monomial]
    return replace(dim, start=frozen(kept), extent=None if ended is None else frozen(ended))


def _with_extent(dim: BlockDim, extent: Form) -> BlockDim:
    if dim.extent not in (None, extent):
        raise NotABlock("two masks end its rows or columns")
    return replace(dim, extent=extent)


def _with_wraps(dims: Sequence[BlockDim], wraps: Sequence[_Wrap]) -> tuple[BlockDim, ...]:
    """The dims with the wraps, each of which must be at the extent of a dim."""
    wrapped = list(dims)
    for wrap in wraps:
        bound = bound_of((wrap.index, wrap.limit[1]))
        same = bound is not None and bound_of(wrap.limit) == bound and bound.is_upper
        if bound is None or not same:
            raise NotABlock("its indices do not wrap around at an extent")
        dim = _with_extent(wrapped[bound.dim], added(wrapped[bound.dim].start, bound.rest, -1))
        if bound_of((wrap.index, ())) != Bound(bound.dim, True, dim.start):
            raise NotABlock("only a part of its indices wraps around")
        wrapped[bound.dim] = replace(dim, wrap=wrap.opcode)
    return tuple(wrapped)
