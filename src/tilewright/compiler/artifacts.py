"""Artifacts of the stages of a compilation, by extension."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tilewright import ir
from tilewright.backends import Backend, GPUTarget
from tilewright.compiler.kernel_metadata import shared
from tilewright.ir import Module
from tilewright.support import errors

Artifact = Module | str | bytes

Maker = Callable[[Mapping[str, Any]], str | bytes]
"""Function that derives an artifact from others."""

SOURCE = "source"
"""Extension of the front end's tile IR, before any pass of a backend."""


class Artifacts(Mapping[str, Any]):
    """Artifacts by extension, text or bytes; missing ones are derived at their first use.

    made: artifacts of the stages; source: builds the front end's module; again: returns the
    artifacts of the stages once more, from the disk cache or by compiling; offered: derives others,
    see `offer`
    """

    __slots__ = ("_again", "_backend", "_made", "_names", "_offered", "_source", "_target")

    def __init__(
        self,
        made: dict[str, Artifact],
        backend: Backend,
        target: GPUTarget,
        source: Callable[[], Module] | None = None,
        again: Callable[[], dict[str, Artifact]] | None = None,
        offered: Mapping[str, Maker] = MappingProxyType({}),
    ) -> None:
        self._made = made
        self._offered = dict(offered)
        self._names: tuple[str, ...] = shared(tuple(made))
        self._backend = backend
        self._target = target
        self._source = source
        self._again = again

    def module(self) -> Module:
        """Build the front end's module, with source locations, which texts lack.

        Errors: InvalidOption for a kernel from a later stage.
        """
        if self._source is None:
            raise errors.InvalidOption("source", "a kernel or a file of tile IR", "a module")
        return self._source()

    def __reduce__(self) -> tuple[type[Artifacts], tuple[object, ...]]:
        """Pickle the artifacts of all stages, since another process may have another disk cache."""
        made = {extension: self[extension] for extension in self._names}
        return Artifacts, (made, self._backend, self._target, None, None, self._offered)

    def offer(self, extension: str, make: Maker) -> None:
        """Add an artifact that is derived from these; it is pickled with them."""
        self._offered[extension] = make

    def forget(self) -> None:
        """Drop artifacts from memory that `again` can restore."""
        if self._again is not None:
            self._made = {}

    def __getitem__(self, extension: str) -> Any:
        artifact = self._made.get(extension)
        if artifact is None and extension in self._names and self._again is not None:
            # in this order, so that an artifact that was returned stays the same object
            self._made = {**self._again(), **self._made}
            artifact = self._made[extension]
        if isinstance(artifact, Module):
            artifact = self._made[extension] = ir.print_module(artifact)
        if artifact is None:
            artifact = self._made[extension] = self._further(extension)
        return artifact

    def _further(self, extension: str) -> str | bytes:
        """The artifacts that no stage makes."""
        if extension in self._offered:
            return self._offered[extension](self)
        if extension == SOURCE and self._source is not None:
            return ir.print_module(self._source())
        return self._backend.artifacts[extension](self, self._target)

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self._names, *self._made, *self._further_names()))

    def _further_names(self) -> Iterator[str]:
        yield from (*self._backend.artifacts, *self._offered)
        if self._source is not None:
            yield SOURCE

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, extension: object) -> bool:
        # not as `Mapping` does it, which would derive the artifact to find out
        return extension in list(iter(self))
