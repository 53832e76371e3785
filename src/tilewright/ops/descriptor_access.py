"""Accesses by tensor descriptors: blocks of a strided array in global memory, clipped at its edges.

A descriptor is not a value. Each access has the whole description of the array: the address of its
first element, and `numbers`, in this order

    shape      i32, elements in each dimension
    strides    i64, elements, of all dimensions but the last, where it is 1
    offsets    i32, the first element of the block; may be outside of the array, also negative

Targets with the Tensor Memory Accelerator (TMA) lower these ops directly; for others the pass
`lower-descriptors` replaces them by masked loads and stores. If the argument `base` has the fact
`descriptor`, whose value is the rank, the host passed a descriptor: the arguments after it are the
shape and the strides, aligned and checked, so that a launch may encode it for the TMA.
"""

from __future__ import annotations

from tilewright.ir import (
    Effect,
    Op,
    Value,
    attr,
    operand,
    pointer,
    scalar_integer,
    tile,
    variadic,
)
from tilewright.ir.types import DType, PointerType, TileType, Type, element_of, i32, i64, shape_of
from tilewright.ops.memory import ATOMIC_TYPES

MAX_DESCRIPTOR_RANK = 5
PADDINGS = ("zero", "nan")
REDUCTIONS = ("add", "min", "max", "and", "or", "xor")


class DescriptorAccess(Op):
    """Base class of the accesses."""

    base: Value = operand(pointer)

    @property
    def pointer(self) -> Value:
        """The pointer to the first element of the array: the operand `base`."""
        return self.operands[0]

    @property
    def block(self) -> tuple[int, ...]:
        """The attribute `block_shape`."""
        return self.attrs["block_shape"]

    @property
    def rank(self) -> int:
        """The number of dimensions of the array."""
        return len(self.block)

    @property
    def description(self) -> tuple[Value, ...]:
        """The operands `numbers`, which are the last."""
        return tuple(self.operands[len(self.operand_fields) - 1 :])

    @property
    def shape(self) -> tuple[Value, ...]:
        """The shape of the array."""
        return self.description[: self.rank]

    @property
    def strides(self) -> tuple[Value, ...]:
        """The strides of all dimensions but the last, in elements."""
        return self.description[self.rank : 2 * self.rank - 1]

    @property
    def offsets(self) -> tuple[Value, ...]:
        """The first element of the block; for a gather or scatter only its column."""
        return self.description[2 * self.rank - 1 :]

    @property
    def element(self) -> DType:
        """The type of the array's elements."""
        pointer = element_of(self.pointer.type)
        assert isinstance(pointer, PointerType)
        return pointer.element

    @property
    def block_type(self) -> TileType:
        """The type of the tile that is read or written."""
        return TileType(self.block, self.element)


def _wrong_numbers(op: DescriptorAccess, offsets: int) -> str | None:
    """The error in the description of the array, or None."""
    if not isinstance(op.pointer.type, PointerType):
        return f"the base is {op.pointer.type}, not one pointer"
    if not 1 <= op.rank <= MAX_DESCRIPTOR_RANK:
        return f"a descriptor has 1 to {MAX_DESCRIPTOR_RANK} dimensions, not {op.rank}"
    expected = (i32,) * op.rank + (i64,) * (op.rank - 1) + (i32,) * offsets
    actual = tuple(value.type for value in op.description)
    if actual != expected:
        listed = (", ".join(map(str, types)) for types in (expected, actual))
        return "the numbers of the descriptor are {}, not {}".format(*listed)
    return None


def _wrong_padding(op: DescriptorAccess, padding: str) -> str | None:
    return f"{op.element} has no nan" if padding == "nan" and not op.element.is_float else None


def _wrong_block(op: DescriptorAccess, value: Value, expected: TileType) -> str | None:
    assert isinstance(op.pointer.type, PointerType)
    if op.pointer.type.const:
        return "writes through a const pointer"
    actual = (shape_of(value.type), element_of(value.type))
    fits = actual == (expected.shape, expected.element)
    return None if fits else f"the block is {value.type}, not {expected}"


def _rows_type(op: DescriptorAccess, rows: Value) -> TileType:
    """The type of the rows that a gather reads, one for each index."""
    return TileType((*shape_of(rows.type), *op.block[1:]), op.element)


