"""IR values with elements, as NumPy arrays."""

from __future__ import annotations

import enum

import numpy as np

from tilewright.interp.kernel_memory import Span
from tilewright.interp.numpy_dtypes import Array
from tilewright.ir import Block, Value
from tilewright.ir.types import DType, Scalar, Type, element_of, shape_of
from tilewright.ops import Sign

_PREFIX = "tensor("
"""The prefix of the printed elements, to which further lines of an array are aligned."""

_NOWHERE = Block()
"""Owner of all concrete values: they hold no op, and so no operands of it."""


class Work(enum.IntFlag):
    """The part of a number in the work of a program.

    DERIVED: computed from a program number; FIRST: the first tile or step of a program, as the
    compiler sees it; BROKEN: computed from one that wraps, or that is divided by a negative number,
    which compiled kernels assume not to occur; LITERAL: a constant
    """

    NONE = 0
    DERIVED = 1
    FIRST = 2
    BROKEN = 4
    LITERAL = 8


class ConcreteValue(Value):
    """An IR value with its elements.

    data: array in the type's shape (0-d for a scalar) and NumPy dtype; in a combine region that
    runs on whole slices, of any shape; root: for pointers, their argument, or None if it is
    unknown; sign, part, work: see `tile_indices`; marks: see `access_checks`
    """

    __slots__ = ("data", "marks", "part", "root", "sign", "work")

    def __init__(self, type_: Type, data: Array, root: Span | None = None, name: str = "") -> None:
        super().__init__(type_, _NOWHERE, 0, name)
        self.data = data
        self.root = root
        self.sign = Sign.UNKNOWN
        self.part: object = None
        self.work = Work.NONE
        self.marks: Array | None = None

    def __repr__(self) -> str:
        """The elements, the element type, and the shape of a tile."""
        shape = shape_of(self.type)
        element = element_of(self.type)
        text = self._elements(element)
        return f"{text}, {element}, shape={shape}" if shape else f"{text}, {element}"

    def _elements(self, element: Scalar) -> str:
        """Numbers; addresses as offsets from the pointer's argument, or in hexadecimal."""
        if isinstance(element, DType):
            return np.array2string(self.data, prefix=_PREFIX)
        if self.root is not None:
            offsets = self.data.astype(np.int64) - self.root.start
            # an address between two elements has no index
            if not (offsets % element.element.bytes).any():
                name = self.root.name + " + "
                elements = np.asarray(offsets // element.element.bytes)
                return name + np.array2string(elements, prefix=_PREFIX + name)
        return np.array2string(self.data, prefix=_PREFIX, formatter={"int": hex})
