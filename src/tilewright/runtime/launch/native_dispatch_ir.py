"""The machine code that finds and starts the variant of a launch, as LLVM IR text.

`dispatch_ir` makes one C function for all kernels, of the kind that CPython calls without building
a tuple (METH_FASTCALL | METH_KEYWORDS)::

    PyObject *dispatch(PyObject *record, PyObject **args, Py_ssize_t count, PyObject *names)
    dispatch(grid, *arguments, **words)

It describes each argument in three words: the keyword's name or 0; the argument's type; and what
else of it decides the variant: the class of an int (1; i32; i32 divisible by 16; ...), the dtype,
device and alignment of an array, the value of a compile-time number, the identity of any other
compile-time object. The words are looked up in a table of *lines*; a line says what a launch with
these words does: which globals must be as they were, which arguments are passed, what is called.
Whatever it does not know goes to Python: a launch with new words to `learn`, a type that it has not
met to `meet`, everything unusual to `python`, which does all that this code does, and more.

`record` is a Python integer: the address of a RECORD, one for each kernel. An address in an array
is asked for through `data_ptr()`, `get_device()`, `is_neg()` and the attribute `dtype`; of a NumPy
array it is read where NumPy's C interface has it.
"""

from __future__ import annotations

import re

from tilewright.runtime.launch.native_dispatch_arguments import DESCRIBE, DESCRIBE_ARRAY, GRID
from tilewright.runtime.launch.native_dispatch_fire import FIRE
from tilewright.runtime.launch.native_dispatch_overlap import OVERLAP, PAIR

__all__ = [
    "BY_VALUE",
    "CONSTEXPR",
    "DISPATCH_SYMBOL",
    "FLOAT",
    "LINE",
    "MAX_ARGUMENTS",
    "MULTIPLE",
    "PROBES",
    "RANGE",
    "RECORD",
    "SHARED",
    "SIGNED",
    "SLOTS",
    "TENSOR_TYPES",
    "UNALIGNED",
    "UNSPECIALIZED",
    "dispatch_ir",
]

DISPATCH_SYMBOL = "tw_dispatch"
MAX_ARGUMENTS = 48
"""A launch with more is left to Python."""
TENSOR_TYPES = 8
SLOTS, PROBES = 256, 8
"""Places in the table of a kernel where a search for a line begins, and how far it goes."""

CONSTEXPR, UNSPECIALIZED, UNALIGNED, BY_VALUE, FLOAT, SIGNED = 1, 2, 4, 8, 16, 32
"""Flags of a parameter: compile-time; no fact about its value matters; alignment does not; numbers
decide by their value, although they are passed; ints are passed as floats; its range has a sign."""
RANGE, MULTIPLE = 8, 32
"""Bits of the flags from where on they hold the bits of the range of ints, 0 for any that fits a
word (to Python goes what is outside); and what ints and addresses must be multiples of, or 0."""


def _offsets(*names: str) -> dict[str, int]:
    return {name: 8 * i for i, name in enumerate(names)}


RECORD = _offsets(
    "shared",  # address of a SHARED
    "table",  # address of SLOTS + PROBES addresses of lines; 0 ends a search
    "python",  # PyObject *: launch(grid, *arguments, **words)
    "learn",  # PyObject *: launch(words, grid, *arguments, **words), and add a line; or 0
    "count",  # number of parameters
    "flags",  # address of a word of flags for each
    "names",  # address of PyObject *: interned name of each
    "assigned",  # PyObject *: a dict: settings changed by the program; Python if there are any
    "enter",  # PyObject *: a list: launch hooks; Python if there are any
    "exit",
    "watching",  # address of a word: whether arguments that overlap are for Python
    "clock",  # address of a word that each launch increments
)
"""Offsets in bytes of the fields, all of 8 bytes; so below."""

LINE = _offsets(
    "size",  # number of words
    "words",  # address
    "call",  # PyObject *: call(x, y, z, [stream,] *values); 0: leave it to Python
    "kernel",  # PyObject *: what the launch returns
    "values",  # how many are passed
    "sources",  # address of a word for each: position of an argument, or the object itself
    "checks",  # number of globals
    "globals",  # address of (get, name, value) for each: get(name) must be value
    "device",  # PyObject *: argument of stream_of
    "stream_of",  # PyObject *: stream_of(device) -> stream; 0 if call takes none
    "context_of",  # address of int context_of(void **), or 0
    "context",  # what it must find
    "names",  # address of PyObject *: parameter or keyword of each argument
    "pairs",  # how many pairs of arguments must not overlap
    "pair_list",  # address of a PAIR for each
    "fine",  # address of numbers and addresses, and the grid, of a launch without overlap
    "defaults",  # PyObject *: dict of the parameters that are not given
    "owner",  # PyObject *: frees this memory; a launch that is under way holds a reference
    "stamp",  # what the clock has shown to the latest launch
)

