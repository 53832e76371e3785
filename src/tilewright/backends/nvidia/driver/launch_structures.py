"""Machine code of a launch: its structures and files.

It is one C function, of the kind that CPython calls without building a tuple (METH_FASTCALL)::

    PyObject *tw_launch(PyObject *record, PyObject **args, Py_ssize_t count)
    launch(grid_x, grid_y, grid_z, stream, *arguments)

For each parameter it calls the function that fills a slot of 8 bytes from an argument of that type,
and passes the addresses of the slots to `cuLaunchKernelEx`. Unusual cases call
Python: an argument of an unusual type or out of range (`convert`), an address that the driver
does not know (`refuse`), an invalid grid (`regrid`), a launch that the driver refuses
(`failed`).

`record` is a Python integer: the address of a `LaunchRecord`, which holds what one kernel needs on
one device.

Tensor maps derive from numbers among the slots. They are cached in tables, and encoded by Python
(`encode`) the first time; a launch passes a copy of its own, since other threads may replace those
in the tables while the driver reads it.

Addresses that the driver has confirmed are cached by page in a table of the device (`PAGES` entries
of 8 bytes; entry 0 must not hold 0, which is also a page). Freed memory stays in the table: the
check finds mistakes, but is no protection. The address 0 is passed unchecked.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from tilewright.llvm import LoadedObject
from tilewright.native import OBJECT_LAYOUT, NativeProgram

PAGES = 1 << 15
_PAGE_BITS = 12  # an entry of the table is for 4 KB
LOG_ENTRIES = 64
LEADING = 4
"""Arguments before the kernel's: the grid and the stream."""
CONSTEXPR = "constexpr"
"""Kind of an argument that is ignored."""

LAUNCH_SYMBOL = "tw_launch"

_INTEGER, _HALF = 1, 5
_NAMED_KINDS = {"pointer": 0, "integer": _INTEGER, "u64": 2, "f32": 3, "f64": 4}
PARAMETER_KINDS = {"ptr": 0, "u64": 2, "f32": 3, "f64": 4, "f16": _HALF, "bf16": _HALF}
"""Numbers of types in `fill` of launch.c; all other integers are `_INTEGER`."""

MAP_BYTES = 128  # CUtensorMap
MAP_WORDS = 10
"""Numbers that determine a tensor map: an address, five extents and four strides."""
MAP_ENTRIES, MAP_PROBES = 256, 4
"""Cached maps of a parameter, and the probes of a search."""

_Address = ctypes.c_void_p
_Object = ctypes.c_void_p
"""A PyObject *."""


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig of cuda.h."""

    _fields_ = (
        ("grid_x", ctypes.c_uint32),
        ("grid_y", ctypes.c_uint32),
        ("grid_z", ctypes.c_uint32),
        ("block_x", ctypes.c_uint32),
        ("block_y", ctypes.c_uint32),
        ("block_z", ctypes.c_uint32),
        ("shared_bytes", ctypes.c_uint32),
        ("stream", _Address),
        ("attributes", _Address),
        ("attribute_count", ctypes.c_uint32),
    )


class LaunchRecord(ctypes.Structure):
    """The common parameters of a kernel's launches on a device. For handlers see `Handlers`."""

    _fields_ = (
        ("config", LaunchConfig),  # grid and stream are filled in a copy
        ("function", _Address),  # CUfunction
        ("launch", _Address),  # of cuLaunchKernelEx
        ("pointer_attribute", _Address),  # of cuPointerGetAttribute
        ("device", ctypes.c_int32),  # ordinal
        ("pages", _Address),  # of the device's table of pages
        ("log", _Address),  # of the device's LogMemory
        ("data_ptr", _Object),  # the string "data_ptr"
        ("convert", _Object),  # handlers
        ("refuse", _Object),
        ("regrid", _Object),
        ("failed", _Object),
        ("after", _Object),  # or null
        ("none", _Object),  # None
        ("int_type", _Object),  # int
        ("cluster", ctypes.c_int64),  # blocks along x that run one program
        ("resident", ctypes.c_int64),  # most blocks, where these run several; 0: no limit
        ("pairs", ctypes.c_int64),  # 1: these blocks are clusters of two; 0: they are not
        ("count", ctypes.c_int64),  # of arguments of a call, with LEADING
        ("slots", ctypes.c_int64),  # how many arguments are passed to the kernel
        ("parameters", _Address),  # of a Parameter for each of these
        ("maps", ctypes.c_int64),  # how many tensor maps are passed after them
        ("map_tables", _Address),  # of a MapTable for each of these
        ("encode", _Object),  # handler
    )


