"""Affine forms of integers and addresses.

The form of a value is a polynomial with integer coefficients over *symbols*: the coordinates of its
tile, the iteration numbers of loops, and values that are not decomposed. Addresses are in bytes.

    %i = tile.range {0, 64}                         d0
    %r = arith.mul %pid, %stride                    pid * stride
    cf.for %lo, %hi, %st ... (%k, %p) {             %k: lo + st * n;   n: iterations so far
      %q = mem.offset (splat %p), (%i + %k)         p + 4 * d0 + 4 * lo + 4 * st * n
      cf.yield (mem.offset %p, 64)                  %p: p0 + 256 * n, since each step adds 256

The result of another op (a truncated quotient, a comparison) is one symbol, equal for equal
operands; each load is a symbol. Arithmetic of 32 bits and more is assumed not to wrap, since the
address would be invalid. Narrower integers are symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import TypeGuard, cast

from tilewright.ir import Block, Function, Op, Trait, Value
from tilewright.ir.types import (
    DType,
    PointerType,
    TileType,
    dtype_of,
    element_of,
    i32,
    shape_of,
)
from tilewright.ops import (
    AddOp,
    BroadcastOp,
    CastOp,
    ConditionOp,
    ConstantOp,
    DivOp,
    ExpandDimsOp,
    ForOp,
    HintOp,
    IfOp,
    ItemOp,
    MulOp,
    NegOp,
    OffsetOp,
    RangeOp,
    ReshapeOp,
    ShlOp,
    SplatOp,
    SubOp,
    TransposeOp,
    WhileOp,
)
from tilewright.support.data_class import dataclass
from tilewright.support.fresh_stack import nested

MAX_TERMS = 24
"""The most terms of a form; a longer sum is one symbol."""
MAX_DEPTH = 12
"""The most nested COMPUTED symbols; a deeper computation is a VALUE symbol."""


class Kind(Enum):
    """The kind of value that a symbol denotes."""

    DIM = "coordinate along a dim of the tile"
    ITERATION = "iterations of a loop so far"
    TRIPS = "iterations of a loop in all"
    CARRIED = "value carried by a loop"
    VALUE = "value that is not taken apart"
    COMPUTED = "result of an op on forms"


@dataclass(eq=False, slots=True)
class Symbol:
    """A factor of a form; provably equal values share one object.

    key: the dim, the loop, the value, or opcode, attributes and operand forms; axes: the dims of a
    tile; loops: those in which it may change; over_tile: whether elements differ; values: scalars
    that are equal to it.
    """

    number: int
    kind: Kind
    key: object
    axes: tuple[int | None, ...] = ()
    loops: frozenset[Op] = frozenset()
    over_tile: bool = False
    depth: int = 0
    values: list[Value] = field(default_factory=list[Value])


Monomial = tuple[Symbol, ...]
Form = tuple[tuple[Monomial, int], ...]
"""Products of symbols with nonzero coefficients, in the order of the symbols' numbers."""
Axes = Sequence[int | None]
"""The new number of each dim; None for a dim of extent 1."""


def constant(number: int) -> Form:
    """The form of a number."""
    return (((), number),) if number else ()


def as_constant(form: Form) -> int | None:
    """The value of a constant form; None for others."""
    if not form:
        return 0
    return form[0][1] if len(form) == 1 and not form[0][0] else None


def frozen(terms: Mapping[Monomial, int]) -> Form:
    """The form with these terms."""
    # canceled terms are dropped and the rest is sorted, so that equal sums are equal tuples
    kept = [(monomial, c) for monomial, c in terms.items() if c]
    return tuple(sorted(kept, key=lambda term: [s.number for s in term[0]]))


def added(x: Form, y: Form, factor: int = 1) -> Form:
    """x + factor * y"""
    terms = dict(x)
    for monomial, coefficient in y:
        terms[monomial] = terms.get(monomial, 0) + factor * coefficient
    return frozen(terms)


def multiplied(x: Form, y: Form) -> Form:
    """x * y"""
    terms: dict[Monomial, int] = {}
    for left, a in x:
        for right, b in y:
            both = tuple(sorted((*left, *right), key=lambda s: s.number))
            terms[both] = terms.get(both, 0) + a * b
    return frozen(terms)


def symbols_of(form: Form) -> set[Symbol]:
    """All symbols of a form."""
    return {symbol for monomial, _ in form for symbol in monomial}


@dataclass(frozen=True, slots=True)
class Stride:
    """factor, or factor * parameter: a parameter of the kernel of type i32."""

    factor: int
    parameter: Value | None = None


