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

    artifacts: those of the stages; source: builds the front end's module; restore: returns the
    artifacts of the stages once more, from the disk cache or by compiling; offered: derives others,
    see `offer`
    """

    __slots__ = (
        "_artifacts", "_backend", "_names", "_offered", "_restore", "_source", "_target",
    )  # fmt: skip

    def __init__(
        self,
        artifacts: dict[str, Artifact],
        backend: Backend,
        target: GPUTarget,
        source: Callable[[], Module] | None = None,
        restore: Callable[[], dict[str, Artifact]] | None = None,
        offered: Mapping[str, Maker] = MappingProxyType({}),
    ) -> None:
        self._artifacts = artifacts
        self._offered = dict(offered)
        self._names: tuple[str, ...] = shared(tuple(artifacts))
        self._backend = backend
        self._target = target
        self._source = source
        self._restore = restore

    def module(self) -> Module:
        """Build the front end's module, with source locations, which texts lack.

        Errors: InvalidOption for a kernel from a later stage.
        """
        if self._source is None:
            raise errors.InvalidOption("source", "a kernel or a file of tile IR", "a module")
        return self._source()

    def __reduce__(self) -> tuple[type[Artifacts], tuple[object, ...]]:
        """Pickle the artifacts of all stages, since another process may have another disk cache."""
        artifacts = {extension: self[extension] for extension in self._names}
        return Artifacts, (artifacts, self._backend, self._target, None, None, self._offered)

    def offer(self, extension: str, make: Maker) -> None:
        """Add an artifact that is derived from these; it is pickled with them."""
        self._offered[extension] = make

    def forget(self) -> None:
        """Drop artifacts from memory that `restore` can rebuild."""
        if self._restore is not None:
            self._artifacts = {}

    def __getitem__(self, extension: str) -> Any:
        artifact = self._artifacts.get(extension)
        if artifact is None and extension in self._names and self._restore is not None:
            # in this order, so that an artifact that was returned stays the same object
            self._artifacts = {**self._restore(), **self._artifacts}
            artifact = self._artifacts[extension]
        if isinstance(artifact, Module):
            artifact = self._artifacts[extension] = ir.print_module(artifact)
        if artifact is None:
            artifact = self._artifacts[extension] = self._further(extension)
        return artifact

    def _further(self, extension: str) -> str | bytes:
        """The artifacts that no stage makes."""
        if extension in self._offered:
            return self._offered[extension](self)
        if extension == SOURCE and self._source is not None:
            return ir.print_module(self._source())
        return self._backend.artifacts[extension](self, self._target)

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self._names, *self._artifacts, *self._further_names()))

    def _further_names(self) -> Iterator[str]:
        yield from (*self._backend.artifacts, *self._offered)
        if self._source is not None:
            yield SOURCE

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, extension: object) -> bool:
        # not as `Mapping` does it, which would derive the artifact to find out
        return extension in list(iter(self))
