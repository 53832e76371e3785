"""sort, topk, bitonic_merge and histogram.

Numbers are sorted as integers of 32 or 64 bits. A float becomes an integer with the same order: its
bits, all but the sign inverted for a negative one. So -0.0 comes before 0.0, and the results of all
executions have the same bits. A NaN, of either sign, becomes the largest integer.
"""

from __future__ import annotations

from tilewright import language as tl
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.broadcasting import broadcast_value
from tilewright.frontend.semantics.dtype_casts import cast_to
from tilewright.frontend.semantics.formula_tracing import evaluate
from tilewright.frontend.semantics.numeric_operators import as_condition
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir.types import DType, element_of, shape_of
from tilewright.language import tensor, type_of
from tilewright.ops import HistogramOp, SortOp
from tilewright.support import errors


def _numbers(ctx: Context, function: str, x: object) -> tuple[tensor, DType]:
    tile = constant_arguments.tile(ctx, function, "x", x)
    element = element_of(tile.handle.type)
    if not isinstance(element, DType):
        ctx.fail(errors.InvalidValue, function, "x", "a tile of numbers", tile.type)
    return tile, element


def _sorted_key(ctx: Context, x: tensor, element: DType) -> tensor:
    """Integers in the order of the numbers."""
    if not element.is_float:
        return x if element.bits >= 32 else cast_to(ctx, x, tl.int32)
    integer = tl.get_int_dtype(element.bits, True)
    wide = tl.int64 if element.bits == 64 else tl.int32

    def key() -> tensor:
        bits = tl.cast(x, integer, bitcast=True).to(wide)
        ordered = bits ^ ((bits >> (wide.primitive_bitwidth - 1)) & integer.get_int_max_value())
        return tl.where(x != x, wide.get_int_max_value(), ordered)

    return evaluate(ctx, key)


def _from_key(ctx: Context, key: tensor, element: DType) -> tensor:
    """The numbers of the keys of `_sorted_key`."""
    dtype = type_of(element)
    if not element.is_float:
        return cast_to(ctx, key, dtype)
    integer = tl.get_int_dtype(element.bits, True)
    most, sign = integer.get_int_max_value(), key.dtype.primitive_bitwidth - 1

    def number() -> tensor:
        # The key of a NaN has only ones, those of a NaN, in its low bits.
        bits = key ^ ((key >> sign) & most)
        found = tl.cast(bits.to(integer), dtype, bitcast=True)
        # The NaN of fnuz formats is no number of ones.
        nan = element.specials == "fnuz"
        return tl.where(key == key.dtype.get_int_max_value(), float("nan"), found) if nan else found

    return evaluate(ctx, number)


def _sorted(
    ctx: Context,
    function: str,
    x: object,
    dim: object,
    count: int | None,
    descending: bool,
    bitonic: bool = False,
) -> tensor:
    tile, element = _numbers(ctx, function, x)
    shape = shape_of(tile.handle.type)
    axis = constant_arguments.axis(ctx, function, -1 if dim is None else dim, len(shape), "dim")
    extent = shape[axis]
    size = 1 << (extent - 1).bit_length()
    if bitonic and size > extent:
        expected = "a tile whose extent there is a power of two"
        ctx.fail(errors.InvalidValue, function, "x", expected, tile.type)
    kept = extent if count is None else count
    if not 0 < kept <= extent:
        ctx.fail(errors.InvalidValue, function, "k", f"in [1, {extent}]", kept)
    # Triton rounds k down to a power of two.
    kept = size if count is None else 1 << (kept.bit_length() - 1)
    key = _sorted_key(ctx, tile, element)
    if size > extent:
        key = _padded(ctx, key, axis, size, descending)
    ordered = ctx.tensor(SortOp(key.handle, axis, kept, descending, bitonic))
    if kept > extent:
        ordered = evaluate(ctx, lambda: tl.gather(ordered, _positions(shape, axis, extent), axis))
    return _from_key(ctx, ordered, element)


def _positions(shape: tuple[int, ...], axis: int, size: int) -> tensor:
    """The place along `axis`, in a tile of `shape` but for `size` elements there."""
    flat = [1] * len(shape)
    flat[axis] = size
    return tl.broadcast_to(
        tl.arange(0, size).reshape(flat), [*shape[:axis], size, *shape[axis + 1 :]]
    )


def _padded(ctx: Context, key: tensor, axis: int, size: int, descending: bool) -> tensor:
    """Keys, padded to `size` by keys that are last in the order."""
    shape = shape_of(key.handle.type)
    last = key.dtype.get_int_min_value() if descending else key.dtype.get_int_max_value()

    def keys() -> tensor:
        place = _positions(shape, axis, size)
        found = tl.gather(key, tl.minimum(place, shape[axis] - 1), axis)
        return tl.where(place < shape[axis], found, last)

    return evaluate(ctx, keys)


@implements(tl.sort)
def sort(ctx: Context, x: object, dim: object = None, descending: object = False) -> tensor:
    down = constant_arguments.flag(ctx, "sort", "descending", descending)
    return _sorted(ctx, "sort", x, dim, None, down)


@implements(tl.topk)
def topk(
    ctx: Context, x: object, k: object, dim: object = None, descending: object = True
) -> tensor:
    down = constant_arguments.flag(ctx, "topk", "descending", descending)
    return _sorted(ctx, "topk", x, dim, constant_arguments.integer(ctx, "topk", "k", k), down)


@implements(tl.bitonic_merge)
def bitonic_merge(
    ctx: Context, x: object, dim: object = None, descending: object = False
) -> tensor:
    down = constant_arguments.flag(ctx, "bitonic_merge", "descending", descending)
    return _sorted(ctx, "bitonic_merge", x, dim, None, down, bitonic=True)


@implements(tl.histogram)
def histogram(ctx: Context, input: object, num_bins: object, mask: object = None) -> tensor:
    tile, element = _numbers(ctx, "histogram", input)
    if element.is_float or len(tile.shape) != 1:
        expected = "an integer tile of rank 1"
        ctx.fail(errors.InvalidValue, "histogram", "input", expected, tile.type)
    bins = constant_arguments.integer(ctx, "histogram", "num_bins", num_bins)
    (bins,) = constant_arguments.shape(ctx, "histogram", (bins,))
    x = tile.handle if element.bits >= 32 else cast_to(ctx, tile, tl.int32).handle
    where = None
    if mask is not None:
        condition = as_condition(ctx, mask)
        where = broadcast_value(ctx, condition, shape_of(x.type), "mask")
    return ctx.tensor(HistogramOp(x, bins, where))