SHARED = _offsets(
    "int",  # PyObject *: types
    "float",
    "bool",
    "tuple",
    "none",  # PyObject *: None
    "one",  # PyObject *: 1
    "data_ptr",  # PyObject *: names
    "dtype",
    "get_device",
    "is_neg",
    "numel",
    "meet",  # PyObject *: meet(object), an argument of a type that is not known here
    "boundary",  # PyObject *: exit(type, error, traceback) of the user boundary
    "ndarray",  # PyObject *: type of NumPy's arrays once it is known, else 0
    *(f"tensor{i}" for i in range(TENSOR_TYPES)),  # PyObject *: types of tensors, then 0
)

_STRUCTS = {"RECORD": RECORD, "LINE": LINE, "SHARED": SHARED, "PAIR": PAIR}
_GET = re.compile(r"^  (%\w+) = get (\w+) (%\w+) (\w+)\.(\w+)$", re.MULTILINE)


def dispatch_ir(header_bytes: int) -> str:
    """The text; header_bytes: of a Python object, as in `object.__basicsize__`."""

    def get(found: re.Match[str]) -> str:
        result, type_, base, struct, field = found.groups()
        offset = _STRUCTS[struct][field]
        at = f"{result}_at_{field}"
        return (
            f"  {at} = getelementptr i8, ptr {base}, i64 {offset}\n"
            f"  {result} = load {type_}, ptr {at}"
        )

    numbers = {
        "TYPE_OFFSET": header_bytes - 8,
        "DATA_OFFSET": header_bytes,
        "RANK_OFFSET": header_bytes + 8,
        "SHAPE_OFFSET": header_bytes + 16,
        "STRIDES_OFFSET": header_bytes + 24,
        "DESCR_OFFSET": header_bytes + 40,
        "FLAGS_OFFSET": header_bytes + 48,
        "MAX_ARGUMENTS": MAX_ARGUMENTS,
        "MAX_WORDS": 3 * MAX_ARGUMENTS + 1,
        "PROBES": PROBES,
        "MAX_PASSED": MAX_ARGUMENTS + 8,
        "TENSORS_OFFSET": SHARED["tensor0"],
        "TENSOR_TYPES": TENSOR_TYPES,
        "PAIR_SIZE": PAIR[""],
        "DEVICE_FIELD": LINE["device"],
        "STAMP_FIELD": LINE["stamp"],
    }
    text = _GET.sub(get, _C_API + DESCRIBE + DESCRIBE_ARRAY + GRID + OVERLAP + FIRE + _DISPATCH)
    for name, number in numbers.items():
        text = text.replace(name, str(number))
    return text


_C_API = """
declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyList_Size(ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyDict_Copy(ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare i32 @PyCallable_Check(ptr)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare i32 @PyException_SetTraceback(ptr, ptr)
declare ptr @PyException_GetTraceback(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

_DISPATCH = """
; flags of the parameter called %name; those of a compile-time value if there is none
define internal i64 @flags_of(ptr %record, ptr %name) nounwind {
  %count = get i64 %record RECORD.count
  %names = get ptr %record RECORD.names
  %flags = get ptr %record RECORD.flags
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %none
body:
  %candidate_at = getelementptr ptr, ptr %names, i64 %i
  %candidate = load ptr, ptr %candidate_at
  %next = add i64 %i, 1
  %same = icmp eq ptr %candidate, %name
  br i1 %same, label %found, label %test
found:
  %at = getelementptr i64, ptr %flags, i64 %i
  %result = load i64, ptr %at
  ret i64 %result
none:
  ret i64 1
}

