"""Types that are no scalar, pointer or tile: `tuple_type`, and `void`, which has no values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.language.dtypes import KIND, dtype
from tilewright.support import errors


class tuple_type:
    """Type of a tuple: the types of its items, in order; `fields` are the names of a named tuple.

    A compile-time item has its constexpr as its type.
    """

    def __init__(self, types: Sequence[Any], fields: Sequence[str] | None = None) -> None:
        self.types = list(types)
        self.fields = list(fields) if fields else [""] * len(self.types)
        named = zip(self.fields, self.types, strict=True)
        self.name = f"[{','.join(f'{field}:{type_}' for field, type_ in named)}]"

    def __getitem__(self, index: int) -> Any:
        return self.types[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple_type):
            return False
        return (self.types, self.fields) == (other.types, other.fields)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


class void_type(dtype):
    """Result type of a function without a result."""

    def __init__(self) -> None:
        super().__init__("int1")
        self.name = "void"

    def is_void(self) -> bool:
        return True

    def is_int(self) -> bool:
        return False

    @property
    def ir(self) -> Any:
        """There is none."""
        raise errors.InvalidOperation("use the type void", "there are no values of it")

    def kind(self) -> KIND:
        """There is none, as there are no values to promote."""
        raise errors.InvalidOperation("promote the type void", "there are no values of it")


void = void_type()
