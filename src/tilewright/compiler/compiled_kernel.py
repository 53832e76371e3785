"""A compiled kernel: its artifacts, its metadata, and how it is run."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from tilewright.analysis import ArgumentPair
from tilewright.backends import (
    Backend,
    DeviceMemory,
    Explanation,
    GPUTarget,
    Launcher,
    LaunchSizes,
    StageContext,
)
from tilewright.compiler.artifacts import Artifacts
from tilewright.compiler.kernel_metadata import KernelMetadata
from tilewright.compiler.kernel_store import shared_store
from tilewright.compiler.launch_protocol import Run, general_run_function, run_function
from tilewright.compiler.passed_values import Number, is_read_only, passed_value
from tilewright.support import (
    Grid,
    HookChain,
    LaunchMetadata,
    TilewrightError,
    errors,
    kernel_hooks,
    normal_grid,
    settings,
    user_boundary,
)
from tilewright.support.asynchronous_exceptions import synchronous

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

    def run_time_places(self) -> tuple[tuple[int, ...], int] | None:
        """Positions of these among all arguments of the kernel, and how many there are; None if
        some are in others, as in a tuple."""
        ...


class ArgumentWatch(Protocol):
    """Looks at the arguments of each launch."""

    def kernel_for(
        self, kernel: CompiledKernel, grid: Grid, arrays: Sequence[Any], values: Sequence[Any]
    ) -> CompiledKernel:
        """The kernel that runs instead of `kernel` with these arguments, or `kernel` itself.

        arrays, values: of the run-time arguments in order, as given and as passed
        """
        ...


class _OfThisProcess:
    """What of a kernel means nothing in another process: a copy there begins without it.

    rebuild, watch: see `CompiledKernel`; launcher: the loaded kernel; latest: grid and values of
    the latest launch that `watch` has seen, and the kernel that it runs; run: what
    `CompiledKernel.run` is; in_order: see `CompiledKernel`.
    """

    def __init__(self, rebuild: Rebuild | None = None) -> None:
        self.rebuild = rebuild
        self.watch: ArgumentWatch | None = None
        self.launcher: Launcher | None = None
        self.latest: tuple[object, object, CompiledKernel] | None = None
        self.in_order: Callable[[], CompiledKernel] | None = None
        self.run: Run | None = None

    def __reduce__(self) -> tuple[type[_OfThisProcess], tuple[()]]:
        return _OfThisProcess, ()


class CompiledKernel:
    """One variant of a kernel, which can be pickled.

    src: what it was compiled from; asm: artifacts by extension, as in Triton; metadata: what the
    backend recorded, and all options; parameters: types of the run-time arguments, as text;
    hash: its name in the disk cache; stored: positions of the run-time arguments that the kernel
    may store through; pairs: those that must not overlap, see `analysis.argument_pairs`.

    rebuild: of a kernel from the disk cache: compiles it anew, if it cannot be loaded; watch: sees
    the arguments of each `launch`; in_order: gives the kernel for arguments that overlap, see
    `CommonOptions.may_overlap`. The last two are set from outside, where there are pairs.
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
        self._here = _OfThisProcess(rebuild)
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
        launcher = self._here.launcher
        if launcher is None:
            launcher = self._here.launcher = self._load()
        return launcher

    @property
    def watch(self) -> ArgumentWatch | None:
        """What sees the arguments of each `launch`."""
        return self._here.watch

    @watch.setter
    def watch(self, watch: ArgumentWatch | None) -> None:
        self._here.watch, self._here.run = watch, None

    @property
    def in_order(self) -> Callable[[], CompiledKernel] | None:
        """Gives the kernel for arguments that overlap; None where the backend makes none."""
        return self._here.in_order

    @in_order.setter
    def in_order(self, make: Callable[[], CompiledKernel]) -> None:
        self._here.in_order = make

    def _load(self) -> Launcher:
        try:
            return self._loaded()
        except synchronous(Exception) as problem:
            # A device without memory would refuse a fresh binary too.
            if self._here.rebuild is None or not _blames_binary(problem):
                raise
            fresh = self._here.rebuild(problem)
        # once: if the fresh kernel cannot be loaded either, its error is the user's to see
        self._here.rebuild = None
        self._describe(fresh.asm, fresh.metadata)
        return self._loaded()

    def _loaded(self) -> Launcher:
        # Where the source is now: an entry of the disk cache may come from another file.
        metadata = {**self.metadata.as_dict(), "location": self.src.location}
        self._call(kernel_hooks.load_start, None)
        launcher = self.backend.load(self.kernel, metadata, self.parameters)
        self._call(kernel_hooks.load_end, launcher)
        # The device holds the code now, and the disk cache the texts.
        self.asm.forget()
        return launcher

    def _call(self, hooks: HookChain[...], launcher: Launcher | None) -> None:
        if hooks:
            loaded = (getattr(launcher, n, launcher) for n in ("module", "function"))
            files = shared_store(settings().cache).files(self.hash, self.name)
            hooks(*loaded, self.name, files, self.hash)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        here = getattr(self, "_here", None)  # a constructor may have failed before it is set
        if here is not None and here.launcher is not None and not is_finalizing():
            self._call(kernel_hooks.unload, here.launcher)

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

    @property
    def run(self) -> Run:
        """A launch as Triton's launchers make it: `run(x, y, z, stream, function, packed_metadata,
        launch_metadata, launch_enter_hook, launch_exit_hook, *arguments)`; see `launch_protocol`.
        """
        run = self._here.run
        if run is None:
            run = self._here.run = self._run_function()
        return run

    def _run_function(self) -> Run:
        direct = getattr(self.launcher, "launch_on_stream", None)
        places = self.src.run_time_places()
        # Arguments that are watched go the general way. Those that are used element by element are
        # not watched here: who launches so has placed the arrays, and launches many.
        is_watched = self.watch is not None and not all(p.is_element_wise for p in self.pairs)
        if direct is None or places is None or is_watched:
            return general_run_function(self._launch_on_stream)
        return run_function(direct, self._launch_on_stream, *places)

    def _launch_on_stream(
        self, x: int, y: int, z: int, stream: int | None, args: Sequence[object]
    ) -> None:
        memory = self.backend.memory
        if memory is not None and stream is not None and stream != memory.current()[1]:
            raise errors.InvalidOption("stream", "the current stream", stream)
        self.launch(x, y, z, *args)

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
        here = self._here
        if here.watch is not None:
            # a launch like the latest one touches the same memory
            if here.latest is None or here.latest[:2] != (extents, values):
                kernel = here.watch.kernel_for(self, extents, given, values)
                here.latest = (extents, values, kernel)
            launcher = here.latest[2].launcher
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
