"""Tensor descriptors: construction and accesses.

    d = make_tensor_descriptor(base, shape=(M, K), strides=(sm, 1), block_shape=(BM, BK))
    d.load((m, k))
        mem.descriptor_load base, M, K, sm, m, k {block_shape = [BM, BK]}

`lower-descriptors` computes masks and pointers later, except where TMA needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import language as tl
from tilewright.frontend.dtype_promotion import fits
from tilewright.frontend.semantics import constant_arguments
from tilewright.frontend.semantics.broadcasting import check_tile
from tilewright.frontend.semantics.dtype_casts import cast_to
from tilewright.frontend.semantics.formula_tracing import evaluate
from tilewright.frontend.semantics.literal_constants import (
    constant,
    describe,
    is_literal,
    is_pointer,
)
from tilewright.frontend.semantics.memory_access import check_writable, pointee_type
from tilewright.frontend.semantics.semantic_context import Context
from tilewright.frontend.semantics.semantics_registry import implements
from tilewright.ir import Value
from tilewright.ir.types import (
    DType,
    PointerType,
    dtype_of,
    element_of,
    i32,
    i64,
    shape_of,
    u32,
    u64,
)
from tilewright.language import (
    padding_and_rounding,
    tensor,
    tensor_descriptor,
    tensor_descriptor_base,
    type_of,
)
from tilewright.ops import (
    ATOMIC_TYPES,
    MAX_DESCRIPTOR_RANK,
    PADDINGS,
    REDUCTIONS,
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
)
from tilewright.support import errors

_MAKE = "make_tensor_descriptor"
MIN_ROW_BYTES = 16
"""Least bytes of the last dimension of a block: the least that TMA copies."""
_DROPPED_BITS = 13
"""Bits of a fraction in TF32."""
_EXPONENT = 0x7F800000
_MIN_ROWS = 8
"""Least rows of a gather or scatter, as in Triton."""
_MIN_COLUMN_BYTES = 32
"""Least bytes of a row that is gathered, as in Triton."""


@implements(tl.make_tensor_descriptor)
def make_tensor_descriptor(
    ctx: Context,
    base: object,
    shape: object,
    strides: object,
    block_shape: object,
    padding_option: object = "zero",
) -> tensor_descriptor:
    if not is_pointer(base) or not isinstance(base.handle.type, PointerType):
        ctx.fail(errors.InvalidValue, _MAKE, "base", "a scalar pointer", describe(base))
    block = constant_arguments.integers(ctx, _MAKE, "block_shape", block_shape)
    element = base.handle.type.element
    padding = constant_arguments.choice(
        ctx, _MAKE, "padding_option", padding_option, PADDINGS, "zero"
    )
    _check_blocks(ctx, _MAKE, element, block, padding)
    extents = constant_arguments.sequence(ctx, _MAKE, "shape", shape)
    steps = constant_arguments.sequence(ctx, _MAKE, "strides", strides)
    for name, items in (("shape", extents), ("strides", steps)):
        if len(items) != len(block):
            expected = f"of length {len(block)}, as block_shape"
            ctx.fail(errors.InvalidValue, _MAKE, name, expected, len(items))
    _check_last_stride(ctx, steps[-1])
    whole = [_extent(ctx, item) for item in extents]
    moves = [_integer(ctx, _MAKE, "strides", item, tl.int64) for item in steps]
    return tensor_descriptor(base, whole, moves, block, padding)


def described_array(
    ctx: Context, parts: Sequence[tensor], block: tuple[int, ...], reads: str
) -> tensor_descriptor:
    """The descriptor that the host passes.

    parts: the pointer, the extents (int32), the strides (int64) but the last, which is 1; reads: as
    in a `Description`.
    Errors: InvalidValue, NonPowerOfTwo, BlockTooLarge, where no launch has checked it before.
    """
    base, *numbers = parts
    padding, rounds = padding_and_rounding(reads)
    _check_blocks(ctx, "TensorDescriptor", pointee_type(base.handle), block, padding)
    one = tensor(constant(ctx, 1, i64))
    rank = len(block)
    return tensor_descriptor(base, numbers[:rank], [*numbers[rank:], one], block, padding, rounds)


def _check_blocks(
    ctx: Context, function: str, element: DType, block: tuple[int, ...], padding: str
) -> None:
    """Check the shape of blocks. Errors: InvalidValue, NonPowerOfTwo, BlockTooLarge."""
    if not 1 <= len(block) <= MAX_DESCRIPTOR_RANK:
        expected = f"1 to {MAX_DESCRIPTOR_RANK} extents"
        ctx.fail(errors.InvalidValue, function, "block_shape", expected, len(block))
    check_tile(ctx, block)
    row = block[-1] * element.bytes
    if row < MIN_ROW_BYTES:
        expected = f"at least {MIN_ROW_BYTES} bytes in its last dimension"
        actual = f"{block[-1]} of {type_of(element)}, which are {row}"
        triton = (
            f"Descriptor block shape must have at least {MIN_ROW_BYTES} bytes in the last "
            f"dimension, but got {block[-1]} * {element.bytes} = {row} bytes"
        )
        ctx.fail(errors.InvalidValue, function, "block_shape", expected, actual, triton=triton)
    if padding == "nan" and not element.is_float:
        expected = f"zero for {type_of(element)}"
        ctx.fail(errors.InvalidValue, function, "padding_option", expected, '"nan"')


def _check_last_stride(ctx: Context, stride: object) -> None:
    if isinstance(stride, tensor) and not shape_of(stride.handle.type):
        known = ctx.emitter.known(stride.handle)
        if known is None:
            ctx.fail(errors.NotConstexpr, "the last of 'strides', which is 1,", stride.type)
        stride = known
    if stride != 1:
        expected = "1 in the last dimension, along which elements are adjacent"
        ctx.fail(errors.InvalidValue, _MAKE, "strides", expected, describe(stride))


def _extent(ctx: Context, item: object) -> tensor:
    """An extent as int32; a larger one becomes the largest int32, which no offset exceeds."""
    if not (isinstance(item, tensor) and item.handle.type in (i64, u64, u32)):
        return _integer(ctx, _MAKE, "shape", item, tl.int32)
    largest = constant(ctx, i32.max_int, item.handle.type)
    return cast_to(ctx, tensor(ctx.min(item.handle, largest)), tl.int32)


def _integer(ctx: Context, function: str, name: str, item: object, dtype: tl.dtype) -> tensor:
    """A scalar of the description. Errors: InvalidValue."""
    if is_literal(item) and not isinstance(item, float):
        if not fits(item, dtype_of(dtype.ir)):
            ctx.fail(errors.InvalidValue, function, name, f"{dtype} in each dimension", item)
        return tensor(constant(ctx, int(item), dtype.ir))
    if not isinstance(item, tensor) or not _is_integer_scalar(item):
        ctx.fail(errors.InvalidValue, function, name, "of integer scalars", describe(item))
    return cast_to(ctx, item, dtype)


def _is_integer_scalar(item: tensor) -> bool:
    type_ = item.handle.type
    return isinstance(type_, DType) and not type_.is_float


# --- accesses -------------------------------------------------------------------------------------


@implements(tl.load_tensor_descriptor)
def load_tensor_descriptor(ctx: Context, desc: object, offsets: object) -> tensor:
    d = _descriptor(ctx, "load", desc)
    numbers = _array_operands(ctx, d, _offsets(ctx, "load", d, offsets))
    op = DescriptorLoadOp(d.base.handle, numbers, d.block_extents, d.padding)
    return _with_rounding(ctx, d, ctx.tensor(op))


def _with_rounding(ctx: Context, d: tensor_descriptor_base, block: tensor) -> tensor:
    """A block that was loaded, rounded to TF32 if the descriptor requests it."""
    return evaluate(ctx, lambda: _rounded_to_tf32(block)) if d.rounds else block


def _rounded_to_tf32(x: Any) -> Any:
    """The nearest float32 with 10 bits of fraction, ties to even; infinities and NaNs stay."""
    bits = x.to(tl.uint32, bitcast=True)
    last = (bits >> _DROPPED_BITS) & 1
    # a carry out of the fraction lands in the exponent
    nearest = (bits + ((1 << (_DROPPED_BITS - 1)) - 1) + last) & (-1 << _DROPPED_BITS & 0xFFFFFFFF)
    special = (bits & _EXPONENT) == _EXPONENT
    return tl.where(special, x, nearest.to(tl.float32, bitcast=True))


@implements(tl.tensor_descriptor_base.load)
def load(ctx: Context, self: object, offsets: object) -> tensor:
    return load_tensor_descriptor(ctx, self, offsets)


@implements(tl.store_tensor_descriptor)
def store_tensor_descriptor(ctx: Context, desc: object, offsets: object, value: object) -> None:
    d = _descriptor(ctx, "store", desc)
    check_writable(ctx, d.base.handle)
    numbers = _array_operands(ctx, d, _offsets(ctx, "store", d, offsets))
    stored = _block(ctx, "store", d, value, d.block_extents)
    ctx.emitter.emit(DescriptorStoreOp(d.base.handle, stored, numbers, d.block_extents))


@implements(tl.tensor_descriptor_base.store)
def store(ctx: Context, self: object, offsets: object, value: object) -> None:
    store_tensor_descriptor(ctx, self, offsets, value)


@implements(tl.tensor_descriptor_base.gather)
def gather(ctx: Context, self: object, x_offsets: object, y_offset: object) -> tensor:
    d = _descriptor(ctx, "gather", self)
    rows = _rows(ctx, "gather", d, x_offsets)
    numbers = _array_operands(ctx, d, [_offset(ctx, "gather", "y_offset", y_offset)])
    op = DescriptorGatherOp(d.base.handle, rows, numbers, d.block_extents, d.padding)
    return _with_rounding(ctx, d, ctx.tensor(op))


@implements(tl.tensor_descriptor_base.scatter)
def scatter(ctx: Context, self: object, value: object, x_offsets: object, y_offset: object) -> None:
    d = _descriptor(ctx, "scatter", self)
    check_writable(ctx, d.base.handle)
    rows = _rows(ctx, "scatter", d, x_offsets)
    numbers = _array_operands(ctx, d, [_offset(ctx, "scatter", "y_offset", y_offset)])
    shape = (*shape_of(rows.type), d.block_extents[1])
    stored = _block(ctx, "scatter", d, value, shape)
    ctx.emitter.emit(DescriptorScatterOp(d.base.handle, stored, rows, numbers, d.block_extents))


def _reduction(kind: str) -> Callable[[Context, object, object, object], None]:
    function = f"atomic_{kind}"

    def reduce(ctx: Context, self: object, offsets: object, value: object) -> None:
        d = _descriptor(ctx, function, self)
        check_writable(ctx, d.base.handle)
        element = d.dtype.ir
        if element not in ATOMIC_TYPES[kind]:
            names = ", ".join(str(type_of(dtype)) for dtype in ATOMIC_TYPES[kind])
            ctx.fail(errors.InvalidOperation, f"{function} on {d.dtype}", f"it works on {names}")
        numbers = _array_operands(ctx, d, _offsets(ctx, function, d, offsets))
        operand = _block(ctx, function, d, value, d.block_extents)
        ctx.emitter.emit(DescriptorReduceOp(d.base.handle, operand, numbers, d.block_extents, kind))

    return reduce


for _kind in REDUCTIONS:
    implements(getattr(tl.tensor_descriptor_base, f"atomic_{_kind}"))(_reduction(_kind))


def _descriptor(ctx: Context, function: str, value: object) -> tensor_descriptor_base:
    if isinstance(value, tensor_descriptor_base):
        return value
    expected = "a tensor descriptor"
    ctx.fail(errors.InvalidValue, function, "desc", expected, describe(value))


def _array_operands(
    ctx: Context, d: tensor_descriptor_base, offsets: Sequence[Value]
) -> tuple[Value, ...]:
    """The operands of an access that describe the array and the block."""
    described = [item.handle for item in (*d.shape, *d.strides[:-1])]
    return (*described, *offsets)


def _offsets(
    ctx: Context, function: str, d: tensor_descriptor_base, offsets: object
) -> list[Value]:
    items = constant_arguments.sequence(ctx, function, "offsets", offsets)
    rank = len(d.block_extents)
    if len(items) != rank:
        expected = f"of length {rank}, as the descriptor's blocks {list(d.block_extents)}"
        ctx.fail(errors.InvalidValue, function, "offsets", expected, len(items))
    return [_offset(ctx, function, "offsets", item) for item in items]


def _offset(ctx: Context, function: str, name: str, item: object) -> Value:
    if isinstance(item, tensor) and item.handle.type is i64:
        expected = "int32, to which offsets of blocks are limited: write .to(tl.int32)"
        ctx.fail(errors.InvalidValue, function, name, expected, item.type)
    return _integer(ctx, function, name, item, tl.int32).handle


def _block(
    ctx: Context,
    function: str,
    d: tensor_descriptor_base,
    value: object,
    shape: tuple[int, ...],
) -> Value:
    """A block to write, in the dtype of the array. Errors: InvalidValue, ShapeMismatch."""
    block = constant_arguments.tensor_argument(ctx, function, "value", value)
    if isinstance(element_of(block.handle.type), PointerType):
        ctx.fail(errors.InvalidValue, function, "value", "a tile of numbers", block.type)
    actual = shape_of(block.handle.type)
    if actual != shape:
        expected = f"of the shape of a block, {list(shape)}"
        ctx.fail(errors.InvalidValue, function, "value", expected, list(actual) or "a scalar")
    return cast_to(ctx, block, d.dtype).handle


def _rows(ctx: Context, function: str, d: tensor_descriptor_base, x_offsets: object) -> Value:
    """The indices of the rows of a gather or scatter. Errors: InvalidOperation, InvalidValue."""
    block = d.block_extents
    if len(block) != 2 or block[0] != 1:
        reason = f"its blocks must be single rows, [1, columns], found {list(block)}"
        ctx.fail(errors.InvalidOperation, f"{function} rows by this descriptor", reason)
    if block[1] * d.dtype.itemsize < _MIN_COLUMN_BYTES:
        reason = f"rows of its blocks must have at least {_MIN_COLUMN_BYTES} bytes"
        ctx.fail(errors.InvalidOperation, f"{function} rows by this descriptor", reason)
    rows = constant_arguments.tensor_argument(ctx, function, "x_offsets", x_offsets)
    shape, element = shape_of(rows.handle.type), element_of(rows.handle.type)
    if len(shape) != 1 or not isinstance(element, DType) or element.is_float or element is i64:
        ctx.fail(errors.InvalidValue, function, "x_offsets", "a line of int32", rows.type)
    if shape[0] < _MIN_ROWS:
        ctx.fail(errors.InvalidValue, function, "x_offsets", f"at least {_MIN_ROWS} rows", shape[0])
    return cast_to(ctx, rows, tl.int32).handle
