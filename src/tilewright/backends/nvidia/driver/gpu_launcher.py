"""Load compiled kernels and launch them on the current device and stream."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from tilewright.backends.manifest import DirectLaunch, Metadata, Streamed
from tilewright.backends.nvidia.driver.cuda_driver import Driver, driver
from tilewright.backends.nvidia.driver.cuda_errors import CudaCallFailed, faulted, is_fault, refused
from tilewright.backends.nvidia.driver.current_stream import device_and_stream, torch_queries
from tilewright.backends.nvidia.driver.gpu_messages import Console, FailureRecord
from tilewright.backends.nvidia.driver.launch_entry import (
    Entry,
    Handlers,
    LaunchLog,
    LaunchShape,
    PageTable,
    make_entry,
)
from tilewright.backends.nvidia.driver.launch_values import address_of, slot_value
from tilewright.backends.nvidia.driver.stream_order import chosen_stream, joined
from tilewright.backends.nvidia.driver.tensor_map_encoder import TensorMapEncoder
from tilewright.backends.nvidia.message_records import FAILURE, HOST_ADDRESS
from tilewright.backends.nvidia.tensor_maps import PlainSource, TensorMapSource
from tilewright.support import ForkLock, errors
from tilewright.support.data_class import dataclass

_INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
_STATIC_LIMIT = 48 * 1024
"""Bytes of shared memory of a program that need no request."""
_PORTABLE_CLUSTER = 8  # blocks, on every GPU with clusters (CUDA C++ Programming Guide)
_SUSPECTS = 8  # launches that an error names
_PAGE = 4096
"""Bytes of the host's memory that are pinned at a time for records of failures."""


class _DeviceState:
    """The common state of the kernels of one device."""

    def __init__(self, ordinal: int, api: Driver) -> None:
        self.ordinal = ordinal
        self.api = api
        self.pages = PageTable()
        self.log = LaunchLog()
        self.names: dict[int, str] = {}
        """Names of kernels by CUfunction: kernels are never unloaded, so none is reused."""
        self.healthy = 0
        """Number of the first launch that may have failed."""
        self.asserting: list[Console] = []
        """Consoles of the kernels with assertions."""
        self._free: list[int] = []

    def suspects(self) -> list[str]:
        """The latest launches as text, latest first."""
        return [
            f"{self.names[launch.function]}[{launch.grid}]"
            for launch in self.log.latest(self.healthy)[:_SUSPECTS]
        ]

    def synchronize(self) -> None:
        """Wait for all launches; KernelFault if one failed."""
        count = self.log.count
        try:
            self.api.synchronize(self.ordinal)
        except CudaCallFailed as error:
            if not is_fault(error.status):
                raise
            raise self.fault(error.status, self.suspects()) from None
        self.healthy = count
        self.check()

    def check(self) -> None:
        """Raise DeviceAssertionFailure if an assertion has failed; waits for nothing."""
        for console in self.asserting:
            console.check()

    def fault(self, status: int, suspects: Sequence[str]) -> errors.TilewrightError:
        """The error for a lost context: the assertion that trapped, or the fault of the status."""
        try:
            self.check()
        except errors.DeviceAssertionFailure as error:
            return error
        return faulted(status, suspects)

    def failure_record(self) -> FailureRecord:
        """A new record, never freed, as kernels are never unloaded. Its device is current."""
        if not self._free:
            page = self.api.allocate_pinned(_PAGE)
            self._free = list(range(page, page + _PAGE, FailureRecord.size))
        return FailureRecord(self._free.pop())


_states_lock = ForkLock()


@functools.cache
def _device_state(ordinal: int, api: Driver) -> _DeviceState:
    # functools.cache lets two threads compute concurrently: launches that are logged in another
    # state, and its consoles, would be missing in `synchronize`.
    with _states_lock:
        return _only_device_state(ordinal, api)


@functools.cache
def _only_device_state(ordinal: int, api: Driver) -> _DeviceState:
    return _DeviceState(ordinal, api)


def synchronize(ordinal: int | None = None) -> None:
    """Wait until a device (by default the current one) has finished.

    Raises KernelFault, with the candidate launches, if a kernel failed.
    """
    device = device_and_stream()[0] if ordinal is None else ordinal
    _device_state(device, driver()).synchronize()


