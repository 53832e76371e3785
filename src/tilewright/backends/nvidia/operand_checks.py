"""Checks of the verifier for ops of this backend: operands and attributes that fit."""

from __future__ import annotations

from tilewright.ir import Op
from tilewright.ir.types import BufferType, TileType, Type, element_of, shape_of


def first_problem(*problems: str | None) -> str | None:
    """The first problem, if any."""
    return next((problem for problem in problems if problem is not None), None)


def buffer_problem(type_: Type) -> str | None:
    """Why a type is not that of new memory."""
    return None if isinstance(type_, BufferType) else f"makes a buffer, not {type_}"


def other_tile(type_: Type, tile: Type) -> str | None:
    """Why a type is not that of the same tile: layouts, and slots of buffers, may differ."""
    both = (shape_of(type_), element_of(type_)), (shape_of(tile), element_of(tile))
    return None if both[0] == both[1] else f"{type_} must have shape and elements of {tile}"


def held_problem(buffer: Type, tile: Type) -> str | None:
    """Why a buffer does not hold a tile; without a layout, its rows may be longer."""
    assert isinstance(buffer, BufferType)
    if buffer.layout is not None:
        return other_tile(buffer, tile)
    shape = shape_of(tile)
    rows = buffer.shape[:-1] == shape[:-1] and buffer.shape[-1] >= shape[-1]
    same = rows and buffer.element == element_of(tile)
    return None if same else f"{buffer} does not hold {tile}"


def axis_problem(axis: int, type_: Type) -> str | None:
    """Why a type has no such axis."""
    rank = len(shape_of(type_))
    return None if 0 <= axis < rank else f"axis {axis} is none of {type_}"


def part_problem(whole: Type, part: Type, axis: int, start: int) -> str | None:
    """Why the elements of a tile from `start` on, along an axis, are not those of a part."""
    if not isinstance(part, TileType):
        return f"the result is a tile, not {part}"
    if axis_problem(axis, whole) or len(part.shape) != len(shape_of(whole)):
        return f"axis {axis} is none of both {whole} and {part}"
    extent, size = shape_of(whole)[axis], part.shape[axis]
    if start < 0 or start % size or start + size > extent:
        return f"{size} elements from {start} on are no part of {extent}"
    shape = (*shape_of(whole)[:axis], size, *shape_of(whole)[axis + 1 :])
    same = part.shape == shape and element_of(part) == element_of(whole)
    return None if same else f"{part} is no part of {whole}"


def dot_problem(a: Type, b: Type, acc: Type) -> str | None:
    """Why a @ b + acc has no meaning; a in a buffer is transposed."""
    left, right, sums = (shape_of(type_) for type_ in (a, b, acc))
    if not 2 <= len(sums) == len(left) == len(right):
        return f"{a}, {b} and {acc} are no matrices of one rank"
    if isinstance(a, BufferType):  # whose rows may be longer
        fits = left[-2] == right[-2] and left[-1] >= sums[-2] and right[-1] >= sums[-1]
    else:
        fits = left[-1] == right[-2] and (left[-2], right[-1]) == sums[-2:]
    batches = left[:-2] == right[:-2] == sums[:-2]
    return None if fits and batches else f"shapes do not fit: {a} @ {b} + {acc}"


def bits_problem(op: Op, type_: Type, axis: int, bits: int) -> str | None:
    """Why the positions along an axis are no numbers of at least that many bits."""
    if axis_problem(axis, type_) is not None:
        return axis_problem(axis, type_)
    extent = shape_of(type_)[axis]
    if bits < 0 or extent >> bits << bits != extent or not extent >> bits:
        return f"{op.opcode} works on {bits} bits of positions, which {extent} elements have not"
    return None
