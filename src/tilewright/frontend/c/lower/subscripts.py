"""Subscripts of tiles: `x[:, newaxis]`, `x[:, +]`, `x[3, :]`, `x[0:8, :]`, in any combination.

Each item but `newaxis` applies to one axis: it is kept, it is reduced, or a constant or a pair of
constants selects an element or a range of it.
"""

from __future__ import annotations

from tilewright.frontend import semantics
from tilewright.frontend.c import syntax
from tilewright.frontend.c.lower.declared_conversions import describe
from tilewright.frontend.c.lower.function_frame import FunctionFrame, expression
from tilewright.frontend.semantics.broadcasting import check_tile
from tilewright.frontend.semantics.reductions import reduce_by
from tilewright.ir.types import PointerType, element_of, shape_of
from tilewright.language import tensor, unwrap
from tilewright.support import errors
from tilewright.support.data_class import dataclass

_REDUCTIONS = {"+": "sum", "*": "prod", "&": "and", "|": "or", "^": "xor"}
_KEPT, _NEW = ":", "newaxis"


@dataclass(frozen=True, slots=True)
class Pick:
    """`3`, `0:8`, `:8`, `8:` as written; None for an omitted bound."""

    node: syntax.Expression
    start: int | None
    stop: int | None
    single: bool


Item = str | Pick
"""":", "newaxis", the name of a reduction, or a pick."""


@expression(syntax.Subscript)
def subscript(frame: FunctionFrame, node: syntax.Subscript) -> object:
    """`x[:, newaxis]` adds an extent of 1; `x[:, +]` sums along the second axis."""
    base = frame.expression(node.base)
    items = [_item(frame, item, base) for item in node.items]
    if isinstance(base, tensor) and shape_of(base.handle.type):
        base = _along_axes(frame, node, base, [item for item in items if item != _NEW])
    elif any(item != _NEW for item in items):
        reason = "it is no tile, so it has no axes"
        frame.fail(node, errors.InvalidOperation(f"subscript {describe(base)}", reason))
    remains = (item for item in items if item in (_KEPT, _NEW) or _keeps_axis(item))
    index = [None if item == _NEW else slice(None) for item in remains]
    # No new axis: the remaining items keep the tile as it is.
    if None not in index:
        return base
    return semantics.getitem(frame.at(node), frame.run_time(node, base), tuple(index))


def _keeps_axis(item: Item) -> bool:
    return isinstance(item, Pick) and not item.single


def _along_axes(
    frame: FunctionFrame, node: syntax.Subscript, base: tensor, items: list[Item]
) -> tensor:
    """Apply the item of each axis, the last axis first."""
    rank = len(shape_of(base.handle.type))
    if len(items) != rank:
        reason = f"it has {rank} axes, and the subscript is for {len(items)}"
        frame.fail(node, errors.InvalidOperation(f"subscript {describe(base)}", reason))
    shown = describe(base)
    # The last axis first, so that the numbers of the others stay valid.
    for axis in reversed(range(rank)):
        item = items[axis]
        if isinstance(item, Pick):
            base = _picked(frame, base, axis, item, shown)
        elif item != _KEPT:
            base = reduce_by(frame.at(node), item, base, axis)
    return base


def _picked(frame: FunctionFrame, base: tensor, axis: int, item: Pick, shown: str) -> tensor:
    """Select a range along an axis, or one element without the axis. Errors: InvalidOperation.

    shown: the type of the subscripted value, for messages.
    """
    extent = shape_of(base.handle.type)[axis]
    start, stop = _bound(item.start, extent, 0), _bound(item.stop, extent, extent)
    if not 0 <= start < stop <= extent:
        what = f"element {item.start}" if item.single else f"elements {start} to {stop}"
        reason = f"axis {axis} has the elements 0 to {extent - 1}"
        frame.fail(item.node, errors.InvalidOperation(f"pick {what} of {shown}", reason))
    ctx = frame.at(item.node)
    # Slices must be tiles: a power of two of elements.
    check_tile(ctx, (stop - start,))
    part = semantics.part(ctx, base, axis, start, stop - start)
    return semantics.without_axis(ctx, part, axis) if item.single else part


def _bound(number: int | None, extent: int, default: int) -> int:
    """Negative numbers count from the end, as in NumPy."""
    if number is None:
        return default
    return number + extent if number < 0 else number


# --- items ----------------------------------------------------------------------------------------


def _item(frame: FunctionFrame, item: syntax.Expression, base: object) -> Item:
    if isinstance(item, syntax.Axis):
        return _REDUCTIONS.get(item.kind, item.kind)
    if isinstance(item, syntax.Name) and item.name in (_NEW, "max", "min"):
        return item.name
    if isinstance(item, syntax.Slice):
        start, stop = (_number(frame, part, base) for part in (item.start, item.stop))
        return Pick(item, start, stop, single=False)
    number = _number(frame, item, base)
    assert number is not None
    # -1 picks the last element: its end is the extent, for which None stands.
    return Pick(item, number, None if number == -1 else number + 1, single=True)


def _number(frame: FunctionFrame, item: syntax.Expression | None, base: object) -> int | None:
    """A compile-time integer. Errors: UnsupportedLanguageConstruct, InvalidValue."""
    if item is None:
        return None
    value = unwrap(frame.expression(item))
    # `p[i]` of C is an access there; here subscripts are for tiles only.
    if isinstance(base, tensor) and isinstance(element_of(base.handle.type), PointerType):
        if not shape_of(base.handle.type):
            what = "picking an element through a pointer"
            instead = "add to the pointer and dereference the sum: *(p + i)"
            frame.fail(item, errors.UnsupportedLanguageConstruct(what, instead))
    if isinstance(value, tensor):
        what = "picking elements of a tile by a value that is known only at run time"
        instead = "use constants, or gather(x, index, axis)"
        frame.fail(item, errors.UnsupportedLanguageConstruct(what, instead))
    if isinstance(value, bool) or not isinstance(value, int):
        frame.fail(item, errors.InvalidValue("subscript", "item", "an integer", repr(value)))
    return value