LAUNCH_METADATA = (
    "tensor_maps",
    "threads",
    "resident",
    "shares_copies",
    "num_warps",
    "shared",
    "num_ctas",
    "launch_cooperative_grid",
    "launch_pdl",
    "debug",
    "asserts",
    "prints",
)
"""The metadata of a kernel that determine its launches and waits."""


def launch_shape(metadata: Metadata) -> LaunchShape:
    """The launch shape of a kernel, by its metadata and options.

    num_warps; shared: bytes of dynamic shared memory; num_ctas: blocks that run a program;
    launch_cooperative_grid; launch_pdl. `threads`, if present, is the number of threads including
    further roles; `resident` the limit of blocks of a multiprocessor whose blocks run several
    programs; `shares_copies`: these are clusters of two.
    """
    return LaunchShape(
        threads=int(metadata.get("threads") or 32 * metadata["num_warps"]),
        shared_bytes=int(metadata.get("shared", 0)),
        cluster=(int(metadata.get("num_ctas", 1)), 1, 1),
        cooperative=bool(metadata.get("launch_cooperative_grid", False)),
        dependent=bool(metadata.get("launch_pdl", False)),
        resident=int(metadata.get("resident") or 0),
        shares_copies=bool(metadata.get("shares_copies", False)),
    )


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A kernel on one device. on_stream: see `launch_on_stream`; failure: the record of assertions
    without a wait."""

    entry: Entry
    on_stream: Entry
    failure: FailureRecord | None
    registers: int
    local_bytes: int


class NvidiaLauncher:
    """One kernel, loaded on each device on which it is used.

    binary: a cubin, or PTX; parameters: types of the kernel's arguments as text; blocking: wait
    after each launch, as kernels that print or assert always do.
    n_regs: registers per thread; n_spills: 32-bit words of local memory of a thread.
    Raises OutOfResources for a kernel that exceeds a resource of the current device.
    """

    def __init__(
        self,
        binary: bytes,
        metadata: Metadata,
        parameters: Sequence[str],
        api: Driver | None = None,
        blocking: bool = False,
    ) -> None:
        self.name = cast("str", metadata["name"])
        self.kinds = tuple("ptr" if p.startswith("ptr") else p for p in parameters)
        plain = cast("Sequence[PlainSource]", metadata.get("tensor_maps") or ())
        sources = [TensorMapSource.from_plain(source) for source in plain]
        self.shape = launch_shape(metadata)
        self._asserts = cast("Sequence[str]", metadata.get("asserts") or ())
        self._prints = cast("Sequence[Sequence[object]]", metadata.get("prints") or ())
        has_messages = bool(self._asserts or self._prints)
        self._blocking = has_messages or bool(metadata.get("debug")) or blocking
        self._names = cast("Sequence[str] | None", metadata.get("names"))
        self._binary = binary
        self._driver = api or driver()
        self._encoder = TensorMapEncoder(sources, self.kinds, self._driver)
        self._lock = ForkLock()
        self._loaded: dict[int, _Loaded] = {}
        self._entries: dict[int, Entry] = {}
        first = self._load(device_and_stream()[0])
        self.n_regs = first.registers
        self.n_spills = first.local_bytes // 4

    def launch(self, grid: tuple[int, int, int], values: Sequence[object]) -> None:
        """Launch on the current device, in its current stream; see stream_order.py for arrays that
        come from another one.

        values: the kernel's arguments: numbers; addresses, None, or objects with `data_ptr`.
        Raises LaunchRefused, BadGrid, UnsupportedArgument or DeviceMismatch if nothing was
        launched; KernelFault if an earlier launch failed.
        """
        device, stream = device_and_stream()
        # without the lock: entries are added, never replaced
        entry = self._entries.get(device)
        if entry is None:
            entry = self.entry(device)
        try:
            entry(*grid, stream, *values)
            return
        except _OtherStream:
            pass
        self._launch_ordered(grid, values, device, stream)

    def launch_on_stream(self, x: int, y: int, z: int, stream: int | None, *values: object) -> bool:
        """Launch in a given stream of the current device, whatever the streams of the arrays; None
        is the current stream. Returns True: all kinds of arguments are supported.

        Waits only for kernels that print, not for those with the option `debug`, which
        `torch.compile` passes to all: a failed assertion ends the grid, and a later call raises
        it.
        """
        device, current = device_and_stream()
        loaded = self._loaded.get(device) or self._load(device)
        if loaded.failure is not None:
            loaded.failure.stops = True
        loaded.on_stream(x, y, z, current if stream is None else stream, *values)
        return True

    def _launch_ordered(
        self, grid: tuple[int, int, int], values: Sequence[object], device: int, stream: int
    ) -> None:
        """Launch on arrays of which some belong to another stream than the current one."""
        pointers = [v for v, kind in zip(values, self.kinds, strict=True) if kind == "ptr"]
        others: set[int] = set()
        if stream == 0 or not self._driver.is_capturing(stream):  # never the default one
            device, stream = chosen_stream(pointers, device, stream)
            others = {p.stream for p in pointers if isinstance(p, Streamed)} - {stream}
        # plain integers, since `convert` raises _OtherStream for a Streamed
        plain = [int(value) if isinstance(value, Streamed) else value for value in values]
        with joined(self._driver, device, stream, sorted(others)):
            self.entry(device)(*grid, stream, *plain)

    def direct(self) -> DirectLaunch | None:
        """The launch in machine code on the current device; None where PyTorch does not provide
        device and stream."""
        queries = torch_queries()
        if queries is None:
            return None
        device, stream_of = queries[0](), queries[1]
        return DirectLaunch(
            self.entry(device),
            device,
            stream_of,
            self._driver.address_of("cuCtxGetCurrent"),
            int(self._driver.primary_context(device)),
        )

    def entry(self, device: int) -> Entry:
        """The launch in machine code on a given device: entry(x, y, z, stream, *values)."""
        return self._load(device).entry

    def _load(self, device: int) -> _Loaded:
        with self._lock:
            loaded = self._loaded.get(device)
            if loaded is None:
                loaded = self._loaded[device] = self._load_on(device)
                self._entries[device] = loaded.entry
            return loaded

    def _load_on(self, device: int) -> _Loaded:
        api = self._driver
        function = api.load(self._binary, self.name, device)
        with api.context(device):
            facts = api.function_facts(function)
            self._check_resources(device, facts.static_shared, facts.max_threads)
            if facts.static_shared + self.shape.shared_bytes > _STATIC_LIMIT:
                api.allow_dynamic_shared(function, self.shape.shared_bytes)
            # every GPU with clusters supports 8 blocks; a kernel must be allowed more
            if self.shape.cluster[0] > _PORTABLE_CLUSTER:
                api.allow_large_clusters(function)
        console = self._console(device, function)
        entry = on_stream = self._make_entry(device, function, console, self._blocking)
        if self._blocking and not self._prints:
            on_stream = self._make_entry(device, function, console, blocking=False)
        failure = console.failure if console is not None and not self._prints else None
        return _Loaded(entry, on_stream, failure, facts.registers, facts.local_bytes)

    def _check_resources(self, device: int, static_shared: int, max_threads: int) -> None:
        limit = self._driver.device(device).shared_optin
        needed = static_shared + self.shape.shared_bytes
        if needed > limit:
            raise errors.OutOfResources(needed, limit, "shared memory")
        if self.shape.threads > max_threads:
            raise errors.OutOfResources(self.shape.threads, max_threads, "threads")

    def _make_entry(
        self, device: int, function: int, console: Console | None, blocking: bool
    ) -> Entry:
        state = _device_state(device, self._driver)
        python = _LaunchHandlers(self.name, function, self.kinds, self._names, state, console)
        # without waits, a launch makes no call into Python
        after: Callable[[int, int, int, int], object] | None = None
        if blocking:
            after = python.after
        state.names[function] = self.name
        encode = partial(self._encoder.encode, device)
        return make_entry(
            self.name,
            self.kinds,
            self.shape,
            Handlers(python.convert, python.refuse, python.regrid, python.failed, after, encode),
            function=function,
            device=device,
            launch=self._driver.address_of("cuLaunchKernelEx"),
            pointer_attribute=self._driver.address_of("cuPointerGetAttribute"),
            pages=state.pages,
            log=state.log,
            maps=self._encoder.parameters,
            multiprocessors=self._driver.device(device).multiprocessors,
        )

    def _console(self, device: int, function: int) -> Console | None:
        """The console of the kernel's prints and assertions; None without any."""
        if not (self._asserts or self._prints):
            return None
        api = self._driver

        def read(name: str, size: int) -> bytes:
            with api.context(device):
                return api.read(api.variable(function, name), size)

        def clear(name: str, size: int) -> None:
            with api.context(device):
                api.write(api.variable(function, name), bytes(size))

        failure = self._failure_record(device, function) if self._asserts else None
        console = Console(self._asserts, self._prints, read, clear, failure)
        if failure is not None:
            _device_state(device, api).asserting.append(console)
        return console

    def _failure_record(self, device: int, function: int) -> FailureRecord:
        """A record of failures whose address the kernel has."""
        api = self._driver
        with api.context(device), api.relaxed_capture():
            record = _device_state(device, api).failure_record()
            place = api.variable(function, FAILURE) + HOST_ADDRESS
            api.write(place, record.address.to_bytes(8, "little"))
        return record