class Parameter(ctypes.Structure):
    """The description of one slot."""

    _fields_ = (
        ("kind", ctypes.c_int64),  # see PARAMETER_KINDS
        ("index", ctypes.c_int64),  # of the argument among the kernel's, ignored ones included; or
        # below 0, from the first of the kernel's on: the grid
        ("spare_bits", ctypes.c_int64),  # of an integer: 64 less those of its type
        ("is_signed", ctypes.c_int64),  # whether an integer is
        ("fill_half", _Address),  # of a 16-bit float: function of launch_half.c
    )


class MapTable(ctypes.Structure):
    """The tensor maps that were passed for one parameter."""

    _fields_ = (
        ("count", ctypes.c_int64),  # of the words that decide the map
        ("slots", _Address),  # of the number of the slot of each word
        ("entries", _Address),  # of MAP_ENTRIES + MAP_PROBES entries
        ("turn", ctypes.c_int64),  # counts maps that found all their entries in use
    )


class MapEntry(ctypes.Structure):
    """A tensor map, and the words that determine it."""

    _fields_ = (
        ("filled", ctypes.c_int64),
        ("words", ctypes.c_uint64 * MAP_WORDS),
        ("map", ctypes.c_char * MAP_BYTES),
    )


class LogEntry(ctypes.Structure):
    """A launch in the log."""

    _fields_ = (
        ("function", ctypes.c_uint64),  # CUfunction; 0: the driver refused it
        ("x", ctypes.c_uint32),
        ("y", ctypes.c_uint32),
        ("z", ctypes.c_uint32),
        ("stream", ctypes.c_uint64),
    )


class LogMemory(ctypes.Structure):
    """The latest launches of a device; number n is at n % LOG_ENTRIES."""

    _fields_ = (("count", ctypes.c_uint64), ("entries", LogEntry * LOG_ENTRIES))


LAUNCH = NativeProgram(
    source=Path(__file__).with_name("launch.c"),
    exports=[LAUNCH_SYMBOL],
    structures=[LaunchConfig, LaunchRecord, Parameter, MapTable, MapEntry, LogEntry, LogMemory],
    constants={
        "LEADING": LEADING,
        **{f"KIND_{kind.upper()}": number for kind, number in _NAMED_KINDS.items()},
        "LOG_MASK": LOG_ENTRIES - 1,
        "PAGE_BITS": _PAGE_BITS,
        "PAGE_MASK": PAGES - 1,
        "MAP_BYTES": MAP_BYTES,
        "MAP_WORDS": MAP_WORDS,
        "MAP_SHIFT": 64 - (MAP_ENTRIES.bit_length() - 1),
        "MAP_PROBES": MAP_PROBES,
    },
    definitions=OBJECT_LAYOUT,
)
LAUNCH_HALF = NativeProgram(
    source=Path(__file__).with_name("launch_half.c"),
    exports=["tw_fill_f16", "tw_fill_bf16"],
)


@functools.cache
def launch_code() -> LoadedObject:
    """The code for all kernels, loaded once in a process."""
    return LAUNCH.load()


@functools.cache
def _half_code() -> LoadedObject:
    return LAUNCH_HALF.load()


def parameter(kind: str, index: int) -> Parameter:
    """The slot of argument `index` of a kernel. kind: i1, i8 ... u64, f16, bf16, f32, f64, or
    "ptr" for a pointer."""
    number = PARAMETER_KINDS.get(kind, _INTEGER)
    if number == _HALF:
        return Parameter(number, index, fill_half=_half_code()[f"tw_fill_{kind}"])
    if number == _INTEGER:
        return Parameter(number, index, 64 - int(kind[1:]), kind[0] == "i" and kind != "i1")
    return Parameter(number, index)
