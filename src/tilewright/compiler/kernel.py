"""A compiled kernel: its artifacts, its metadata, and how it is run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from tilewright.analysis import ArgumentPair
from tilewright.backends import Backend, DeviceMemory, GPUTarget, Launcher, Metadata, Streamed
from tilewright.ir import Module, print_module
from tilewright.support import TilewrightError, errors, normal_grid, user_boundary

Artifact = Module | str | bytes

Number = int | float

Rebuild = Callable[[Exception], "CompiledKernel"]
"""Compiles a kernel anew, told why."""


class Source(Protocol):
    """What a kernel was compiled from (see `sources`)."""

    name: str
    location: str

    @property
    def extension(self) -> str:
        """Name of the artifact that it is."""
        ...

    def key(self) -> str:
        """Text that decides, with options and target, what is compiled."""
        ...

    def run_time_arguments(self, args: Sequence[object]) -> list[object]:
        """Those of a launch's arguments that are passed at run time, tuples flattened."""
        ...


class Artifacts(Mapping[str, Any]):
    """Artifacts by extension, text or bytes; what is not there yet is made when asked for."""

    def __init__(
        self,
        made: dict[str, Artifact],
        backend: Backend,
        target: GPUTarget,
        source: Callable[[], Module] | None = None,
    ) -> None:
        self._made = made
        self._target = target
        self._makers: dict[str, Callable[[], str]] = {}
        for name, make in backend.artifacts.items():
            self._makers[name] = lambda make=make: make(self, self._target)
        if source is not None:
            self._makers["source"] = lambda: print_module(source())

    def __getitem__(self, extension: str) -> Any:
        found = self._made.get(extension)
        if isinstance(found, Module):
            found = self._made[extension] = print_module(found)
        if found is None:
            found = self._made[extension] = self._makers[extension]()
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self._made
        yield from (name for name in self._makers if name not in self._made)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, extension: object) -> bool:
        return extension in self._made or extension in self._makers


class KernelMetadata:
    """What is known of a kernel, as attributes: name, hash, target, num_warps, shared ..."""

    __slots__ = ("_values",)

    def __init__(self, values: Metadata) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"kernel metadata has no '{name}'") from None

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(self._values)

    def _asdict(self) -> Metadata:
        """A copy as a dictionary."""
        return dict(self._values)

    def __dir__(self) -> list[str]:
        return [*self._values]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelMetadata) and self._values == other._values

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"KernelMetadata({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"


