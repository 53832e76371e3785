"""Properties of compiled kernels, stored in little memory per kernel."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any, cast

from tilewright.backends import CommonOptions, GPUTarget, Metadata

_OF_FILES = ("target", "constants", "inputs")
"""Properties on disk, for `tilewright cache`; a kernel in memory has its source and target."""


class KernelMetadata:
    """The properties of a compiled kernel, as attributes: name, hash, target, num_warps, shared ...

    own: facts that the stages recorded; options: of the launch, which many kernels share
    """

    __slots__ = ("_options", "_own", "_target")

    def __init__(self, own: Metadata, options: CommonOptions, target: GPUTarget) -> None:
        names = {*options.names(), *_OF_FILES}
        self._own = {
            sys.intern(name): shared(value) for name, value in own.items() if name not in names
        }
        self._options = options
        self._target = target

    def __getattr__(self, name: str) -> Any:
        if name in KernelMetadata.__slots__:  # `copy` looks up attributes before it sets any
            raise AttributeError(name)
        if name == "target":
            return self._target
        if name in self._own:
            return self._own[name]
        if name in self._options.names():
            return getattr(self._options, name)
        raise AttributeError(f"kernel metadata has no '{name}'")

    @property
    def options(self) -> CommonOptions:
        """The options of the compilation."""
        return self._options

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(self.as_dict())

    def _asdict(self) -> Metadata:
        """A copy as a dictionary, as of a named tuple."""
        return self.as_dict()

    def as_dict(self) -> Metadata:
        """A copy as a dictionary."""
        return {**self._own, **asdict(self._options), "target": self._target}

    def __dir__(self) -> list[str]:
        return [*self.as_dict()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelMetadata) and self.as_dict() == other.as_dict()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"KernelMetadata({', '.join(f'{k}={v!r}' for k, v in self.as_dict().items())})"


def shared(value: Any) -> Any:
    """A value of metadata, interned; lists become tuples."""
    if isinstance(value, list | tuple):
        items = tuple(map(shared, cast("Sequence[Any]", value)))
        return _one(items) if _is_plain(items) else items
    return sys.intern(value) if type(value) is str and len(value) < _LONG else value


def _is_plain(value: object) -> bool:
    """Whether an equal value is interchangeable: not so for True and 1.0, which equal 1."""
    if type(value) is tuple:
        return all(map(_is_plain, cast("tuple[object, ...]", value)))
    return type(value) in (str, int)


_LONG = 64
"""Length of a hash, which is unique for each kernel."""


@lru_cache(maxsize=1024)
def _one(value: tuple[Any, ...]) -> tuple[Any, ...]:
    return value
