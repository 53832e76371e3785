"""Reach of accesses: the bytes that a kernel may access through an argument, for launches.

    tl.load(x + pid * 64 + i)      0 to 256 * (grid[0] - 1) + 4 * 63, and 4 bytes
    tl.load(x + row * stride + i)  depends on the stride of the launch
    tl.load(x + index)             unknown, where the index is loaded

Masks are ignored, so the ranges are those of whole tiles.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from tilewright.analysis.access_overlap import Access, is_program_number
from tilewright.analysis.affine_addresses import Kind, Monomial
from tilewright.analysis.reached_bytes import Reach, ReachTerm
from tilewright.ir import Value


def reach_of(access: Access, parameters: Collection[Value]) -> Reach | None:
    """The reach of an access, whose form is relative to its argument; None if unknown."""
    terms = [_term(access, monomial, n, parameters) for monomial, n in access.form]
    known = [term for term in terms if term is not None]
    return (access.size, tuple(known)) if len(known) == len(terms) else None


def _term(
    access: Access, monomial: Monomial, coefficient: int, parameters: Collection[Value]
) -> ReachTerm | None:
    arguments, axes = list[int](), list[int]()
    for symbol in monomial:
        last = access.last(symbol) if symbol.kind in (Kind.DIM, Kind.ITERATION) else None
        if last is not None:
            coefficient *= last
        elif is_program_number(symbol):
            _, attributes, _ = cast("tuple[str, tuple[tuple[str, int], ...], object]", symbol.key)
            axes.append(dict(attributes)["axis"])
        elif symbol.kind is Kind.VALUE and symbol.key in parameters:
            arguments.append(cast("Value", symbol.key).index)
        else:
            return None
    return coefficient, tuple(arguments), tuple(axes)