class CompiledKernel:
    """One variant of a kernel.

    src: what it was compiled from; asm: artifacts by extension, as in Triton; metadata: what the
    backend recorded, and all options; parameters: types of the run-time arguments, as text;
    hash: its name in the disk cache; stored: positions of the run-time arguments that the kernel
    may store through; pairs: those that must not overlap, see `analysis.argument_pairs`.

    rebuild: of a kernel from the disk cache: compiles it anew, if it cannot be loaded.
    """

    def __init__(
        self,
        src: Source,
        backend: Backend,
        target: GPUTarget,
        asm: Artifacts,
        metadata: Metadata,
        rebuild: Rebuild | None = None,
    ) -> None:
        self.src = src
        self.backend = backend
        self.target = target
        self._rebuild = rebuild
        self._launcher: Launcher | None = None
        self._describe(asm, metadata)

    def _describe(self, asm: Artifacts, metadata: Metadata) -> None:
        self.asm = asm
        self.metadata = KernelMetadata(metadata)
        self._metadata = metadata
        self.hash: str = metadata["hash"]
        self.parameters: tuple[str, ...] = tuple(metadata["parameters"])
        self.stored: tuple[int, ...] = tuple(metadata["stored"])
        self.pairs = tuple(map(ArgumentPair.of_json, metadata.get("pairs", ())))

    @property
    def name(self) -> str:
        """The symbol of the kernel in the binary."""
        return self.metadata.name

    @property
    def launcher(self) -> Launcher:
        """The loaded kernel; loads it at the first use."""
        if self._launcher is None:
            self._launcher = self._load()
        return self._launcher

    def _load(self) -> Launcher:
        try:
            return self._loaded()
        except Exception as problem:
            if self._rebuild is None or not _blames_binary(problem):
                raise
            fresh = self._rebuild(problem)
        self._rebuild = None
        self._describe(fresh.asm, fresh._metadata)
        return self._loaded()

    def _loaded(self) -> Launcher:
        # Where the source is now: an entry of the disk cache may come from another file.
        metadata = {**self._metadata, "location": self.src.location}
        return self.backend.load(self.kernel, metadata, self.parameters)

    @property
    def kernel(self) -> bytes:
        """The binary: the last artifact."""
        binary = self.asm[self.backend.stages[-1].extension]
        assert isinstance(binary, bytes)
        return binary

    @property
    def identity(self) -> Hashable:
        """Equal for kernels of the same machine code that are launched in the same way."""
        words = self.backend.launch_words or sorted(self._metadata.keys() - {"hash", "target"})
        launched = tuple((word, repr(self._metadata.get(word))) for word in words)
        code = hashlib.sha256(self.kernel).hexdigest()
        return (self.target, self.name, code, self.parameters, launched)

    @property
    def module(self) -> Launcher:
        """The loaded module; on backends without modules, the launcher."""
        return getattr(self.launcher, "module", self.launcher)

    @property
    def function(self) -> object:
        """The loaded function: a handle or address, as the backend has it."""
        return getattr(self.launcher, "function", self.launcher)

    @property
    def n_regs(self) -> int:
        """Registers of a thread; 0 where that means nothing."""
        return self.launcher.n_regs

    @property
    def n_spills(self) -> int:
        """32-bit words of a thread that did not fit registers; 0 where that means nothing."""
        return self.launcher.n_spills

    @property
    def n_max_threads(self) -> int:
        """Most threads that a program instance may have."""
        return getattr(self.launcher, "n_max_threads", 1)

    @property
    def packed_metadata(self) -> tuple[int, int, int]:
        """What Triton's launchers take: warps, cooperating blocks, bytes of shared memory."""
        return self.metadata.num_warps, self.metadata.num_ctas, self.metadata.shared

    def _init_handles(self) -> None:
        """Load the kernel now (Triton's name)."""
        _ = self.launcher

    def run(self, x: int, y: int, z: int, *args: object) -> None:
        """Run over a grid of x * y * z program instances; arguments as for `kernel[grid]`.

        Errors: BadGrid, ArgumentCount, UnsupportedArgument, and those of the launch.
        """
        extents = normal_grid((x, y, z))
        memory = self.backend.memory
        given = self.src.run_time_arguments(args)
        if len(given) != len(self.parameters):
            raise errors.ArgumentCount(self.name, len(self.parameters), len(given))
        for position in self.stored:
            if is_read_only(given[position]):
                raise errors.ReadOnlyArray(f"#{position}", self.name)
        values = [self._passed(i, arg, memory) for i, arg in enumerate(given)]
        self.launcher.launch(extents, values)

    @staticmethod
    def _passed(position: int, value: object, memory: DeviceMemory | None) -> Number:
        try:
            return passed_value(value, memory)
        except errors.UnsupportedArgument as problem:
            problem.argument = problem.argument or f"#{position}"
            raise

    def __getitem__(self, grid: object) -> Callable[..., None]:
        """`kernel[grid](*args)`: arguments are all of the kernel's, or only the run-time ones.

        grid: as for `kernel[grid]`, but no function. Raises BadGrid.
        """
        with user_boundary:
            extents = normal_grid(grid)

        def launch(*args: object, stream: object = None) -> None:
            with user_boundary:
                self.run(*extents, *args)

        return launch

    def __repr__(self) -> str:
        return f"<CompiledKernel {self.name} for {self.target.backend}, {self.hash[:12]}>"


def _blames_binary(problem: Exception) -> bool:
    """Whether a kernel could not be loaded because of what it is, not of what the device lacks."""
    return getattr(problem, "blames_binary", not isinstance(problem, TilewrightError | MemoryError))


def is_read_only(value: Any) -> bool:
    """Whether an array says that it must not be stored to."""
    for name in ("__array_interface__", "__cuda_array_interface__"):
        interface = getattr(value, name, None)
        if interface is not None:
            return bool(interface["data"][1])
    return False


def passed_value(value: Any, memory: DeviceMemory | None = None) -> Number:
    """A run-time argument as it is passed: a number, or the address of an array; memory: of the
    device, to order the launch after the stream that the array may name."""
    if isinstance(value, int | float):
        return value
    if hasattr(value, "data_ptr"):
        return value.data_ptr()
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _on_device(interface, memory)
    if hasattr(value, "__array_interface__"):
        return value.__array_interface__["data"][0]
    raise errors.UnsupportedArgument("", type(value).__name__)


def _on_device(interface: Mapping[str, Any], memory: DeviceMemory | None) -> int:
    address, stream = int(interface["data"][0] or 0), interface.get("stream")
    if stream is None or memory is None:
        return address
    device, _ = memory.current()
    return Streamed(address, device, 0 if stream == 1 else int(stream))
