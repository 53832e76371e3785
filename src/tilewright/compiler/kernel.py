"""A compiled kernel: its artifacts, its metadata, and its launcher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.backends import Backend, GPUTarget, Launcher, Metadata
from tilewright.ir import Module, print_module

Artifact = Module | str | bytes


class Artifacts(Mapping[str, "str | bytes"]):
    """Artifacts by extension; IR is printed, and further texts are made, when asked for."""

    def __init__(self, made: dict[str, Artifact], backend: Backend, target: GPUTarget) -> None:
        self._made = made
        self._backend = backend
        self._target = target

    def __getitem__(self, extension: str) -> str | bytes:
        found = self._made.get(extension)
        if isinstance(found, Module):
            found = self._made[extension] = print_module(found)
        if found is None:
            found = self._made[extension] = self._backend.artifacts[extension](self, self._target)
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self._made
        yield from (name for name in self._backend.artifacts if name not in self._made)

    def __len__(self) -> int:
        return len(list(iter(self)))


class CompiledKernel:
    """What a launch needs of one variant of a kernel.

    asm: artifacts by extension, as in Triton; metadata: what the backend recorded, and the options;
    parameters: types of the run-time arguments, as text.
    """

    def __init__(
        self,
        backend: Backend,
        target: GPUTarget,
        made: dict[str, Artifact],
        metadata: Metadata,
        parameters: Sequence[str],
    ) -> None:
        self.backend = backend
        self.target = target
        self.asm = Artifacts(made, backend, target)
        self.metadata = metadata
        self.parameters = tuple(parameters)
        self._launcher: Launcher | None = None

    @property
    def name(self) -> str:
        return self.metadata["name"]

    @property
    def launcher(self) -> Launcher:
        """The loaded kernel; loads it at the first use."""
        if self._launcher is None:
            binary = self.asm[self.backend.stages[-1].extension]
            assert isinstance(binary, bytes)
            self._launcher = self.backend.load(binary, self.metadata, self.parameters)
        return self._launcher

    @property
    def n_regs(self) -> int:
        return self.launcher.n_regs

    @property
    def n_spills(self) -> int:
        return self.launcher.n_spills
