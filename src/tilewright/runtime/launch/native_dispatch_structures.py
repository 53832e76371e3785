"""The C program of native dispatch, and the structures that it shares with Python.

It is one C function for all kernels, which CPython calls without building a tuple (METH_FASTCALL |
METH_KEYWORDS)::

    PyObject *tw_dispatch(PyObject *record, PyObject **args, Py_ssize_t count, PyObject *names)
    dispatch(grid, *arguments, **named)

It describes each argument by an `ArgumentDescriptor`: its keyword, its type, and the part of its
value that decides the variant: the class of an int (1; i32; i32 divisible by 8; a negative i32;
...), the dtype, device and alignment of an array, the value of a compile-time number, the identity
of any other compile-time object. The descriptors are looked up in a table of cache entries. An
entry holds the globals that must be unchanged, the sources of the arguments, and the callee.
Python handles the rest: `add_entry` a launch without an entry, `add_type` an unknown type, `python`
everything else.

`record` is a Python integer: the address of a `DispatchRecord`, one for each kernel. Arrays are
read by `data_ptr()`, `get_device()`, `is_neg()` and the attribute `dtype`; NumPy arrays by NumPy's
C interface, torch tensors as torch_tensors.py describes.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from tilewright.native import OBJECT_LAYOUT, NativeProgram
from tilewright.runtime.arguments.key_rules import (
    ALIGNMENT,
    BOUNDED,
    BY_VALUE,
    CONSTEXPR,
    DIVISORS,
    FLOAT,
    HALF_ALIGNMENT,
    LAYOUT,
    MULTIPLE,
    PARAMETER,
    RANGE,
    SIGNED,
    UNALIGNED,
    UNSPECIALIZED,
)

DISPATCH_SYMBOL = "tw_dispatch"
MAX_ARGUMENTS = 64
"""Maximal number of items that describe a launch; Python makes launches with more."""
TENSOR_TYPES = 8
SLOTS, PROBES = 256, 8
"""Positions in the table of a kernel at which a search starts, and the length of a search."""

SLOT_KINDS = ("word", "f32", "f64", "i1")
"""Contents of a 64-bit slot: an integer or address, the bits of a float, or a truth value."""

GRID_STACK = 16
"""Maximal number of integers that a program of a grid function holds at a time."""
GRID_OPERATIONS = (
    "number", "argument", "cell", "global", "power_of_two", "add", "subtract", "multiply", "divide",
    "remainder", "cdiv", "min", "max",
)  # fmt: skip
GRID_CHECKS = ("in_dict", "in_cell", "code")

_Word = ctypes.c_uint64
_Address = ctypes.c_void_p
_Object = ctypes.c_void_p
"""A PyObject *."""


class DispatchRecord(ctypes.Structure):
    """The data of one kernel for machine code, written by Python."""

    _fields_ = (
        ("known", _Address),  # of the KnownObjects
        ("table", _Address),  # of SLOTS + PROBES addresses of entries; 0 ends a search
        ("python", _Object),  # launch(grid, *arguments, **named)
        # add_entry(descriptors, grid, *arguments, **named) launches and adds an entry; or 0
        ("add_entry", _Object),
        ("count", _Word),  # of parameters
        ("flags", _Address),  # of a word for each
        ("bounds", _Address),  # of two words for each, if it is BOUNDED: low <= value < high
        ("names", _Address),  # of each one's interned name
        ("assigned", _Object),  # dict: options set by the program; Python launches if there are any
        ("enter", _Object),  # lists: launch hooks; Python launches if there are any
        ("exit", _Object),
        ("before", _Object),  # of this kernel alone
        ("watching", _Address),  # of a word: the state of the watch for arguments that overlap
        ("clock", _Address),  # of a word that each launch increments
        ("grids", _Address),  # of addresses of GridPrograms, then 0
        ("add_grid", _Object),  # add_grid(function) adds a program to them; or 0
    )


class CacheEntry(ctypes.Structure):
    """The launch with certain descriptors."""

    _fields_ = (
        ("size", _Word),  # of the descriptors, in words
        ("descriptors", _Address),
        ("call", _Object),  # call(x, y, z, [stream,] *values); 0 if `words` is called instead
        ("words", _Address),  # of int words(words_record, x, y, z, uint64_t *values), or 0
        ("words_record", _Address),
        ("slots", _Address),  # of a word for each value: what its 64 bits are, as SLOT_KINDS has it
        ("check", _Object),  # check(status), which raises the errors of a launch, and
        (
            "failures",
            _Object,
        ),  # list: if it is not empty, or the status is not 0, `check` is called
        ("kernel", _Object),  # what the launch returns
        ("values", _Word),  # how many are passed
        ("sources", _Address),  # of a word for each: an item's position, or the object itself
        (
            "constants",
            _Address,
        ),  # of a word for each: passed to `words` if its source is no position
        ("grid", _Object),  # tuple; 0: the launch gives it
        ("checks", _Word),  # number of globals
        # of (holder, get, name, value) for each: an item of a dict, or get(name) if holder is 0
        ("globals", _Address),
        ("device", _Object),  # argument of stream_of
        ("stream_of", _Object),  # stream_of(device) -> stream; 0 if call takes none
        ("context_of", _Address),  # of int context_of(void **), or 0
        ("context", _Address),  # the expected context
        ("names", _Address),  # of the parameter or keyword of each argument
        ("pairs", _Word),  # how many pairs of arguments must not overlap
        ("pair_list", _Address),  # of an OverlapPair for each
        # address of the grid, state of the watch, numbers and addresses of the latest by Python
        ("latest", _Address),
        ("defaults", _Object),  # dict of the parameters that are not given
        ("owner", _Object),  # frees this memory; a running launch holds a reference
        ("stamp", _Word),  # the clock at the latest launch
        ("slot", _Word),  # index in the table at which a search for the entry starts
        ("noted", _Address),  # of a word to which each launch writes `note`, or 0
        ("note", _Word),
    )


class GridProgram(ctypes.Structure):
    """The program that computes what a grid function returns."""

    _fields_ = (
        ("code", _Object),  # of the function
        ("globals", _Object),  # dict: its globals
        ("checks", _Word),  # number of checks
        ("check_list", _Address),  # of a GridCheck for each
        ("steps", _Word),  # number of steps
        ("step_list", _Address),  # of a GridStep for each
        ("extents", _Word),  # how many numbers the program leaves; 0: the function has no program
    )


class GridCheck(ctypes.Structure):
    """An object that must be the same as when a grid function was translated."""

    _fields_ = (
        ("kind", _Word),  # as GRID_CHECKS
        ("holder", _Object),  # dict or function
        ("name", _Object),  # key of the dict, or index of the cell
        ("value", _Object),  # the object; 0: there is none
    )


class GridStep(ctypes.Structure):
    """A step of a program: it appends a number, or combines the last ones."""

    _fields_ = (
        ("operation", _Word),  # as GRID_OPERATIONS
        ("holder", _Object),  # dict of a global
        ("name", _Object),  # of an argument or global, index of a cell, or the number itself
    )


class OverlapPair(ctypes.Structure):
    """Two items that must not overlap.

    sum_words: for each sum, the number of its terms, and for each term its factor, the number of
    its items, and their positions.
    """

    _fields_ = (
        ("first", _Word),  # positions of the items
        ("second", _Word),
        ("first_bytes", _Word),  # of their elements
        ("second_bytes", _Word),
        (
            "sums",
            _Word,
        ),  # how many sums must be 0 for equal addresses to be fine; 0: they never are
        ("sum_words", _Address),
    )


class KnownObjects(ctypes.Structure):
    """Objects and types that machine code distinguishes, for all kernels."""

    _fields_ = (
        ("int_type", _Object),
        ("float_type", _Object),
        ("bool_type", _Object),
        ("tuple_type", _Object),
        ("function_type", _Object),
        ("none", _Object),
        ("one", _Object),  # the int 1
        ("data_ptr", _Object),  # names
        ("dtype", _Object),
        ("get_device", _Object),  # 0 if all tensors are in the memory of the host
        ("is_neg", _Object),
        ("numel", _Object),
        ("base", _Object),  # fields of a tensor descriptor
        ("shape", _Object),
        ("strides", _Object),
        ("block_shape", _Object),
        ("padding", _Object),
        ("descriptor", _Object),  # type of tensor descriptors
        ("add_type", _Object),  # add_type(object): of an argument whose type is unknown
        ("boundary", _Object),  # exit(type, error, traceback) of the user boundary
        ("ndarray", _Object),  # type of NumPy's arrays once it is known, else 0
        ("tensors", _Object * TENSOR_TYPES),  # types of tensors, then 0
        ("plain", _Object * TENSOR_TYPES),  # those of them that `TensorHeader` describes, then 0
        ("describe_tensor", _Address),  # and its fields
        ("implementation_at", _Word),
        ("keys_at", _Word),
        ("negative_key", _Word),
    )


class ArgumentDescriptor(ctypes.Structure):
    """The part of an argument that decides the variant."""

    _fields_ = (
        ("keyword", _Object),  # interned name, or 0 for a positional argument
        ("type", _Object),
        ("value", _Word),  # class, value or identity, by type and flags
    )


DISPATCH = NativeProgram(
    source=Path(__file__).with_name("native_dispatch.c"),
    exports=[DISPATCH_SYMBOL],
    structures=[
        DispatchRecord,
        CacheEntry,
        OverlapPair,
        KnownObjects,
        ArgumentDescriptor,
        GridProgram,
        GridCheck,
        GridStep,
    ],
    constants={
        "MAX_ARGUMENTS": MAX_ARGUMENTS,
        "PROBES": PROBES,
        "SLOT_SHIFT": 64 - (SLOTS.bit_length() - 1),
        "CONSTEXPR": CONSTEXPR,
        "UNSPECIALIZED": UNSPECIALIZED,
        "DECIDED_BY_VALUE": CONSTEXPR | BY_VALUE,
        "DIVISIBILITY_OFF": UNSPECIALIZED | UNALIGNED,
        "FLOAT": FLOAT,
        "SIGNED": SIGNED,
        "LAYOUT": LAYOUT,
        "BOUNDED": BOUNDED,
        "PARAMETER": PARAMETER,
        "RANGE": RANGE,
        "MULTIPLE": MULTIPLE,
        **{f"SLOT_{kind.upper()}": number for number, kind in enumerate(SLOT_KINDS)},
        "GRID_STACK": GRID_STACK,
        **{f"GRID_{name.upper()}": number for number, name in enumerate(GRID_OPERATIONS)},
        **{f"GRID_{name.upper()}": number for number, name in enumerate(GRID_CHECKS)},
        "DIVISORS": len(DIVISORS),
        # masks of the bits that are 0 in multiples of DIVISORS
        "ALIGNED": ALIGNMENT - 1,
        "HALF_ALIGNED": HALF_ALIGNMENT - 1,
    },
    definitions=OBJECT_LAYOUT,
    effort=1,
)
