"""A compiled kernel: its artifacts, its metadata, and how it is run."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from typing import Any, Protocol, cast

from tilewright.analysis import ArgumentPair
from tilewright.backends import (
    Backend,
    CommonOptions,
    DeviceMemory,
    Explanation,
    GPUTarget,
    Launcher,
    LaunchSizes,
    Metadata,
    StageContext,
    Streamed,
)
from tilewright.compiler.kernel_store import shared_store
from tilewright.ir import Module, print_module
from tilewright.support import (
    LaunchMetadata,
    TilewrightError,
    errors,
    kernel_hooks,
    normal_grid,
    settings,
    user_boundary,
)

Artifact = Module | str | bytes

SOURCE = "source"
"""Extension of the front end's tile IR, before any pass of a backend."""

Number = int | float

Rebuild = Callable[[Exception], "CompiledKernel"]
"""Compiles a kernel anew; its argument says why the one that was kept cannot be used."""


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


class ArgumentWatch(Protocol):
    """Looks at the arguments of each launch."""

    def check(
        self,
        pairs: Sequence[ArgumentPair],
        names: Sequence[str],
        arrays: Sequence[Any],
        values: Sequence[Any],
    ) -> None:
        """By the position of the run-time argument: pairs, those that must not overlap; names;
        arrays and numbers as given; addresses and numbers as passed."""
        ...


class Artifacts(Mapping[str, Any]):
    """Artifacts by extension, text or bytes; what is not there yet is made at its first use.

    made: those of the stages; source: makes the front end's module; again: gets those of the stages
    once more, from the disk cache or by compiling.
    """

    __slots__ = ("_again", "_backend", "_made", "_names", "_source", "_target")

    def __init__(
        self,
        made: dict[str, Artifact],
        backend: Backend,
        target: GPUTarget,
        source: Callable[[], Module] | None = None,
        again: Callable[[], dict[str, Artifact]] | None = None,
    ) -> None:
        self._made = made
        self._names: tuple[str, ...] = shared(tuple(made))
        self._backend = backend
        self._target = target
        self._source = source
        self._again = again

    def module(self) -> Module:
        """The front end's module, made anew: with places in the source, which texts lack. Errors:
        InvalidOption for a kernel from a later stage."""
        if self._source is None:
            raise errors.InvalidOption("source", "a kernel or a file of tile IR", "a module")
        return self._source()

    def forget(self) -> None:
        """Keep nothing in memory that can be had again."""
        if self._again is not None:
            self._made = {}

    def __getitem__(self, extension: str) -> Any:
        artifact = self._made.get(extension)
        if artifact is None and extension in self._names and self._again is not None:
            # in this order, so that an artifact that was handed out stays the same object
            self._made = {**self._again(), **self._made}
            artifact = self._made[extension]
        if isinstance(artifact, Module):
            artifact = self._made[extension] = print_module(artifact)
        if artifact is None:
            artifact = self._made[extension] = self._further(extension)
        return artifact

    def _further(self, extension: str) -> str:
        """What is no stage's."""
        if extension == SOURCE and self._source is not None:
            return print_module(self._source())
        return self._backend.artifacts[extension](self, self._target)

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self._names, *self._made, *self._further_names()))

    def _further_names(self) -> Iterator[str]:
        yield from self._backend.artifacts
        if self._source is not None:
            yield SOURCE

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, extension: object) -> bool:
        # not as `Mapping` does it, which would make the artifact to find out
        return extension in list(iter(self))


class KernelMetadata:
    """The properties of a compiled kernel, as attributes: name, hash, target, num_warps, shared ...

    own: what the stages have recorded; options: of the launch, which many kernels share.
    """

    __slots__ = ("_options", "_own", "_target")

    def __init__(self, own: Metadata, options: CommonOptions, target: GPUTarget) -> None:
        names = options.names()
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
    """A value of metadata such that equal ones are one object; lists become tuples."""
    if isinstance(value, list | tuple):
        items = tuple(map(shared, cast("Sequence[Any]", value)))
        return _one(items) if _is_plain(items) else items
    return sys.intern(value) if type(value) is str and len(value) < _LONG else value


def _is_plain(value: object) -> bool:
    """Whether what equals it is the same: not so for True and 1.0, which equal 1."""
    if type(value) is tuple:
        return all(map(_is_plain, cast("tuple[object, ...]", value)))
    return type(value) in (str, int)


_LONG = 64
"""Characters of a hash: no two kernels have the same."""


@lru_cache(maxsize=1024)
def _one(value: tuple[Any, ...]) -> tuple[Any, ...]:
    return value


