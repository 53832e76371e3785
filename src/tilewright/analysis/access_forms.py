"""The accesses of a function as forms: addresses, masks as limits, bounds of loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from tilewright.analysis.access_overlap import Access
from tilewright.analysis.affine_addresses import (
    AffineForms,
    Form,
    Kind,
    added,
    as_constant,
    constant,
)
from tilewright.analysis.disjoint_windows import Limit, LoopRange
from tilewright.ir import Block, Function, Op
from tilewright.ir.types import PointerType, element_of, shape_of
from tilewright.ops import AtomicCasOp, AtomicOp, ForOp, LoadOp, StoreOp, WhileOp
from tilewright.support import cached_property

MemoryOp = LoadOp | StoreOp | AtomicOp | AtomicCasOp


class MemoryForms:
    """Accesses of one function; transparent: ops that change nothing. Computed when asked for."""

    def __init__(self, function: Function, transparent: tuple[type[Op], ...] = ()) -> None:
        self._function, self._transparent = function, transparent
        self._accesses: dict[Op, Access] = {}

    @classmethod
    def around(cls, op: Op) -> MemoryForms:
        """Of the function that an op is in."""
        block = op.parent
        while block is not None and isinstance(block.owner, Op):
            block = block.owner.parent
        assert block is not None and isinstance(block.owner, Function)
        return cls(block.owner)

    @cached_property
    def forms(self) -> AffineForms:
        """Of all integers and addresses."""
        return AffineForms(self._function, self._transparent)

    @cached_property
    def bounds(self) -> dict[Op, LoopRange]:
        """The ranges of the loops whose step is a positive constant."""
        by_loop: dict[Op, LoopRange] = {}
        for op in self._function.walk():
            if isinstance(op, ForOp):
                lower, upper, step = map(self.forms.form, (op.lower, op.upper, op.step))
                number = as_constant(step)
                # an unknown step gives no count; with one that is not positive, a loop never runs
                if number is not None and number > 0:
                    by_loop[op] = LoopRange(lower, upper, number)
        return by_loop

    @cached_property
    def trips(self) -> dict[object, int]:
        """Trip counts of the loops whose bounds are constants."""
        by_loop: dict[object, int] = {}
        for op, bounds in self.bounds.items():
            ends = as_constant(bounds.lower), as_constant(bounds.upper)
            if ends[0] is not None and ends[1] is not None:
                by_loop[op] = len(range(ends[0], ends[1], bounds.step))
        return by_loop

    def access(self, op: MemoryOp) -> Access:
        """The addresses of an op."""
        cached = self._accesses.get(op)
        if cached is None:
            pointer = cast("PointerType", element_of(op.pointer.type))
            form, shape = self.forms.form(op.pointer), shape_of(op.pointer.type)
            loops = tuple(reversed(list(_loops_around(op))))
            cached = Access(form, shape, pointer.element.bytes, loops, self.trips)
            self._accesses[op] = cached
        return cached

    def limits(self, op: MemoryOp) -> list[Limit]:
        """What the mask of an op says of numbers."""
        mask = None if isinstance(op, AtomicCasOp) else op.mask
        return [] if mask is None else list(_limits(self.forms.form(mask)))


def _loops_around(op: Op) -> Iterator[Op]:
    """From the innermost one."""
    block = op.parent
    while isinstance(block, Block) and isinstance(block.owner, Op):
        if isinstance(block.owner, ForOp | WhileOp):
            yield block.owner
        block = block.owner.parent


def _limits(truth: Form) -> Iterator[Limit]:
    """The comparisons of which a truth is the conjunction."""
    if len(truth) != 1 or len(truth[0][0]) != 1 or truth[0][1] != 1:
        return
    (symbol,) = truth[0][0]
    if symbol.kind is not Kind.COMPUTED:
        return
    opcode, attrs, forms = cast(
        "tuple[str, tuple[tuple[str, object], ...], list[Form]]", symbol.key
    )
    if opcode == "arith.and":
        for form in forms:
            yield from _limits(form)
    elif opcode == "arith.compare":
        yield from _comparison(str(dict(attrs)["predicate"]), *forms)


def _comparison(predicate: str, left: Form, right: Form) -> Iterator[Limit]:
    more = {"lt": 0, "gt": 0, "le": 1, "ge": 1}.get(predicate)
    if more is not None:
        small, large = (left, right) if predicate in ("lt", "le") else (right, left)
        yield small, added(large, constant(more))