def strides_of(form: Form, shape: Sequence[int]) -> list[Stride | None]:
    """The growth of a form per element along each dim of a tile; None where it is neither constant
    nor a multiple of a parameter."""
    strides: list[Stride | None] = [Stride(0)] * len(shape)
    for monomial, coefficient in form:
        for dim in {dim for symbol in monomial for dim in _dims_of(symbol, len(shape))}:
            is_first = strides[dim] == Stride(0)
            strides[dim] = _stride(monomial, coefficient, shape[dim]) if is_first else None
    return strides


def _stride(monomial: Monomial, coefficient: int, extent: int) -> Stride | None:
    """The growth of a product with one coordinate."""
    others = [symbol for symbol in monomial if symbol.kind is not Kind.DIM]
    if len(monomial) != len(others) + 1 or len(others) > 1:
        return None
    if not others:
        return Stride(coefficient)
    parameter = others[0].key
    # Instructions multiply by constants of 32 bits.
    fits = abs(coefficient) * extent <= i32.max_int
    return Stride(coefficient, parameter) if fits and _is_parameter(parameter) else None


def _is_parameter(key: object) -> TypeGuard[Value]:
    """Whether the key of a symbol is a parameter of the kernel of type i32."""
    if not isinstance(key, Value) or key.type != i32:
        return False
    return isinstance(key.owner, Block) and isinstance(key.owner.owner, Function)


def _dims_of(symbol: Symbol, rank: int) -> Iterable[int]:
    """The dims along which a symbol differs."""
    if symbol.kind is Kind.DIM:
        return [cast("int", symbol.key)]
    if not symbol.over_tile:
        return ()
    return [axis for axis in symbol.axes if axis is not None] or range(rank)