def _wrong_rows(op: DescriptorAccess, rows: Value) -> str | None:
    if op.rank != 2 or op.block[0] != 1:
        return f"the block is one row of a matrix, not {op.block}"
    if len(shape_of(rows.type)) != 1 or element_of(rows.type) is not i32:
        return f"the rows are {rows.type}, not a tile of i32 with one dimension"
    return None


class DescriptorLoadOp(DescriptorAccess, opcode="mem.descriptor_load", effects=(Effect.READ,)):
    """result[i, j] = base[offset_0 + i, offset_1 + j] inside the shape, else padding

    bulk: the backend copies the block by TMA, so the op is not lowered to loads; dropped: the
    number of leading dimensions of the block, of extent 1, that the result does not have.
    """

    numbers: tuple[Value, ...] = variadic(scalar_integer)
    block_shape: tuple[int, ...] = attr()
    padding: str = attr(default="zero", choices=PADDINGS)
    bulk: bool = attr(default=False)
    dropped: int = attr(default=0)

    def infer(self) -> Type:
        return TileType(self.block[self.dropped :], self.element)

    def verify(self) -> str | None:
        if any(extent != 1 for extent in self.block[: self.dropped]):
            return f"only dims of extent 1 are dropped, not {self.dropped} of {self.block}"
        return _wrong_numbers(self, self.rank) or _wrong_padding(self, self.padding)


class DescriptorStoreOp(DescriptorAccess, opcode="mem.descriptor_store", effects=(Effect.WRITE,)):
    """base[offset_0 + i, offset_1 + j] = stored[i, j], inside the shape

    bulk: as for loads.
    """

    stored: Value = operand(tile)
    numbers: tuple[Value, ...] = variadic(scalar_integer)
    block_shape: tuple[int, ...] = attr()
    bulk: bool = attr(default=False)

    def verify(self) -> str | None:
        return _wrong_numbers(self, self.rank) or _wrong_block(self, self.stored, self.block_type)


class DescriptorReduceOp(
    DescriptorAccess, opcode="mem.descriptor_reduce", effects=(Effect.READ, Effect.WRITE)
):
    """base[offset_0 + i, ...] = kind(base[...], operand[i, ...]) inside the shape; each element
    atomically, in any order

    bulk: as for loads.
    """

    operand: Value = operand(tile)
    numbers: tuple[Value, ...] = variadic(scalar_integer)
    block_shape: tuple[int, ...] = attr()
    kind: str = attr(default="add", choices=REDUCTIONS)
    bulk: bool = attr(default=False)

    def verify(self) -> str | None:
        wrong = _wrong_numbers(self, self.rank)
        wrong = wrong or _wrong_block(self, self.operand, self.block_type)
        if wrong is None and self.element not in ATOMIC_TYPES[self.kind]:
            return f"{self.kind} is not supported for {self.element}"
        return wrong


class DescriptorGatherOp(DescriptorAccess, opcode="mem.descriptor_gather", effects=(Effect.READ,)):
    """result[i, j] = base[rows[i], offset + j] inside the shape, else padding"""

    rows: Value = operand(tile)
    numbers: tuple[Value, ...] = variadic(scalar_integer)
    block_shape: tuple[int, ...] = attr()
    padding: str = attr(default="zero", choices=PADDINGS)

    def infer(self) -> Type:
        return _rows_type(self, self.rows)

    def verify(self) -> str | None:
        wrong = _wrong_numbers(self, 1) or _wrong_padding(self, self.padding)
        return wrong or _wrong_rows(self, self.rows)


class DescriptorScatterOp(
    DescriptorAccess, opcode="mem.descriptor_scatter", effects=(Effect.WRITE,)
):
    """base[rows[i], offset + j] = stored[i, j], where that is inside of the shape"""

    stored: Value = operand(tile)
    rows: Value = operand(tile)
    numbers: tuple[Value, ...] = variadic(scalar_integer)
    block_shape: tuple[int, ...] = attr()

    def verify(self) -> str | None:
        wrong = _wrong_numbers(self, 1) or _wrong_rows(self, self.rows)
        return wrong or _wrong_block(self, self.stored, _rows_type(self, self.rows))
