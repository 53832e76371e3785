"""Makes the callable that launches one kernel on one device (see `launcher_ir`)."""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tilewright.backends.nvidia.driver.launch_ir import (
    LOG_ENTRIES,
    LOG_ENTRY_BYTES,
    PAGES,
    RECORD,
    RECORD_BYTES,
    SIGNATURE_SYMBOL,
    SUPPORT_SYMBOLS,
    signature_ir,
    support_ir,
)
from tilewright.llvm import LoadedObject, compile_ir, host_target, load_object

__all__ = [
    "Entry",
    "Handlers",
    "LaunchLog",
    "LaunchShape",
    "LoggedLaunch",
    "PageTable",
    "make_entry",
]


class Entry(Protocol):
    """A callable made by `make_entry`."""

    @property
    def __self__(self) -> int:
        """Address of the record: tells entries apart in the log."""
        ...

    def __call__(self, x: object, y: object, z: object, stream: object, *args: object) -> None:
        """Launch over the grid (x, y, z)."""
        ...


_METH_FASTCALL = 0x80
_POINTER_BYTES = 8
_ATTRIBUTE_BYTES = 72  # CUlaunchAttribute: id, padding, a union of 64 bytes
_COOPERATIVE = 2  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE
_CLUSTER_DIMENSION = 4
_PROGRAMMATIC_STREAM_SERIALIZATION = 6


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """What every launch of a kernel has in common.

    threads: of a block; shared_bytes: dynamic shared memory; cluster: blocks of a cluster along
    x, y, z, which together run one program, (1, 1, 1) for none; cooperative: the whole grid is
    resident at once; dependent: may start before the kernel ahead in the stream has ended
    (programmatic dependent launch).
    """

    threads: int
    shared_bytes: int = 0
    cluster: tuple[int, int, int] = (1, 1, 1)
    cooperative: bool = False
    dependent: bool = False

    def attributes(self) -> bytes:
        """An array of CUlaunchAttribute."""
        found: list[bytes] = []
        if self.cluster != (1, 1, 1):
            found.append(struct.pack("<Ixxxx3I52x", _CLUSTER_DIMENSION, *self.cluster))
        if self.cooperative:
            found.append(struct.pack("<Ixxxxi60x", _COOPERATIVE, 1))
        if self.dependent:
            found.append(struct.pack("<Ixxxxi60x", _PROGRAMMATIC_STREAM_SERIALIZATION, 1))
        return b"".join(found)


@dataclass(frozen=True, slots=True)
class Handlers:
    """What Python does for a launch that is out of the ordinary.

    convert(index, argument) -> the slot's 64 bits: an argument that is not an int, float or array
        of the usual kind; refuse(index, address): an address that is not of the device: raises, or
        returns to let it pass; regrid(x, y, z) raises for a grid that is none;
    failed(status, attempt, x, y, z, stream): a launch that the driver refused: raises, or returns
        to try again (attempt counts from 0); after(x, y, z, stream): each launch, once sent
    """

    convert: Callable[[int, object], int]
    refuse: Callable[[int, int], object]
    regrid: Callable[[object, object, object], object]
    failed: Callable[[int, int, int, int, int, int], object]
    after: Callable[[int, int, int, int], object] | None = None