class AffineForms:
    """Forms of all integers and addresses of a function; transparent: ops that are identities."""

    def __init__(self, function: Function, transparent: tuple[type[Op], ...] = ()) -> None:
        self._transparent = transparent
        self._forms: dict[Value, Form] = {}
        self._symbols: dict[object, Symbol] = {}
        self._steps: dict[Value, Form | None] = {}
        self._loops: tuple[Op, ...] = ()
        for arg in function.args:
            self._forms[arg] = self._opaque(arg)
        self._block(function.body)

    def form(self, value: Value) -> Form:
        """The form of a value; loop-carried values by their initial value and the iteration."""
        return self._resolved(self._carried_form(value))

    # ---- symbols ---------------------------------------------------------------------------------

    def _symbol(
        self,
        kind: Kind,
        key: object,
        axes: Axes = (),
        loops: Iterable[Op] = (),
        over_tile: bool = False,
        depth: int = 0,
    ) -> Symbol:
        # one object for equal names, so that terms cancel by identity
        name = (kind, key, tuple(axes))
        symbol = self._symbols.get(name)
        if symbol is None:
            number = len(self._symbols)
            symbol = Symbol(number, kind, key, tuple(axes), frozenset(loops), over_tile, depth)
            self._symbols[name] = symbol
        return symbol

    def _dim(self, dim: int) -> Symbol:
        return self._symbol(Kind.DIM, dim, over_tile=True)

    def _iteration(self, loop: Op) -> Symbol:
        return self._symbol(Kind.ITERATION, loop, loops=[loop])

    def _opaque(self, value: Value, kind: Kind = Kind.VALUE) -> Form:
        """A value as a symbol."""
        axes = tuple(range(len(shape_of(value.type))))
        symbol = self._symbol(kind, value, axes, self._loops, bool(axes))
        if not axes and not symbol.values:
            symbol.values.append(value)
        return (((symbol,), 1),)

    def _computed(self, op: Op) -> Form:
        """The result of an op as a symbol, which equal ops on equal operands share.

        The operands of ops that move elements have other coordinates than the result.
        """
        value = op.results[0]
        if Trait.PURE not in op.traits or not (Trait.ELEMENTWISE in op.traits or not op.operands):
            return self._opaque(value)
        forms = tuple(self._carried_form(v) for v in op.operands)
        attrs = tuple(sorted(op.attrs.items(), key=lambda item: item[0]))
        symbol = self._computed_symbol(op.opcode, attrs, forms)
        # Keys contain the forms of the operands, so the keys of deep expressions would be
        # exponentially large.
        if symbol.depth > MAX_DEPTH:
            return self._opaque(value)
        if not isinstance(value.type, TileType):
            symbol.values.append(value)
        return (((symbol,), 1),)

    def _computed_symbol(self, opcode: str, attrs: object, forms: tuple[Form, ...]) -> Symbol:
        """The result of an op on operands with these forms."""
        inner = {s for form in forms for s in symbols_of(form)}
        depth = 1 + max((s.depth for s in inner), default=0)
        over_tile = any(s.over_tile for s in inner)
        loops = frozenset[Op]().union(*(s.loops for s in inner))
        return self._symbol(Kind.COMPUTED, (opcode, attrs, forms), (), loops, over_tile, depth)

    def recomputed(self, symbol: Symbol, *forms: Form) -> Symbol:
        """The result of a COMPUTED symbol's op on other operands."""
        opcode, attrs, _ = cast("tuple[str, object, tuple[Form, ...]]", symbol.key)
        return self._computed_symbol(opcode, attrs, forms)

    def _carried_form(self, value: Value) -> Form:
        """The form in terms of loop-carried values."""
        form = self._forms.get(value)
        return self._opaque(value) if form is None else form

    # ---- blocks ----------------------------------------------------------------------------------

    @nested
    def _block(self, block: Block) -> None:
        for op in block:
            if isinstance(op, ForOp):
                self._for(op)
            elif isinstance(op, WhileOp):
                self._while(op)
            elif isinstance(op, IfOp):
                self._if(op)
            elif not op.regions and len(op.results) == 1 and _is_integral(op.results[0]):
                self._forms[op.results[0]] = self._op_form(op)
            else:
                for region in op.regions if not op.results else ():
                    self._block(region)  # regions that threads execute concurrently
                self._forms.update((r, self._opaque(r)) for r in op.results)

    def _for(self, op: ForOp) -> None:
        steps = multiplied(self._carried_form(op.step), (((self._iteration(op),), 1),))
        self._forms[op.index] = added(self._carried_form(op.lower), steps)
        self._inside(op, op.carried, lambda: self._block(op.body))
        self._resolve_carried(op, op.carried)
        done = self._iteration(op)
        trips = (((self._symbol(Kind.TRIPS, op, loops=self._loops),), 1),)
        for result, arg in zip(op.results, op.carried, strict=True):
            last = self._steps[arg]
            moved = None if last is None else substituted(last, done, trips)
            self._forms[result] = self._opaque(result) if moved is None else moved

    def _while(self, op: WhileOp) -> None:
        def body() -> None:
            self._block(op.before)
            end = cast("ConditionOp", op.before.terminator)
            passed = end.operands[1:]
            self._forms.update(
                (a, self._carried_form(v)) for a, v in zip(op.body.args, passed, strict=True)
            )
            self._block(op.body)

        self._inside(op, op.before.args, body)
        self._resolve_carried(op, op.before.args)
        self._forms.update((r, self._opaque(r)) for r in op.results)

    def _inside(self, op: Op, args: Sequence[Value], body: Callable[[], None]) -> None:
        outer, self._loops = self._loops, (*self._loops, op)
        self._forms.update((arg, self._opaque(arg, Kind.CARRIED)) for arg in args)
        body()
        self._loops = outer

    def _resolve_carried(self, op: ForOp | WhileOp, args: Sequence[Value]) -> None:
        """Resolve loop-carried values with a constant step to initial value + step * iteration."""
        # After the body, when the forms of the yielded values are known.
        following = op.body.terminator.operands
        for arg, start, after in zip(args, op.inits, following, strict=True):
            step = added(self._carried_form(after), self._carried_form(arg), -1)
            # The step varies with the iterations, so the sum of the steps is not a multiple of one.
            if any(op in symbol.loops for symbol in symbols_of(step)):
                self._steps[arg] = None
                continue
            moved = multiplied(step, (((self._iteration(op),), 1),))
            self._steps[arg] = added(self._carried_form(start), moved)

    def _if(self, op: IfOp) -> None:
        for region in op.regions:
            self._block(region)
        for i, result in enumerate(op.results):
            # the common form of both branches, otherwise a symbol
            ends = {self._carried_form(region.terminator.operands[i]) for region in op.regions}
            self._forms[result] = ends.pop() if len(ends) == 1 else self._opaque(result)

    def _resolved(self, form: Form) -> Form:
        """The form without loop-carried values whose steps are known."""
        # Each round replaces the loop-carried values of one loop level; deeper nests than 64 keep
        # them as symbols, which is correct but less precise.
        for _ in range(64):
            carried = [
                s for s in symbols_of(form)
                if s.kind is Kind.CARRIED and self._steps.get(cast("Value", s.key)) is not None
            ]  # fmt: skip
            if not carried:
                break
            for symbol in carried:
                start = cast("Form", self._steps[cast("Value", symbol.key)])
                form = substituted(form, symbol, self._renamed(start, symbol.axes))
        return form

    # ---- ops -------------------------------------------------------------------------------------

    def _op_form(self, op: Op) -> Form:
        if isinstance(op, (SplatOp, HintOp, *self._transparent)):
            return self._carried_form(op.operands[0])
        form = self._shape_form(op)
        if form is None and not _is_narrow(op.results[0]):
            form = self._arithmetic_form(op)
        return form if form is not None and len(form) <= MAX_TERMS else self._computed(op)

    def _shape_form(self, op: Op) -> Form | None:
        if isinstance(op, RangeOp):
            return added(constant(op.start), (((self._dim(0),), 1),))
        if isinstance(op, ExpandDimsOp):
            rank = len(shape_of(op.x.type))
            return self._permuted_form(op.x, [d + (d >= op.axis) for d in range(rank)])
        if isinstance(op, BroadcastOp):
            extents = enumerate(shape_of(op.x.type))
            return self._permuted_form(op.x, [None if n == 1 else d for d, n in extents])
        if isinstance(op, TransposeOp):
            return self._permuted_form(op.x, [op.order.index(d) for d in range(len(op.order))])
        if isinstance(op, ItemOp):
            return self._permuted_form(op.x, [None] * len(shape_of(op.x.type)))
        return self._reshaped(op) if isinstance(op, ReshapeOp) else None

    def _arithmetic_form(self, op: Op) -> Form | None:
        if isinstance(op, ConstantOp):
            return constant(int(op.value))
        if not op.operands:
            return None
        operands = [self._carried_form(v) for v in op.operands]
        first, last = operands[0], operands[-1]
        if isinstance(op, AddOp):
            return added(first, last)
        if isinstance(op, SubOp):
            return added(first, last, -1)
        if isinstance(op, NegOp):
            return added((), first, -1)
        if isinstance(op, OffsetOp):
            element = cast("PointerType", element_of(op.pointer.type)).element
            return added(first, last, element.bytes)
        if isinstance(op, MulOp):
            # A product of two coordinates is not affine, and no client could use it.
            moving = all(any(s.over_tile for s in symbols_of(x)) for x in (first, last))
            small = len(first) * len(last) <= MAX_TERMS
            return multiplied(first, last) if small and not moving else None
        return self._conversion_form(op, operands)

    def _conversion_form(self, op: Op, operands: Sequence[Form]) -> Form | None:
        if isinstance(op, ShlOp):
            bits = as_constant(operands[1])
            return None if bits is None or bits < 0 else added((), operands[0], 1 << bits)
        if isinstance(op, DivOp):
            number = as_constant(operands[1]) if dtype_of(op.type).is_signed else None
            if not number or any(coefficient % number for _, coefficient in operands[0]):
                return None
            return tuple((monomial, c // number) for monomial, c in operands[0])
        if isinstance(op, CastOp):
            widths = [_width(v) for v in (op.x, op.result)]
            # Widening preserves the number, since arithmetic does not wrap; narrowing may truncate.
            return operands[0] if 32 <= widths[0] <= widths[1] else None
        return None

    # ---- dims ------------------------------------------------------------------------------------

    def _permuted_form(self, x: Value, axes: Axes) -> Form:
        return self._renamed(self._carried_form(x), axes)

    def _renamed(self, form: Form, axes: Axes) -> Form:
        """The form with dim d renamed to axes[d]."""
        if list(axes) == list(range(len(axes))):
            return form
        terms: dict[Monomial, int] = {}
        for monomial, coefficient in form:
            moved = [self._renamed_symbol(symbol, axes) for symbol in monomial]
            # a coordinate along a dim of extent 1 is 0, and so is the product
            if None in moved:
                continue
            name = tuple(sorted(cast("list[Symbol]", moved), key=lambda s: s.number))
            terms[name] = terms.get(name, 0) + coefficient
        return frozen(terms)

    def _renamed_symbol(self, symbol: Symbol, axes: Axes) -> Symbol | None:
        """The symbol with renamed dims; None for a coordinate of a dim of extent 1, which is 0."""
        if not symbol.over_tile:
            return symbol
        if symbol.kind is Kind.DIM:
            new = axes[cast("int", symbol.key)]
            return None if new is None else self._dim(new)
        if symbol.kind is not Kind.COMPUTED:
            moved = [None if a is None else axes[a] for a in symbol.axes]
            over = any(a is not None for a in moved)
            return self._symbol(symbol.kind, symbol.key, moved, symbol.loops, over)
        opcode, attrs, forms = cast("tuple[str, object, tuple[Form, ...]]", symbol.key)
        key = (opcode, attrs, tuple(self._renamed(form, axes) for form in forms))
        over = any(s.over_tile for form in key[2] for s in symbols_of(form))
        return self._symbol(Kind.COMPUTED, key, (), symbol.loops, over, symbol.depth)

    def _reshaped(self, op: ReshapeOp) -> Form | None:
        """The form of a reshape whose operand coordinates follow from the result's; else None."""
        source, target = shape_of(op.x.type), op.shape
        form = self._carried_form(op.x)
        parts = _common_parts(source, target)
        # other symbols depend on dims of the old shape, and cannot be split
        if parts is None or any(s.over_tile and s.kind is not Kind.DIM for s in symbols_of(form)):
            return None
        by_monomial: dict[Monomial, dict[int, int]] = {}
        rest: dict[Monomial, int] = {}
        for monomial, coefficient in form:
            dims = [s for s in monomial if s.kind is Kind.DIM]
            if len(dims) > 1:
                return None
            others = tuple(s for s in monomial if s.kind is not Kind.DIM)
            if not dims:
                rest[others] = coefficient
                continue
            along = by_monomial.setdefault(others, {})
            for number, stride in parts[0][cast("int", dims[0].key)]:
                along[number] = along.get(number, 0) + coefficient * stride
        for others, along in by_monomial.items():
            for dim, factor in enumerate(_merged(along, parts[1])):
                if factor is None:
                    return None
                name = tuple(sorted((*others, self._dim(dim)), key=lambda s: s.number))
                rest[name] = rest.get(name, 0) + factor
        return frozen(rest)


Parts = list[list[tuple[int, int]]]
"""The parts of each dim: number, and stride within the dim."""


def _common_parts(source: Sequence[int], target: Sequence[int]) -> tuple[Parts, Parts] | None:
    """Both shapes split into the same parts, of which each dim is a run; None if impossible."""
    sizes: list[int] = []
    left, right = ([n for n in reversed(shape) if n > 1] for shape in (source, target))
    a = b = 1
    while left or right or a > 1 or b > 1:
        a = left.pop(0) if a == 1 and left else a
        b = right.pop(0) if b == 1 and right else b
        part = min(a, b)
        if part == 1 or a % part or b % part:
            return None
        sizes.append(part)
        a, b = a // part, b // part
    return _runs(source, sizes), _runs(target, sizes)


def _runs(shape: Sequence[int], sizes: Sequence[int]) -> Parts:
    """The parts of each dim, numbered from the innermost one."""
    runs: Parts = []
    number = 0
    for extent in reversed(shape):
        run: list[tuple[int, int]] = []
        stride = 1
        while stride < extent:
            run.append((number, stride))
            stride *= sizes[number]
            number += 1
        runs.append(run)
    return runs[::-1]


def _merged(along: Mapping[int, int], parts: Parts) -> Iterable[int | None]:
    """The coefficient of each dim from those of its parts; None if they are inconsistent."""
    for run in parts:
        factors = {
            (along.get(number, 0) // stride if along.get(number, 0) % stride == 0 else None)
            for number, stride in run
        }
        yield factors.pop() if len(factors) == 1 else (None if factors else 0)


def substituted(form: Form, symbol: Symbol, by: Form) -> Form:
    """The form with a symbol replaced by a form."""
    result: Form = ()
    for monomial, coefficient in form:
        rest = list(monomial)
        term = constant(coefficient)
        while symbol in rest:
            rest.remove(symbol)
            term = multiplied(term, by)
        result = added(result, multiplied(term, ((tuple(rest), 1),)))
    return result


def _is_integral(value: Value) -> bool:
    """Whether a value is an integer, an address, or a truth value."""
    element = element_of(value.type)
    return isinstance(element, PointerType) or not element.is_float


def _is_narrow(value: Value) -> bool:
    """Whether arithmetic on a value may wrap intentionally."""
    element = element_of(value.type)
    return isinstance(element, DType) and element.bits < 32


def _width(value: Value) -> int:
    """The bits of an integer or address; 0 for a float."""
    element = element_of(value.type)
    if isinstance(element, PointerType):
        return 64
    return 0 if element.is_float else element.bits
