"""Memory of C structures that machine code reads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import field
from typing import TypeVar

from tilewright.runtime.launch.native_dispatch_structures import PROBES
from tilewright.support.data_class import dataclass

Item = TypeVar("Item", bound=ctypes.Structure)
Table = list[int] | ctypes.Array[ctypes.c_uint64]


@dataclass
class Memory:
    """C structures and the memory they point to, at fixed addresses while this object lives."""

    kept: list[object] = field(default_factory=list[object])

    def words(self, values: Sequence[int]) -> int:
        """Address of an array of 64-bit words."""
        array = (ctypes.c_uint64 * max(len(values), 1))(*values)
        self.kept.append(array)
        return ctypes.addressof(array)

    def objects(self, objects: Sequence[object]) -> int:
        """Address of an array of objects."""
        self.kept.extend(objects)
        return self.words([id(item) for item in objects])

    def object(self, item: object) -> int:
        """Address of an object."""
        self.kept.append(item)
        return id(item)

    def structure(self, structure: ctypes.Structure) -> int:
        """Address of a structure."""
        self.kept.append(structure)
        return ctypes.addressof(structure)

    def structures(self, kind: type[Item], items: Sequence[Item]) -> int:
        """Address of an array of structures."""
        array = (kind * len(items))(*items)
        self.kept.append(array)
        return ctypes.addressof(array)


def free_position(table: Table, slot: int) -> int:
    """The first free position of a search that starts at `slot`; `slot` if there is none."""
    free = (position for position in range(slot, slot + PROBES) if not table[position])
    return next(free, slot)
