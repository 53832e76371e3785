"""Make the callable that launches one kernel on one device (see `launch_structures`)."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Protocol

from tilewright.backends.nvidia.driver.launch_structures import (
    CONSTEXPR,
    LAUNCH_SYMBOL,
    LEADING,
    LOG_ENTRIES,
    MAP_ENTRIES,
    MAP_PROBES,
    PAGES,
    LaunchConfig,
    LaunchRecord,
    LogEntry,
    LogMemory,
    MapEntry,
    MapTable,
    Parameter,
    launch_code,
    parameter,
)
from tilewright.native import METH_FASTCALL, builtin_function
from tilewright.support.data_class import dataclass


class Entry(Protocol):
    """A callable made by `make_entry`."""

    def __call__(self, x: object, y: object, z: object, stream: object, *args: object) -> None:
        """Launch over the grid (x, y, z)."""
        ...


_ATTRIBUTE_BYTES = 72  # CUlaunchAttribute: id, padding, a union of 64 bytes
_COOPERATIVE = 2  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE
_CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
_PAIR = (2, 1, 1)
_PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_ and this name


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """The common parameters of all launches of a kernel.

    threads: of a block; shared_bytes: dynamic shared memory; cluster: blocks of a cluster along
    x, y, z, which together run one program, (1, 1, 1) for none; cooperative: the whole grid is
    resident at once; dependent: may start before the kernel ahead in the stream has ended
    (programmatic dependent launch); resident: blocks of a multiprocessor of a persistent kernel,
    which takes the grid as three arguments before its own; 0 for others; shares_copies: such blocks
    are clusters of two.
    """

    threads: int
    shared_bytes: int = 0
    cluster: tuple[int, int, int] = (1, 1, 1)
    cooperative: bool = False
    dependent: bool = False
    resident: int = 0
    shares_copies: bool = False

    def attributes(self) -> bytes:
        """An array of CUlaunchAttribute."""
        # each: its id, padding to 8 bytes, the value, and the rest of the union of 64 bytes
        attributes: list[bytes] = []
        if self.cluster != (1, 1, 1):
            attributes.append(struct.pack("<Ixxxx3I52x", _CLUSTER_DIMENSION, *self.cluster))
        if self.cooperative:
            attributes.append(struct.pack("<Ixxxxi60x", _COOPERATIVE, 1))
        if self.dependent:
            attributes.append(struct.pack("<Ixxxxi60x", _PROGRAMMATIC_STREAM_SERIALIZATION, 1))
        if self.shares_copies:
            attributes.append(struct.pack("<Ixxxx3I52x", _CLUSTER_DIMENSION, *_PAIR))
        return b"".join(attributes)


@dataclass(frozen=True, slots=True)
class Handlers:
    """Handlers in Python for launches out of the ordinary.

    convert(index, argument) -> the slot's 64 bits: an argument that is not an int, float or array
        of the usual kind; refuse(index, address): an address that is not of the device: raises, or
        returns to let it pass; regrid(x, y, z) raises for a grid that is none;
    failed(status, attempt, x, y, z, stream): a launch that the driver refused: raises, or returns
        to try again (attempt counts from 0); after(x, y, z, stream): each launch, once sent;
    encode(number, address) -> the 128 bytes of a tensor map, by the words at an address
    """

    convert: Callable[[int, object], int]
    refuse: Callable[[int, int], object]
    regrid: Callable[[object, object, object], object]
    failed: Callable[[int, int, int, int, int, int], object]
    after: Callable[[int, int, int, int], object] | None = None
    encode: Callable[[int, int], bytes] | None = None

    def addresses(self) -> dict[str, int]:
        """Addresses of the handlers; 0 for a missing one."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: 0 if item is None else id(item) for name, item in found.items()}