class PageTable:
    """Pages of memory that the driver has confirmed to be of one device."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, PAGES * 8)
        self._view = ctypes.c_char.from_buffer(self._memory)
        self.address = ctypes.addressof(self._view)
        self.forget()

    def forget(self) -> None:
        """Confirm every address anew."""
        ctypes.memset(self.address, 0, PAGES * 8)
        ctypes.memset(self.address, 0xFF, 8)


@dataclass(frozen=True, slots=True)
class LoggedLaunch:
    """One line of the log. record: address that tells which kernel (`Entry.__self__`)."""

    record: int
    grid: tuple[int, int, int]
    stream: int


class LaunchLog:
    """The latest launches of a device, written by the machine code."""

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(8 + LOG_ENTRIES * LOG_ENTRY_BYTES)
        self.address = ctypes.addressof(self._buffer)

    @property
    def count(self) -> int:
        """Launches so far."""
        return struct.unpack_from("<Q", self._buffer)[0]

    def drop(self, record: int, grid: tuple[int, int, int], stream: int) -> None:
        """Take back the latest launch like this, which the driver refused."""
        for number in reversed(range(max(self.count - LOG_ENTRIES, 0), self.count)):
            if self._entry(number) == LoggedLaunch(record, grid, stream):
                struct.pack_into("<Q", self._buffer, self._offset(number), 0)
                return

    def latest(self, since: int = 0) -> list[LoggedLaunch]:
        """The launches from number `since` on as far as they are known, latest first."""
        count = self.count
        first = max(since, count - LOG_ENTRIES, 0)
        found = (self._entry(number) for number in reversed(range(first, count)))
        return [launch for launch in found if launch.record]

    def _offset(self, number: int) -> int:
        return 8 + number % LOG_ENTRIES * LOG_ENTRY_BYTES

    def _entry(self, number: int) -> LoggedLaunch:
        fields = struct.unpack_from("<QIIIxxxxQ", self._buffer, self._offset(number))
        record, x, y, z, stream = fields
        return LoggedLaunch(record, (x, y, z), stream)


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Address(int):
    """Of a record: the self of an entry. keep: what the entry needs as long as it lives."""

    keep: list[object]


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
) -> Entry:
    """A callable in machine code that launches a kernel.

    entry(grid_x, grid_y, grid_z, stream, *arguments) -> None; stream is a CUstream as an int. Of
    the arguments, `kinds` says the types (see `signature_ir`). A pointer is passed as an int, None,
    or an object with a method `data_ptr`. An empty grid launches nothing.

    function: CUfunction; device: its ordinal; launch, pointer_attribute: addresses of
    cuLaunchKernelEx and cuPointerGetAttribute.
    """
    code = _signature_code(tuple(kinds))
    attributes = shape.attributes()
    attribute_buffer = ctypes.create_string_buffer(attributes, max(len(attributes), 1))
    record = ctypes.create_string_buffer(RECORD_BYTES)
    data_ptr = "data_ptr"
    fields = {
        "function": function,
        "launch": launch,
        "pointer_attribute": pointer_attribute,
        "device": device,
        "pages": pages.address,
        "log": log.address,
        "data_ptr": id(data_ptr),
        "convert": id(handlers.convert),
        "refuse": id(handlers.refuse),
        "regrid": id(handlers.regrid),
        "failed": id(handlers.failed),
        "after": 0 if handlers.after is None else id(handlers.after),
        "none": id(None),
        "int": id(int),
        "cluster": shape.cluster[0],
    }
    count = len(attributes) // _ATTRIBUTE_BYTES
    struct.pack_into("<12xIIII", record, 0, shape.threads, 1, 1, shape.shared_bytes)
    struct.pack_into("<QI", record, 40, ctypes.addressof(attribute_buffer), count)
    for key, value in fields.items():
        struct.pack_into("<Q", record, RECORD[key], value)
    address = _Address(ctypes.addressof(record))
    address.keep = [record, attribute_buffer, handlers, data_ptr, pages, log, code]
    return _c_function(name, code[SIGNATURE_SYMBOL], address)


def _c_function(name: str, code: int, record: _Address) -> Entry:
    """A builtin function with the record's address as its self."""
    method = _MethodDef(name.encode(), code, _METH_FASTCALL, None)
    record.keep.append(method)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    return new(ctypes.addressof(method), record, __name__)


@functools.cache
def _signature_code(kinds: tuple[str, ...]) -> LoadedObject:
    """The launch function of a signature: 2 ms, once in a process.

    LLVM's fastest code generator: at its default effort it takes 8 times as long to save a launch
    some 10 ns.
    """
    text = signature_ir(kinds, _type_offset(), dict(_support_code().addresses))
    return load_object(compile_ir(text, host_target(0), 0).obj, [SIGNATURE_SYMBOL])


@functools.cache
def _support_code() -> LoadedObject:
    return load_object(compile_ir(support_ir(), host_target(0), 0).obj, SUPPORT_SYMBOLS)


def _type_offset() -> int:
    """Where a Python object holds its type: at the end of its header, in every build."""
    return object.__basicsize__ - _POINTER_BYTES