class _OtherStream(Exception):
    """An array belongs to another stream than the current one; nothing has been launched."""


class _LaunchHandlers:
    """The handlers in Python for launches of one kernel on one device: see `Handlers`."""

    def __init__(
        self,
        kernel: str,
        function: int,
        kinds: Sequence[str],
        names: Sequence[str] | None,
        state: _DeviceState,
        console: Console | None,
    ) -> None:
        self._console = console
        self._kernel = kernel
        self._function = function
        self._kinds = kinds
        self._names = names
        self._state = state

    def _argument(self, index: int) -> str:
        return self._names[index] if self._names else f"#{index}"

    def convert(self, index: int, value: object) -> int:
        if index < 0:
            return 0  # a size of the grid, which is refused on reading
        kind, name = self._kinds[index], self._argument(index)
        if kind != "ptr":
            return slot_value(kind, name, value)
        if isinstance(value, Streamed):
            raise _OtherStream
        address = address_of(name, value)
        if address:
            self.refuse(index, address)
        return address

    def refuse(self, index: int, address: int) -> None:
        """DeviceMismatch unless a kernel on this device can use the address: memory of the device,
        managed memory, or pinned memory of the host."""
        state = self._state
        with state.api.context(state.ordinal):
            memory = state.api.pointer(address)
        if memory is not None and (
            memory.managed or not memory.on_device or memory.device == state.ordinal
        ):
            return
        where = "the host" if memory is None else f"cuda:{memory.device}"
        raise errors.DeviceMismatch(self._argument(index), where, f"cuda:{state.ordinal}")

    def regrid(self, x: object, y: object, z: object) -> None:
        sizes = (x, y, z)
        whole = all(isinstance(size, int) for size in sizes)
        negative = whole and any(cast("int", size) < 0 for size in sizes)
        problem = "has a size that is not an integer"
        if whole:
            problem = "has a negative size" if negative else "is too large"
        raise errors.BadGrid(sizes, problem)

    def failed(self, status: int, attempt: int, x: int, y: int, z: int, stream: int) -> None:
        """Create the context at a thread's first launch; everything else is an error."""
        state = self._state
        if status == _INVALID_CONTEXT and attempt == 0 and not state.api.has_context():
            state.api.make_current(state.ordinal)
            return
        state.log.drop(self._function, (x, y, z), stream)
        if is_fault(status):
            raise state.fault(status, state.suspects())
        raise refused(self._kernel, (x, y, z), status, *state.api.describe(status))

    def after(self, x: int, y: int, z: int, stream: int) -> None:
        """Wait for the launch, so that a fault is reported as its own; then read its messages."""
        state = self._state
        # a captured launch has not run yet, and a wait would invalidate the graph
        if state.api.is_capturing(stream):
            if self._console is not None and self._console.failure is not None:
                self._console.failure.stops = True
            return
        count = state.log.count
        try:
            state.api.synchronize_stream(stream)
        except CudaCallFailed as error:
            if not is_fault(error.status):
                raise
            raise state.fault(error.status, [f"{self._kernel}[{(x, y, z)}]"]) from None
        state.healthy = count
        if self._console is not None:
            self._console.drain()