class PageTable:
    """Pages of memory that the driver has confirmed to belong to one device."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, PAGES * 8)
        self._view = ctypes.c_char.from_buffer(self._memory)
        self.address = ctypes.addressof(self._view)
        self.forget()

    def forget(self) -> None:
        """Forget all confirmed pages."""
        ctypes.memset(self.address, 0, PAGES * 8)
        # entry 0 is that of page 0, which must not count as confirmed
        ctypes.memset(self.address, 0xFF, 8)


class MapTables:
    """The tensor maps of a kernel's launches on one device. slots: those that determine each
    map."""

    def __init__(self, slots: Sequence[Sequence[int]]) -> None:
        self._kept: list[object] = []
        self._tables = (MapTable * len(slots))(*map(self._table, slots))
        self.address = ctypes.addressof(self._tables)

    def _table(self, slots: Sequence[int]) -> MapTable:
        numbers = (ctypes.c_int64 * len(slots))(*slots)
        # pages that are never touched take no memory
        memory = mmap.mmap(-1, (MAP_ENTRIES + MAP_PROBES) * ctypes.sizeof(MapEntry))
        entries = ctypes.c_char.from_buffer(memory)
        self._kept += [numbers, memory, entries]
        return MapTable(len(slots), ctypes.addressof(numbers), ctypes.addressof(entries))


@dataclass(frozen=True, slots=True)
class LoggedLaunch:
    """An entry of the log. function: CUfunction, which identifies the kernel."""

    function: int
    grid: tuple[int, int, int]
    stream: int


class LaunchLog:
    """The latest launches of a device, written by the machine code."""

    def __init__(self) -> None:
        self._memory = LogMemory()
        self.address = ctypes.addressof(self._memory)

    @property
    def count(self) -> int:
        """Launches so far."""
        return self._memory.count

    def drop(self, function: int, grid: tuple[int, int, int], stream: int) -> None:
        """Remove the latest such launch, which the driver refused."""
        # backwards from the latest: other threads may have launched since
        for number in reversed(range(max(self.count - LOG_ENTRIES, 0), self.count)):
            if self._launch(number) == LoggedLaunch(function, grid, stream):
                self._entry(number).function = 0
                return

    def latest(self, since: int = 0) -> list[LoggedLaunch]:
        """The launches from number `since` on that are still in the log, latest first."""
        count = self.count
        first = max(since, count - LOG_ENTRIES, 0)
        launches = (self._launch(number) for number in reversed(range(first, count)))
        return [launch for launch in launches if launch.function]

    def _launch(self, number: int) -> LoggedLaunch:
        entry = self._entry(number)
        return LoggedLaunch(entry.function, (entry.x, entry.y, entry.z), entry.stream)

    def _entry(self, number: int) -> LogEntry:
        return self._memory.entries[number % LOG_ENTRIES]


def make_entry(
    name: str,
    kinds: Sequence[str],
    shape: LaunchShape,
    handlers: Handlers,
    *,
    function: int,
    device: int,
    launch: int,
    pointer_attribute: int,
    pages: PageTable,
    log: LaunchLog,
    maps: Sequence[Sequence[int]] = (),
    multiprocessors: int = 0,
) -> Entry:
    """A callable in machine code that launches a kernel.

    entry(grid_x, grid_y, grid_z, stream, *arguments) -> None; stream is a CUstream as an int.
    `kinds` has the types of the arguments (see `parameter`; CONSTEXPR: ignored). A pointer is
    passed as an int, None, or an object with a method `data_ptr`. An empty grid launches nothing.

    function: CUfunction; device: its ordinal; launch, pointer_attribute: addresses of
    cuLaunchKernelEx and cuPointerGetAttribute; maps: of each tensor map that is passed after the
    arguments, the numbers of those that decide it, at most MAP_WORDS; multiprocessors: how many.
    """
    config, attributes = _configuration(shape)
    parameters = _parameters(kinds, shape)
    tables, data_ptr, code = MapTables(maps), "data_ptr", launch_code()
    # objects by id(): `keep` below holds a reference to each
    record = LaunchRecord(
        config=config,
        function=function,
        launch=launch,
        pointer_attribute=pointer_attribute,
        device=device,
        pages=pages.address,
        log=log.address,
        data_ptr=id(data_ptr),
        none=id(None),
        int_type=id(int),
        cluster=shape.cluster[0],
        resident=_most_blocks(shape, multiprocessors),
        pairs=int(shape.shares_copies),
        count=LEADING + len(kinds),
        slots=len(parameters),
        parameters=ctypes.addressof(parameters),
        maps=len(maps),
        map_tables=tables.address,
        **handlers.addresses(),
    )
    keep = (record, attributes, parameters, tables, handlers, data_ptr, pages, log, code)
    address = ctypes.addressof(record)
    return builtin_function(name, code[LAUNCH_SYMBOL], METH_FASTCALL, address, keep)


def _most_blocks(shape: LaunchShape, multiprocessors: int) -> int:
    """The limit of blocks, see LaunchRecord.resident."""
    blocks = shape.resident * multiprocessors
    return blocks - blocks % _PAIR[0] if shape.shares_copies else blocks


def _configuration(shape: LaunchShape) -> tuple[LaunchConfig, object]:
    """The configuration of all launches, and the memory that it points to."""
    attributes = shape.attributes()
    buffer = ctypes.create_string_buffer(attributes, max(len(attributes), 1))
    config = LaunchConfig(
        block_x=shape.threads,
        block_y=1,
        block_z=1,
        shared_bytes=shape.shared_bytes,
        attributes=ctypes.addressof(buffer),
        attribute_count=len(attributes) // _ATTRIBUTE_BYTES,
    )
    return config, buffer


def _parameters(kinds: Sequence[str], shape: LaunchShape) -> ctypes.Array[Parameter]:
    """The parameters of the kernel before tensor maps."""
    passed = [parameter(kind, i) for i, kind in enumerate(kinds) if kind != CONSTEXPR]
    if shape.resident:
        # The grid precedes the arguments.
        passed += [parameter("i32", axis - LEADING) for axis in range(3)]
    return (Parameter * len(passed))(*passed)
