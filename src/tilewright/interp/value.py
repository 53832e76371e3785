"""A value that is there: type and elements."""

from __future__ import annotations

from tilewright.interp.dtypes import Array
from tilewright.interp.memory import Span
from tilewright.ir import Block, Value
from tilewright.ir.types import Type, shape_of, with_shape

_NOWHERE = Block()
"""Owner of all eager values: they keep no op alive, and so no operands of it."""


class EagerValue(Value):
    """An IR value together with its elements.

    data: array in the type's shape (0-d for a scalar) and NumPy dtype; in a combine region that
    runs on whole slices, of any shape. root: for pointers, the argument that they were made from;
    None where that is not known.
    """

    __slots__ = ("data", "root")

    def __init__(self, type_: Type, data: Array, root: Span | None = None, name: str = "") -> None:
        super().__init__(type_, _NOWHERE, 0, name)
        self.data = data
        self.root = root

    def __repr__(self) -> str:
        """The elements, the element type, and the shape of a tile."""
        shape = shape_of(self.type)
        if not shape:
            return f"{self.data}, {self.type}"
        return f"{self.data}, {with_shape(self.type, ())}, shape={shape}"