define internal i1 @equal(ptr %line, ptr %words, i64 %size) nounwind {
  %line_size = get i64 %line LINE.size
  %line_words = get ptr %line LINE.words
  %sized = icmp eq i64 %line_size, %size
  br i1 %sized, label %test, label %no
test:
  %i = phi i64 [ 0, %0 ], [ %next, %body ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %body, label %yes
body:
  %x_at = getelementptr i64, ptr %line_words, i64 %i
  %y_at = getelementptr i64, ptr %words, i64 %i
  %x = load i64, ptr %x_at
  %y = load i64, ptr %y_at
  %next = add i64 %i, 1
  %same = icmp eq i64 %x, %y
  br i1 %same, label %test, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; gives up the references in an array
define internal void @drop(ptr %objects, i64 %count) nounwind alwaysinline {
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %at
  call void @Py_DecRef(ptr %object)
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}

define ptr @tw_dispatch(ptr %self, ptr %args, i64 %count, ptr %names) nounwind {
  %words = alloca [MAX_WORDS x i64]
  %values = alloca [MAX_ARGUMENTS x ptr]
  %raws = alloca [MAX_ARGUMENTS x i64]
  %passed = alloca [MAX_PASSED x ptr]
  %record = call ptr @PyLong_AsVoidPtr(ptr %self)
  %shared = get ptr %record RECORD.shared
  %parameters = get i64 %record RECORD.count
  %flag_list = get ptr %record RECORD.flags
  %no_names = icmp eq ptr %names, null
  br i1 %no_names, label %begin, label %keywords
keywords:
  %keyword_count = call i64 @PyTuple_Size(ptr %names)
  br label %begin
begin:
  %extra = phi i64 [ 0, %0 ], [ %keyword_count, %keywords ]
  %positional = sub i64 %count, 1
  %total = add i64 %positional, %extra
  %valid = icmp ule i64 %positional, %parameters
  %few = icmp ule i64 %total, MAX_ARGUMENTS
  %normal = and i1 %valid, %few
  br i1 %normal, label %test, label %python
test:
  %i = phi i64 [ 0, %begin ], [ %next, %described ]
  %hash = phi i64 [ 0, %begin ], [ %hash3, %described ]
  %more = icmp ult i64 %i, %total
  br i1 %more, label %argument, label %find
argument:
  %next = add i64 %i, 1
  %arg_at = getelementptr ptr, ptr %args, i64 %next
  %arg = load ptr, ptr %arg_at
  %is_positional = icmp ult i64 %i, %positional
  br i1 %is_positional, label %by_position, label %by_name
by_position:
  %flag_at = getelementptr i64, ptr %flag_list, i64 %i
  %flag = load i64, ptr %flag_at
  br label %describe
by_name:
  %name_index = sub i64 %i, %positional
  %name = call ptr @PyTuple_GetItem(ptr %names, i64 %name_index)
  %name_flag = call i64 @flags_of(ptr %record, ptr %name)
  br label %describe
describe:
  %flags = phi i64 [ %flag, %by_position ], [ %name_flag, %by_name ]
  %called = phi ptr [ null, %by_position ], [ %name, %by_name ]
  %offset = mul i64 %i, 3
  %n_at = getelementptr i64, ptr %words, i64 %offset
  %a_at = getelementptr i64, ptr %n_at, i64 1
  %b_at = getelementptr i64, ptr %n_at, i64 2
  %value_at = getelementptr ptr, ptr %values, i64 %i
  %raw_at = getelementptr i64, ptr %raws, i64 %i
  store ptr %called, ptr %n_at
  %fine = call i1 @describe(ptr %shared, ptr %arg, i64 %flags, ptr %a_at, ptr %b_at,
      ptr %value_at, ptr %raw_at)
  br i1 %fine, label %described, label %give_up
described:
  %n = load i64, ptr %n_at
  %a = load i64, ptr %a_at
  %b = load i64, ptr %b_at
  %mixed1 = xor i64 %hash, %n
  %hash1 = mul i64 %mixed1, -7046029254386353131
  %mixed2 = xor i64 %hash1, %a
  %hash2 = mul i64 %mixed2, -7046029254386353131
  %mixed3 = xor i64 %hash2, %b
  %hash3 = mul i64 %mixed3, -7046029254386353131
  br label %test
find:
  %size = mul i64 %total, 3
  %slot = lshr i64 %hash, 56
  %table = get ptr %record RECORD.table
  %last = add i64 %slot, PROBES
  br label %probe
probe:
  %place = phi i64 [ %slot, %find ], [ %further, %compare ]
  %line_at = getelementptr ptr, ptr %table, i64 %place
  %line = load ptr, ptr %line_at
  %empty = icmp eq ptr %line, null
  %searched = icmp uge i64 %place, %last
  %unknown = or i1 %empty, %searched
  br i1 %unknown, label %new, label %compare
compare:
  %further = add i64 %place, 1
  %hit = call i1 @equal(ptr %line, ptr %words, i64 %size)
  br i1 %hit, label %run, label %probe
run:
  %fired = call ptr @fire(ptr %record, ptr %line, ptr %args, i64 %count, ptr %names, i64 %total,
      ptr %values, ptr %raws)
  br label %release
new:
  %learner = get ptr %record RECORD.learn
  %learns = icmp ne ptr %learner, null
  br i1 %learns, label %learn, label %leave
leave:
  %left = get ptr %record RECORD.python
  %left_result = call ptr @PyObject_Vectorcall(ptr %left, ptr %args, i64 %count, ptr %names)
  br label %release
learn:
  %slot_at = getelementptr i64, ptr %words, i64 %size
  store i64 %slot, ptr %slot_at
  %with_slot = add i64 %size, 1
  %word_bytes = mul i64 %with_slot, 8
  %text = call ptr @PyBytes_FromStringAndSize(ptr %words, i64 %word_bytes)
  store ptr %text, ptr %passed
  %behind = getelementptr ptr, ptr %passed, i64 1
  %all = add i64 %total, 1
  %all_bytes = mul i64 %all, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %behind, ptr %args, i64 %all_bytes, i1 false)
  %one_more = add i64 %count, 1
  %learned = call ptr @PyObject_Vectorcall(ptr %learner, ptr %passed, i64 %one_more, ptr %names)
  call void @Py_DecRef(ptr %text)
  br label %release
release:
  %result = phi ptr [ %fired, %run ], [ %learned, %learn ], [ %left_result, %leave ]
  call void @drop(ptr %values, i64 %total)
  ret ptr %result
give_up:
  call void @drop(ptr %values, i64 %i)
  br label %python
python:
  %plain = get ptr %record RECORD.python
  %plain_result = call ptr @PyObject_Vectorcall(ptr %plain, ptr %args, i64 %count, ptr %names)
  ret ptr %plain_result
}
"""