class CompiledKernel:
    """One variant of a kernel.

    src: what it was compiled from; asm: artifacts by extension, as in Triton; metadata: what the
    backend recorded, and all options; parameters: types of the run-time arguments, as text;
    hash: its name in the disk cache; stored: positions of the run-time arguments that the kernel
    may store through; pairs: those that must not overlap, see `analysis.argument_pairs`.

    rebuild: of a kernel from the disk cache: compiles it anew, if it cannot be loaded; watch: sees
    the arguments of each `launch`; set from outside, where there are pairs.
    """

    def __init__(
        self,
        src: Source,
        backend: Backend,
        target: GPUTarget,
        asm: Artifacts,
        metadata: KernelMetadata,
        rebuild: Rebuild | None = None,
    ) -> None:
        self.src = src
        self.backend = backend
        self.target = target
        self._rebuild = rebuild
        self._launcher: Launcher | None = None
        self.watch: ArgumentWatch | None = None
        self._latest: object = None
        self._describe(asm, metadata)

    def _describe(self, asm: Artifacts, metadata: KernelMetadata) -> None:
        self.asm = asm
        self.metadata = metadata
        self.hash: str = metadata.hash
        self.parameters: tuple[str, ...] = tuple(metadata.parameters)
        self.stored: tuple[int, ...] = tuple(metadata.stored)
        self.pairs = tuple(map(ArgumentPair.of_json, getattr(metadata, "pairs", ())))

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
            # A device without memory would refuse a fresh binary too.
            if self._rebuild is None or not _blames_binary(problem):
                raise
            fresh = self._rebuild(problem)
        # once: if the fresh kernel cannot be loaded either, its error is the user's to see
        self._rebuild = None
        self._describe(fresh.asm, fresh.metadata)
        return self._loaded()

    def _loaded(self) -> Launcher:
        # Where the source is now: an entry of the disk cache may come from another file.
        metadata = {**self.metadata.as_dict(), "location": self.src.location}
        is_watched = kernel_hooks.load_start or kernel_hooks.load_end
        files = shared_store(settings().cache).files(self.hash, self.name) if is_watched else {}
        kernel_hooks.load_start(None, None, self.name, files, self.hash)
        launcher = self.backend.load(self.kernel, metadata, self.parameters)
        module, function = (getattr(launcher, n, launcher) for n in ("module", "function"))
        kernel_hooks.load_end(module, function, self.name, files, self.hash)
        # The device holds the code now, and the disk cache the texts.
        self.asm.forget()
        return launcher

    @property
    def kernel(self) -> bytes:
        """The binary: the last artifact."""
        binary = self.asm[self.backend.stages[-1].extension]
        assert isinstance(binary, bytes)
        return binary

    @property
    def identity(self) -> Hashable:
        """Equal for kernels of the same machine code that are launched in the same way."""
        metadata = self.metadata.as_dict()
        # without the hash, which differs between options that lead to the same code
        names = self.backend.launch_metadata or sorted(metadata.keys() - {"hash", "target"})
        launched = tuple((name, repr(metadata.get(name))) for name in names)
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

    def explain(self, sizes: Mapping[str, int] | None = None, grid: object = None) -> Explanation:
        """How each load, store and product was lowered and why, and the resources of a program;
        printed, a table.

        sizes, grid: values of integer arguments by name and the grid of a launch, to compare its
        work with what a device can do. Errors: NotExplained, InvalidOption, BadGrid.
        """
        with user_boundary:
            if self.backend.explain is None:
                raise errors.NotExplained(self.backend.name)
            if grid is None and sizes:
                raise errors.InvalidOption("grid", "given with sizes", None)
            launch = None if grid is None else LaunchSizes(sizes or {}, normal_grid(grid))
            metadata = self.metadata
            context = StageContext(self.target, metadata.options, metadata.as_dict())
            return self.backend.explain(self.asm.module(), context, launch)

    def launch_metadata(self, grid: object, stream: object, *args: object) -> LaunchMetadata:
        """What hooks around a launch are told, as Triton's launchers make it: name, kernel, grid,
        function, stream, and what `jit(launch_metadata=)` of the kernel adds."""
        return LaunchMetadata(partial(self._described, grid, stream, args))

    def _described(self, grid: object, stream: object, args: Sequence[object]) -> dict[str, Any]:
        function: Any = getattr(self.src, "fn", None)
        told: dict[str, Any] = {"name": self.name, "kernel": self, "grid": grid}
        told |= {"function": self.function, "stream": stream}
        extra = getattr(function, "launch_metadata", None)
        if extra is not None:
            arguments = dict(zip(function.arg_names, args, strict=False))
            told.update(extra(grid, self.metadata, arguments))
        return told

    def run(
        self,
        x: int,
        y: int,
        z: int,
        stream: int | None,
        function: object,
        packed_metadata: object,
        launch_metadata: object,
        launch_enter_hook: Callable[..., object] | None,
        launch_exit_hook: Callable[..., object] | None,
        *args: object,
    ) -> None:
        """A launch as Triton's launchers make it, from all arguments of the kernel.

        stream: must be the current one; function, packed_metadata: of this kernel, and not looked
        at; the hooks are called with launch_metadata. Errors: as of `launch`, InvalidOption.
        """
        memory = self.backend.memory
        if memory is not None and stream is not None and stream != memory.current()[1]:
            raise errors.InvalidOption("stream", "the current stream", stream)
        if launch_enter_hook is not None:
            launch_enter_hook(launch_metadata)
        self.launch(x, y, z, *args)
        if launch_exit_hook is not None:
            launch_exit_hook(launch_metadata)

    def launch(self, x: int, y: int, z: int, *args: object) -> None:
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
        launcher = self.launcher  # before the pairs, which loading may replace
        # a launch like the latest one touches the same memory
        if self.watch is not None and self._latest != (extents, values):
            self.watch.check(self.pairs, self.metadata.names, given, values)
            self._latest = (extents, values)
        launcher.launch(extents, values)

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
                self.launch(*extents, *args)

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
