"""Manifest of a backend: its interface to the compiler and the runtime, found by name.

A kernel passes through the stages of its backend in order. A stage is named by the extension of the
artifact that it makes ("ttir", "llir", "obj"); any textual artifact can be dumped, edited and
compiled from there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, fields
from typing import Any, Protocol, Self

from tilewright import ir
from tilewright.backends.explanation import Explanation, LaunchSizes
from tilewright.support import (
    BULK_LOADS,
    KernelProfiler,
    attribute_late,
    collection_paused,
    errors,
    fork_waits,
    import_late,
)
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class GPUTarget:
    """Target of code generation (Triton's name and fields).

    backend: "cpu", "cuda" ...; arch: compute capability as an int (90), or a CPU name ("" is this
    machine); warp_size: lanes of a warp, 1 on a CPU.
    """

    backend: str
    arch: int | str
    warp_size: int

    @property
    def label(self) -> str:
        """The target in lists: `sm_90`, `aarch64`, `cpu`."""
        return f"sm_{self.arch}" if self.backend == "cuda" else str(self.arch or self.backend)


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """Options of a launch that every backend accepts, with Triton's names and defaults.

    A backend ignores options without a meaning there. Not Triton's are bulk_loads: loads that TMA
    may issue: all, those by tensor descriptors, or none; persistent: whether a block with a
    producer warp may run several programs in turn; None: if all programs have the same trip count;
    ieee_rounding: `/`, sqrt and rsqrt of fp32 are correctly rounded (rsqrt: its root and quotient),
    where Triton's are within 2 ulp (docs/libdevice.md); strict_triton: reject constructs that
    Triton's language lacks; int64_offsets: program ids, ranges and integer arguments are int64, so
    that offsets computed from them do not wrap; check: some of `support.CHECK_KINDS`, joined by
    `+`: the kernel checks its own accesses. Only `jit` sets it, for backends whose launches see the
    arrays; may_overlap: the pointer arguments may be parts of one array, so a program's accesses
    through them are in order. Only launches set it, for backends with `orders_overlaps`.
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    enable_fp_fusion: bool = True
    launch_pdl: bool = False
    launch_cooperative_grid: bool = False
    debug: bool = False
    sanitize_overflow: bool = True
    extern_libs: tuple[tuple[str, str], ...] = ()
    default_dot_input_precision: str = "ieee"
    bulk_loads: str = BULK_LOADS[1]
    persistent: bool | None = None
    ieee_rounding: bool = False
    strict_triton: bool = False
    int64_offsets: bool = False
    check: str = ""
    may_overlap: bool = False

    def __post_init__(self) -> None:
        for name in ("num_warps", "num_stages", "num_ctas"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < (0 if name == "num_stages" else 1):
                raise errors.InvalidOption(name, "a positive integer", repr(value))
        if self.num_warps & (self.num_warps - 1):
            raise errors.InvalidOption("num_warps", "a power of two", self.num_warps)
        if self.bulk_loads not in BULK_LOADS:
            raise errors.InvalidOption("bulk_loads", f"one of {BULK_LOADS}", self.bulk_loads)

    def meaningful(self) -> Self:
        """The options without those ignored here: equal ones lead to the same code."""
        return self

    @classmethod
    def names(cls) -> frozenset[str]:
        """The names of the options, which are keywords of a launch."""
        return frozenset(f.name for f in fields(cls)) - {"check", "may_overlap"}


Metadata = dict[str, Any]


@dataclass(slots=True)
class StageContext:
    """State shared by the stages of one compilation; `metadata` is stored with the kernel."""

    target: GPUTarget
    options: CommonOptions
    metadata: Metadata = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of compilation.

    extension: name of the artifact; run(previous artifact, context) -> artifact (a Module, text or
    bytes); parse(text of this artifact, context) -> artifact, to compile from there; pipeline: the
    passes of `run`, for tools that print them
    """

    extension: str
    run: Callable[[Any, StageContext], ir.Module | str | bytes]
    parse: Callable[[str, StageContext], ir.Module | str | bytes]
    pipeline: Callable[[GPUTarget], ir.Pipeline] | None = None


@dataclass(frozen=True, slots=True)
class Recompilation:
    """A second compilation of a kernel whose code is poor, from the artifact of the first
    stage, which later stages leave alone.

    plan(metadata of the first) -> what to add to the metadata that the second starts with, None for
    none; cost(metadata): of the two, the kernel with the lower cost is kept
    """

    plan: Callable[[Metadata], Metadata | None]
    cost: Callable[[Metadata], float]


class Launcher(Protocol):
    """A loaded kernel, ready to run."""

    n_regs: int

    @property
    def n_spills(self) -> int | None:
        """Spilled 32-bit words per thread; None if they are not counted."""
        ...

    def launch(self, grid: tuple[int, int, int], values: Sequence[int | float]) -> None:
        """Run over the grid; `values` are addresses and numbers in the order of the parameters."""
        ...


@dataclass(frozen=True, slots=True)
class DirectLaunch:
    """How machine code launches a kernel on one device; a Launcher whose method `direct()` returns
    one is launched so.

    call(x, y, z, stream, *values): the launch; device: index of the device; stream_of(device) ->
    its current stream; context_of: address of a C function int(void **context), which finds this
    thread's context; context: the one in which alone `call` may be used
    """

    call: Callable[..., object]
    device: int
    stream_of: Callable[[int], int]
    context_of: int
    context: int


@dataclass(frozen=True, slots=True)
class PackedLaunch:
    """A launch from machine code, with the arguments packed into 64-bit words. Native dispatch uses
    it where a Launcher has a method `launch_packed()` that returns one.

    function: address of int(void *record, int x, int y, int z, uint64_t *values), which may write
    after the values; slots: the kind of each value's word (`SLOT_KINDS` of native dispatch);
    check(status): called after a launch whose status is not 0, or while `failures` is not empty
    """

    function: int
    record: int
    slots: Sequence[str]
    check: Callable[[int], object]
    failures: list[Any]


class Streamed(int):
    """An address of memory that another stream than the current one works on: a launch must come
    after what is there, and be waited for by what follows there.

    device: its index; stream: handle of the stream, 0 for the default one
    """

    device: int
    stream: int

    def __new__(cls, address: int, device: int, stream: int) -> Streamed:
        """An address with its stream."""
        self = super().__new__(cls, address)
        self.device, self.stream = device, stream
        return self


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """A backend's queries about memory and streams, for arrays that do not state them.

    device_of(address): the device whose memory an address is in ("cuda:0"), None if it is the
    host's; usable(address): whether kernels may use it, as they may pinned memory of the host;
    current() -> index of the current device and its current stream; stream_of(device) -> the
    current stream of a device; entered(stream, address) -> a block in which the device of a stream,
    otherwise that of an address, is the current one, whose index it yields
    """

    device_of: Callable[[int], str | None]
    usable: Callable[[int], bool]
    current: Callable[[], tuple[int, int]]
    stream_of: Callable[[int], int]
    entered: Callable[[int, int], AbstractContextManager[int]] | None = None


class PeerMemory(Protocol):
    """Access of kernels to memory of other devices, in this process and in others of the host.

    enable(device, peer): let kernels of a device access memory of another one of this process;
    export(address, device) -> a text by which another process opens the allocation;
    open(text, device) -> the address at which a device accesses it; copy(to, source, size, device):
    enqueue a copy of bytes in the device's current stream. All raise BackendError.
    """

    def enable(self, device: int, peer: int) -> None: ...
    def export(self, address: int, device: int) -> str: ...
    def open(self, exported: str, device: int) -> int: ...
    def copy(self, to: int, source: int, size: int, device: int) -> None: ...


DEVICE_PROPERTIES = (
    "max_shared_mem",
    "max_num_regs",
    "multiprocessor_count",
    "max_threads_per_sm",
    "warpSize",
    "sm_clock_rate",
    "mem_clock_rate",
    "mem_bus_width",
)
"""Device properties for the choice of grids and tiles, by Triton's names: bytes of shared memory
and registers of one program at most; multiprocessors, and resident threads of each; lanes of a
warp; kHz; bits of the memory bus. 0 where a property does not apply."""


def _nothing() -> None:
    """Prepare nothing."""


def _no_properties(_device: int) -> dict[str, int]:
    return dict.fromkeys(DEVICE_PROPERTIES, 0)


@dataclass(frozen=True, slots=True)
class Backend:
    """The manifest of a backend.

    name: of `GPUTarget.backend`; stages: from the frontend's module to the binary that `load`
    takes; load(binary, metadata, parameter type texts) -> Launcher; available: whether kernels can
    run here; target: this machine's; artifacts: further texts, made at their first use from the
    finished artifacts; version: part of the cache key; clock(index or None) -> a clock of the
    device for `testing.do_bench`, where PyTorch has none; memory: of devices that have their own,
    None if kernels work in the host's; peer_memory: access to that of other devices;
    properties(index) -> the DEVICE_PROPERTIES of a device;
    drop_lines(memory as (address, bytes)) -> whether it has been dropped from all caches;
    explain(front end's module, context, launch) -> how a kernel is compiled; the module is changed;
    the metadata of the context are those of the compiled kernel; checks, orders_overlaps: whether
    kernels can check their accesses, and keep them in order where arguments overlap, see
    `CommonOptions`; architectures: names of other machines to generate code for, as
    `GPUTarget.arch`; launch_metadata: names of the metadata that launches read; None: all of it;
    op_modules: modules that define the ops of its stages, for texts of tile IR; prepare: work that
    would repeat in each compiling process, done before they are forked; must not use the device;
    profiler(symbol -> "file:line" of kernels, which launches fill) -> observes kernels that run;
    recompilation: None if a kernel is compiled once; shared_version: `version` as a text that is
    equal on all machines with equal tools; None: `version` is; device_name: the model of the
    current device, where the target does not name it
    """

    name: str
    options: type[CommonOptions]
    stages: tuple[Stage, ...]
    load: Callable[[bytes, Metadata, Sequence[str]], Launcher]
    available: Callable[[], bool]
    target: Callable[[], GPUTarget]
    artifacts: Mapping[str, Callable[[Mapping[str, str | bytes], GPUTarget], str]]
    version: Callable[[GPUTarget], str]
    clock: Callable[[int | None], object] | None = None
    memory: DeviceMemory | None = None
    peer_memory: Callable[[], PeerMemory] | None = None
    properties: Callable[[int], dict[str, int]] = _no_properties
    drop_lines: Callable[[Sequence[tuple[int, int]]], bool] | None = None
    launch_metadata: tuple[str, ...] | None = None
    checks: bool = False
    orders_overlaps: bool = False
    architectures: tuple[str, ...] = ()
    op_modules: tuple[str, ...] = ()
    explain: Callable[[ir.Module, StageContext, LaunchSizes | None], Explanation] | None = None
    prepare: Callable[[], None] = _nothing
    profiler: Callable[[Mapping[str, str]], KernelProfiler] | None = None
    recompilation: Recompilation | None = None
    shared_version: Callable[[GPUTarget], str] | None = None
    device_name: Callable[[], str] = str

    def __post_init__(self) -> None:
        names = [stage.extension for stage in self.stages]
        assert names and names[0] == "ttir", f"{self.name}: the first stage makes ttir"
        assert len(set(names)) == len(names), f"{self.name}: two stages of one name"
        assert issubclass(self.options, CommonOptions), f"{self.name}: options lack common ones"

    def tool_versions(self, target: GPUTarget) -> str:
        """The versions of the tools that compile for a target, and the features of a CPU, as text
        that is equal on all machines with equal ones."""
        return (self.shared_version or self.version)(target)

    def __reduce__(self) -> tuple[Callable[[str], Backend], tuple[str]]:
        return backend_named, (self.name,)  # there is one, with functions of its own


_PACKAGE = __name__.rpartition(".")[0] + "."


@dataclass(frozen=True, slots=True)
class _LegalOps(Container[type[Any]]):
    """Shared ops, also those that are defined later, when an expansion is first used, and `own`."""

    own: frozenset[type[ir.Op]]

    def __contains__(self, op_class: object) -> bool:
        assert isinstance(op_class, type)
        return op_class in self.own or not op_class.__module__.startswith(_PACKAGE)


def legal_ops(*own: type[ir.Op]) -> Container[type[ir.Op]]:
    """Ops legal in texts of a first stage: those that no backend declares, and `own`."""
    return _LegalOps(frozenset(own))


_BACKENDS = {
    "cpu": "tilewright.backends.cpu.backend:BACKEND",
    "cuda": "tilewright.backends.nvidia.backend:BACKEND",
}
_GPU_DRIVERS = {"cuda": "tilewright.backends.nvidia.driver.driver_library:has_driver"}
"""Cheap checks whether a GPU's backend is worth importing on this machine."""
_loaded: dict[str, Backend] = {}


def backend_named(name: str) -> Backend:
    """The backend called `name`; third parties register an entry point `tilewright.backends`."""
    loaded = _loaded.get(name)
    if loaded is None:
        loaded = _loaded[name] = _load(name)
    return loaded


def _load(name: str) -> Backend:
    path = _BACKENDS.get(name)
    if path is None:
        load = _installed().get(name)
        if load is not None:
            return load()
        raise errors.UnknownName("backend", name, backend_names())
    with collection_paused():  # a tenth of the time, and all of it stays
        return attribute_late(path)


def packages_apart(name: str) -> list[str]:
    """The packages of backends that a kernel of the backend `name` is compiled without; of a
    backend of another package nothing is known."""
    others = [path for other, path in _BACKENDS.items() if other != name and name in _BACKENDS]
    return [path.partition(":")[0].rpartition(".")[0] for path in others]


def backend_names() -> list[str]:
    """Every backend that is installed."""
    return sorted({*_installed(), *_BACKENDS})


def load_ops() -> None:
    """Make the ops of every backend known to the parser of tile IR."""
    for name in backend_names():
        for module in backend_named(name).op_modules:
            import_late(module)


def _installed() -> dict[str, Callable[[], Backend]]:
    """Loaders of other packages' backends, by name."""
    with fork_waits():
        from importlib.metadata import entry_points  # noqa: PLC0415 -- 8 ms, and rarely needed

    return {point.name: point.load for point in entry_points(group="tilewright.backends")}


def default_backend() -> Backend:
    """The backend that runs kernels on this machine: a GPU's if there is one, else the CPU's."""
    for name, has_driver in _GPU_DRIVERS.items():
        # the cheap check first: importing a GPU's backend is paid only where there is a driver
        if attribute_late(has_driver)() and backend_named(name).available():
            return backend_named(name)
    return backend_named("cpu")


def backend_in_use(name: str) -> Backend | None:
    """The backend called `name` if this process has loaded it, and its kernels can run here."""
    loaded = _loaded.get(name)
    return loaded if loaded is not None and loaded.available() else None
