"""A compiled kernel: artifacts, metadata and launches."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

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
    call_user_function,
    errors,
    function_late,
    kernel_hooks,
    normal_grid,
    settings,
    user_boundary,
)
from tilewright.support.asynchronous_exceptions import synchronous

_inspect = function_late("tilewright.inspector.inspect_kernel:inspect_kernel")
_html = function_late("tilewright.compiler.html_summary:variant_html")

Rebuild = Callable[[Exception], "CompiledKernel"]
"""Compiles a kernel again; its argument is the reason why the stored one is unusable."""


class Source(Protocol):
    """The source of a compiled kernel (see `sources`)."""

    name: str
    location: str

    @property
    def extension(self) -> str:
        """Name of the artifact that the source is."""
        ...

    def key(self) -> str:
        """Text that determines the code, together with options and target."""
        ...

    def run_time_arguments(self, args: Sequence[object]) -> list[object]:
        """The run-time arguments of a launch, with tuples flattened."""
        ...

    def run_time_places(self) -> tuple[tuple[int, ...], int] | None:
        """Positions of the run-time arguments among all arguments, and the number of all arguments.

        None if some are nested in others, as in a tuple.
        """
        ...


class ArgumentWatch(Protocol):
    """Observer of the arguments of each launch."""

    def kernel_for(
        self, kernel: CompiledKernel, grid: Grid, arrays: Sequence[Any], values: Sequence[Any]
    ) -> CompiledKernel:
        """The kernel to run for these arguments instead of `kernel`, or `kernel` itself.

        arrays, values: the run-time arguments in order, as given and as passed
        """
        ...


class _OfThisProcess:
    """State of a kernel that is invalid in another process, where a copy starts without it.

    rebuild, watch: see `CompiledKernel`; launcher: the loaded kernel; latest: grid and values of
    the latest launch that `watch` has seen, and the kernel that it runs; run: the value of
    `CompiledKernel.run`; in_order: see `CompiledKernel`
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

    src: its source; asm: artifacts by extension, as in Triton; metadata: facts that the backend
    recorded, and all options; parameters: types of the run-time arguments, as text; hash: its name
    in the disk cache; stored: positions of the run-time arguments that the kernel may store
    through; pairs: arguments that must not overlap, see `analysis.argument_pairs`

    rebuild: for a kernel from the disk cache: compiles it again, if it cannot be loaded; watch:
    observes the arguments of each `launch`; in_order: returns the kernel for arguments that
    overlap, see `CommonOptions.may_overlap`. The last two are set from outside, if there are pairs.
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
        """The loaded kernel, which is loaded at its first use."""
        launcher = self._here.launcher
        if launcher is None:
            launcher = self._here.launcher = self._load()
        return launcher

    @property
    def is_loaded(self) -> bool:
        """Whether a launch does not have to load it first."""
        return self._here.launcher is not None

    def share_launcher(self, other: CompiledKernel) -> None:
        """Run the loaded code of a kernel with equal `identity`."""
        self._here.launcher = other.launcher

    @property
    def watch(self) -> ArgumentWatch | None:
        """The observer of the arguments of each `launch`."""
        return self._here.watch

    @watch.setter
    def watch(self, watch: ArgumentWatch | None) -> None:
        self._here.watch, self._here.run = watch, None

    @property
    def in_order(self) -> Callable[[], CompiledKernel] | None:
        """Returns the kernel for arguments that overlap; None if the backend makes none."""
        return self._here.in_order

    @in_order.setter
    def in_order(self, make: Callable[[], CompiledKernel]) -> None:
        self._here.in_order = make

    def _load(self) -> Launcher:
        try:
            return self._loaded()
        except synchronous(Exception) as problem:
            # A device without memory would reject a new binary too.
            if self._here.rebuild is None or not _blames_binary(problem):
                raise
            fresh = self._here.rebuild(problem)
        # once: if the new kernel cannot be loaded either, the user gets its error
        self._here.rebuild = None
        self._describe(fresh.asm, fresh.metadata)
        return self._loaded()

    def _loaded(self) -> Launcher:
        # The present place of the source: an entry of the disk cache may come from another file.
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
        """Kernels are equal if they have the same machine code and are launched in the same way."""
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
        """The loaded function: a handle or address of the backend."""
        return getattr(self.launcher, "function", self.launcher)

    @property
    def n_regs(self) -> int:
        """Registers per thread; 0 if the backend has none."""
        return self.launcher.n_regs

    @property
    def n_spills(self) -> int | None:
        """Spilled 32-bit words per thread; None on CPUs, where LLVM does not report them."""
        return self.launcher.n_spills

    @property
    def n_max_threads(self) -> int:
        """Maximum number of threads of a program instance."""
        return getattr(self.launcher, "n_max_threads", 1)

    @property
    def packed_metadata(self) -> tuple[int, int, int]:
        """Arguments of Triton's launchers: warps, cooperating blocks, bytes of shared memory."""
        return self.metadata.num_warps, self.metadata.num_ctas, self.metadata.shared

    def _init_handles(self) -> None:
        """Load the kernel now (Triton's name)."""
        _ = self.launcher

    def explain(self, sizes: Mapping[str, int] | None = None, grid: object = None) -> Explanation:
        """How each load, store and dot was lowered, why, and the resources; prints as a table.

        sizes, grid: values of integer arguments by name and the grid of a launch, to compare its
        work with the limits of a device. Errors: NotExplained, InvalidOption, UnknownName, BadGrid.
        """
        with user_boundary:
            if self.backend.explain is None:
                raise errors.NotExplained(self.backend.name)
            if grid is None and sizes:
                raise errors.InvalidOption("grid", "given with sizes", None)
            module = self.asm.module()
            constants: Iterable[str] = getattr(self.src, "constant_texts", ())
            names = {*(arg.name for arg in module.kernel.args), *constants}
            for name in sizes or ():
                if name not in names:
                    raise errors.UnknownName("argument", name, names, self.name)
            launch = None if grid is None else LaunchSizes(sizes or {}, normal_grid(grid))
            metadata = self.metadata
            context = StageContext(self.target, metadata.options, metadata.as_dict())
            return self.backend.explain(module, context, launch)

    def inspect(
        self,
        path: str | Path | None = None,
        sizes: Mapping[str, int] | None = None,
        grid: object = None,
        seconds: float | None = None,
    ) -> Path:
        """Write an HTML page that shows what became of the kernel; returns its path.

        path: default NAME.html; sizes, grid: as for `explain`; seconds: measured time of the
        launch, for the roofline. The kernel is compiled once more. Errors: OSError, and those of
        `explain`.
        """
        with user_boundary:
            return _inspect(self, path, sizes, grid, seconds)

    def launch_metadata(self, grid: object, stream: object, *args: object) -> LaunchMetadata:
        """The metadata that hooks around a launch receive, as Triton's launchers build it.

        name, kernel, grid, function, stream, and the items of `jit(launch_metadata=)`.
        """
        function: Any = getattr(self.src, "fn", None)
        extra = getattr(function, "launch_metadata", None)
        named = {} if extra is None else dict(zip(function.arg_names, args, strict=False))
        return LaunchMetadata(partial(self.described, grid, stream, extra, named))

    def described(
        self,
        grid: object,
        stream: object,
        extra: Callable[..., object] | None,
        named: Mapping[str, object],
    ) -> dict[str, Any]:
        """The items of `launch_metadata`. extra: the function of `jit(launch_metadata=)`; named:
        arguments by name. Errors: BadCallback, InvalidOption."""
        metadata: dict[str, Any] = {"name": self.name, "kernel": self, "grid": grid}
        metadata |= {"function": self.function, "stream": stream}
        if extra is not None:
            takes = "the grid, the kernel's metadata, and the arguments by name"
            found = call_user_function("launch_metadata", takes, extra, grid, self.metadata, named)
            if not isinstance(found, Mapping):
                expected = "a function that returns a dictionary"
                raise errors.InvalidOption("launch_metadata", expected, found)
            metadata.update(cast("Mapping[str, object]", found))
        return metadata

    @property
    def run(self) -> Run:
        """A launch by the protocol of Triton's launchers, see `launch_protocol`.

        `run(x, y, z, stream, function, packed_metadata, launch_metadata, launch_enter_hook,
        launch_exit_hook, *arguments)`
        """
        run = self._here.run
        if run is None:
            run = self._here.run = self._run_function()
        return run

    def _run_function(self) -> Run:
        direct = getattr(self.launcher, "launch_on_stream", None)
        places = self.src.run_time_places()
        # Watched arguments take the general path. Arguments that are used element by element are
        # not watched here: such callers have placed the arrays themselves, and launch often.
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
            # a launch like the latest one accesses the same memory
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
        """`kernel[grid](*args)` with all arguments of the kernel, or only the run-time ones.

        grid: as for `kernel[grid]`, but not a function. Errors: BadGrid.
        """
        with user_boundary:
            extents = normal_grid(grid)

        def launch(*args: object, stream: object = None) -> None:
            with user_boundary:
                self.launch(*extents, *args)

        return launch

    def _repr_html_(self) -> str:
        """The kernel in a notebook."""
        return _html(self)

    def __repr__(self) -> str:
        return f"<CompiledKernel {self.name} for {self.target.backend}, {self.hash[:12]}>"


def _blames_binary(problem: Exception) -> bool:
    """Whether a kernel could not be loaded because of its binary, not for want of a resource."""
    return getattr(problem, "blames_binary", not isinstance(problem, TilewrightError | MemoryError))
