"""The machine code of a launch, as LLVM IR text.

`signature_ir` makes one C function for each signature of a kernel, of the kind that CPython calls
without building a tuple (METH_FASTCALL)::

    PyObject *launch(PyObject *record, PyObject **args, Py_ssize_t count)
    launch(grid_x, grid_y, grid_z, stream, *arguments)

Straight-line code writes each argument into a slot of 8 bytes and passes the addresses of the slots
to `cuLaunchKernelEx`. Whatever is not the usual case leaves for Python: an argument of an unusual
type or out of range (`convert`), an address that the driver does not know (`refuse`), a grid that
is none (`regrid`), a launch that the driver refuses (`failed`). `support_ir` holds what all
signatures share; it is compiled once and reached by address.

On the host of an H100 a launch with 7 arguments takes 3.6 us, 0.4 of them outside the driver
(torch.add 8.1, Triton 18.2).

`record` is a Python integer: the address of a `RECORD`, which holds what one kernel needs on one
device. So kernels that differ in their numbers of warps or their shared memory share the code.

Addresses that the driver has confirmed are remembered by page in a table of the device (`PAGES`
entries of 8 bytes; entry 0 must not hold 0, which is a page too). Memory that was freed stays
there: the check finds mistakes, it is no protection. The address 0 is passed on unchecked.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

__all__ = [
    "LOG_ENTRIES",
    "LOG_ENTRY_BYTES",
    "PAGES",
    "RECORD",
    "RECORD_BYTES",
    "SIGNATURE_SYMBOL",
    "SUPPORT_SYMBOLS",
    "signature_ir",
    "support_ir",
]

PAGES = 1 << 15
_PAGE_BITS = 12
LOG_ENTRIES = 64
LOG_ENTRY_BYTES = 32

RECORD = {
    "config": 0,  # CUlaunchConfig, 56 bytes; grid and stream are filled in a copy
    "function": 56,  # CUfunction
    "launch": 64,  # address of cuLaunchKernelEx
    "pointer_attribute": 72,  # address of cuPointerGetAttribute
    "device": 80,  # ordinal
    "pages": 88,  # address of the device's table of pages
    "log": 96,  # address of the launch log: a count, then LOG_ENTRIES entries
    "data_ptr": 104,  # PyObject *: the string "data_ptr"
    "convert": 112,  # PyObject *: (index, object) -> the slot's 64 bits
    "refuse": 120,  # PyObject *: (index, address) -> anything; raises if it must not be used
    "regrid": 128,  # PyObject *: (x, y, z) -> raises
    "failed": 136,  # PyObject *: (status, attempt, x, y, z, stream) -> raises, or: launch again
    "after": 144,  # PyObject * or null: (x, y, z, stream), called after the launch
    "none": 152,  # PyObject *: None
    "int": 160,  # PyTypeObject *: int
    "cluster": 168,  # blocks along x that run one program
}
"""Offsets in bytes."""
RECORD_BYTES = 176

_CONFIG_BYTES = 56
_CONFIG_STREAM = 32
_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_LEADING = 4  # arguments before the kernel's: the grid and the stream

SIGNATURE_SYMBOL = "tw_launch_signature"
SUPPORT_SYMBOLS = ("tw_convert", "tw_check", "tw_send", "tw_miscounted")

_NARROW = {"i8": 8, "i16": 16, "i32": 32, "u8": 8, "u16": 16, "u32": 32, "i1": 1}
_FLOATS = {"f16": ("half", "i16"), "bf16": ("bfloat", "i16"), "f32": ("float", "i32")}
SKIPPED = "constexpr"


def signature_ir(kinds: Sequence[str], type_offset: int, support: dict[str, int]) -> str:
    """The launch function of a signature.

    kinds: each argument's type: i1, i8 ... u64, f16, bf16, f32, f64, "ptr" for a pointer, and
    "constexpr" for one that is passed and ignored; type_offset: bytes from the start of a Python
    object to its type; support: addresses of SUPPORT_SYMBOLS.
    """
    slots = sum(kind != SKIPPED for kind in kinds)
    body = "\n".join(_argument(i, kind, kinds, type_offset) for i, kind in enumerate(kinds))
    addresses = {name: f"inttoptr (i64 {support[name]} to ptr)" for name in SUPPORT_SYMBOLS}
    names = addresses | {
        "slots": str(max(slots, 1)),
        "count": str(_LEADING + len(kinds)),
        "body": Template(body).substitute(addresses),
        "end": f"arg{len(kinds)}",
    }
    return _C_API + Template(_SIGNATURE).substitute(names)


def support_ir() -> str:
    """What the launch functions of all signatures share (see SUPPORT_SYMBOLS)."""
    fields = {name: str(offset) for name, offset in RECORD.items()}
    names = fields | {
        "page_bits": str(_PAGE_BITS),
        "page_mask": str(PAGES - 1),
        "ordinal": str(_DEVICE_ORDINAL),
        "config_bytes": str(_CONFIG_BYTES),
        "config_stream": str(_CONFIG_STREAM),
        "log_mask": str(LOG_ENTRIES - 1),
        "log_entry": str(LOG_ENTRY_BYTES),
    }
    return _C_API + Template(_SUPPORT + _SEND).substitute(names)


def _argument(index: int, kind: str, kinds: Sequence[str], type_offset: int) -> str:
    """From label arg<index> to label arg<index + 1>: one argument into its slot."""
    if kind == SKIPPED:
        return f"  br label %arg{index + 1}\narg{index + 1}:"
    slot = sum(k != SKIPPED for k in kinds[:index])
    names = {
        "i": str(index),
        "next": str(index + 1),
        "position": str(_LEADING + index),
        "slot": str(slot),
        "type_offset": str(type_offset),
        "pages_field": str(RECORD["pages"]),
        "name_field": str(RECORD["data_ptr"]),
        "none_field": str(RECORD["none"]),
        "int_field": str(RECORD["int"]),
        "page_bits": str(_PAGE_BITS),
        "page_mask": str(PAGES - 1),
    }
    convert = Template(_conversion(kind)).safe_substitute(names)
    return Template(_ARGUMENT).safe_substitute(names | {"convert": convert})


def _conversion(kind: str) -> str:
    """Code that fills slot %s$i and goes to arg$next, or goes to slow$i or raise."""
    if kind == "ptr":
        return _POINTER
    if kind == "f64":
        return _FLOAT.replace("ROUND", _KEEP)
    if kind in _FLOATS:
        type_, bits = _FLOATS[kind]
        return _FLOAT.replace("ROUND", _ROUND.replace("TYPE", type_).replace("BITS", bits))
    if kind == "u64":
        return _WIDE.replace("CONVERT", "PyLong_AsUnsignedLongLong")
    if kind == "i64":
        return _WIDE.replace("CONVERT", "PyLong_AsLongLong")
    extend = "sext" if kind[0] == "i" and kind != "i1" else "zext"
    return _INTEGER.replace("TYPE", f"i{_NARROW[kind]}").replace("EXTEND", extend)


_C_API = """
declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
@PyExc_TypeError = external global ptr
"""

_SIGNATURE = """
define ptr @tw_launch_signature(ptr %self, ptr %args, i64 %count) nounwind {
  %slots = alloca [$slots x i64], align 8
  %params = alloca [$slots x ptr], align 8
  %record = call ptr @PyLong_AsVoidPtr(ptr %self)
  %counted = icmp eq i64 %count, $count
  br i1 %counted, label %arg0, label %miscounted
arg0:
$body
  %result = call ptr $tw_send(ptr %record, ptr %args, ptr %params)
  ret ptr %result
miscounted:
  call void $tw_miscounted()
  br label %raise
raise:
  ret ptr null
}
"""

_ARGUMENT = """
  %p$i = getelementptr ptr, ptr %args, i64 $position
  %o$i = load ptr, ptr %p$i
  %s$i = getelementptr i64, ptr %slots, i64 $slot
  %q$i = getelementptr ptr, ptr %params, i64 $slot
  store ptr %s$i, ptr %q$i
$convert
slow$i:
  %done$i = call i1 $tw_convert(ptr %record, i64 $i, ptr %o$i, ptr %s$i)
  br i1 %done$i, label %arg$next, label %raise
arg$next:"""

# -1 also reports an error, and may be one
_INTEGER = """
  %v$i = call i64 @PyLong_AsLongLong(ptr %o$i)
  %n$i = trunc i64 %v$i to TYPE
  %w$i = EXTEND TYPE %n$i to i64
  %fits$i = icmp eq i64 %v$i, %w$i
  br i1 %fits$i, label %fit$i, label %slow$i
fit$i:
  store i64 %v$i, ptr %s$i
  %minus$i = icmp eq i64 %v$i, -1
  br i1 %minus$i, label %suspect$i, label %arg$next
suspect$i:
  %error$i = call ptr @PyErr_Occurred()
  %fine$i = icmp eq ptr %error$i, null
  br i1 %fine$i, label %arg$next, label %slow$i
"""

_WIDE = """
  %v$i = call i64 @CONVERT(ptr %o$i)
  store i64 %v$i, ptr %s$i
  %minus$i = icmp eq i64 %v$i, -1
  br i1 %minus$i, label %suspect$i, label %arg$next
suspect$i:
  %error$i = call ptr @PyErr_Occurred()
  %fine$i = icmp eq ptr %error$i, null
  br i1 %fine$i, label %arg$next, label %slow$i
"""

_FLOAT = """
  %v$i = call double @PyFloat_AsDouble(ptr %o$i)
ROUND
  store i64 %z$i, ptr %s$i
  %minus$i = fcmp oeq double %v$i, -1.0
  br i1 %minus$i, label %suspect$i, label %arg$next
suspect$i:
  %error$i = call ptr @PyErr_Occurred()
  %fine$i = icmp eq ptr %error$i, null
  br i1 %fine$i, label %arg$next, label %slow$i
"""

_ROUND = """  %n$i = fptrunc double %v$i to TYPE
  %b$i = bitcast TYPE %n$i to BITS
  %z$i = zext BITS %b$i to i64"""

_KEEP = "  %z$i = bitcast double %v$i to i64"

_POINTER = """
  %tp$i = getelementptr i8, ptr %o$i, i64 $type_offset
  %t$i = load ptr, ptr %tp$i
  %ip$i = getelementptr i8, ptr %record, i64 $int_field
  %int$i = load ptr, ptr %ip$i
  %is_int$i = icmp eq ptr %t$i, %int$i
  br i1 %is_int$i, label %number$i, label %object$i
object$i:
  %np$i = getelementptr i8, ptr %record, i64 $none_field
  %none$i = load ptr, ptr %np$i
  %is_none$i = icmp eq ptr %o$i, %none$i
  br i1 %is_none$i, label %null$i, label %array$i
array$i:
  %mp$i = getelementptr i8, ptr %record, i64 $name_field
  %m$i = load ptr, ptr %mp$i
  %r$i = call ptr @PyObject_VectorcallMethod(ptr %m$i, ptr %p$i, i64 1, ptr null)
  %got$i = icmp ne ptr %r$i, null
  br i1 %got$i, label %address$i, label %slow$i
address$i:
  %a$i = call i64 @PyLong_AsUnsignedLongLong(ptr %r$i)
  call void @Py_DecRef(ptr %r$i)
  br label %known$i
number$i:
  %l$i = call i64 @PyLong_AsUnsignedLongLong(ptr %o$i)
  br label %known$i
null$i:
  store i64 0, ptr %s$i
  br label %arg$next
known$i:
  %v$i = phi i64 [ %a$i, %address$i ], [ %l$i, %number$i ]
  store i64 %v$i, ptr %s$i
  %odd$i = add i64 %v$i, 1
  %rare$i = icmp ule i64 %odd$i, 1
  br i1 %rare$i, label %special$i, label %look$i
special$i:
  %no$i = icmp eq i64 %v$i, 0
  br i1 %no$i, label %arg$next, label %slow$i
look$i:
  %page$i = lshr i64 %v$i, $page_bits
  %high$i = lshr i64 %page$i, 9
  %mixed$i = xor i64 %page$i, %high$i
  %hash$i = and i64 %mixed$i, $page_mask
  %gp$i = getelementptr i8, ptr %record, i64 $pages_field
  %pages$i = load ptr, ptr %gp$i
  %entry$i = getelementptr i64, ptr %pages$i, i64 %hash$i
  %seen$i = load i64, ptr %entry$i
  %hit$i = icmp eq i64 %seen$i, %page$i
  br i1 %hit$i, label %arg$next, label %check$i
check$i:
  %good$i = call i1 $tw_check(ptr %record, i64 $i, i64 %v$i, ptr %entry$i)
  br i1 %good$i, label %arg$next, label %raise
"""

_SUPPORT = """
@few = internal constant [33 x i8] c"wrong number of launch arguments\\00"

; a launch with more or fewer arguments than the signature has
define void @tw_miscounted() nounwind {
  %type = load ptr, ptr @PyExc_TypeError
  call void @PyErr_SetString(ptr %type, ptr @few)
  ret void
}

; calls the field of the record with one to six new references and drops them; null: it raised
define internal ptr @ask(ptr %record, i64 %field, ptr %args, i64 %count) nounwind {
  %at = getelementptr i8, ptr %record, i64 %field
  %callable = load ptr, ptr %at
  %result = call ptr @PyObject_Vectorcall(ptr %callable, ptr %args, i64 %count, ptr null)
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %p = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %p
  call void @Py_DecRef(ptr %arg)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %out
out:
  ret ptr %result
}

; convert(index, object) into *slot; false: it raised
define i1 @tw_convert(ptr %record, i64 %index, ptr %object, ptr %slot) nounwind {
  %args = alloca [2 x ptr]
  call void @PyErr_Clear()
  %i = call ptr @PyLong_FromLongLong(i64 %index)
  store ptr %i, ptr %args
  %second = getelementptr ptr, ptr %args, i64 1
  store ptr %object, ptr %second
  call void @Py_IncRef(ptr %object)
  %result = call ptr @ask(ptr %record, i64 $convert, ptr %args, i64 2)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %fail, label %take
take:
  %bits = call i64 @PyLong_AsUnsignedLongLong(ptr %result)
  call void @Py_DecRef(ptr %result)
  store i64 %bits, ptr %slot
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  ret i1 %fine
fail:
  ret i1 false
}

; whether the address is one of the record's device; if so, remembers its page
define i1 @tw_check(ptr %record, i64 %index, i64 %address, ptr %entry) nounwind {
  %args = alloca [2 x ptr]
  %ordinal = alloca i32
  %gp = getelementptr i8, ptr %record, i64 $pointer_attribute
  %get = load ptr, ptr %gp
  %status = call i32 %get(ptr %ordinal, i32 $ordinal, i64 %address)
  %known = icmp eq i32 %status, 0
  br i1 %known, label %compare, label %python
compare:
  %found = load i32, ptr %ordinal
  %dp = getelementptr i8, ptr %record, i64 $device
  %device = load i32, ptr %dp
  %same = icmp eq i32 %found, %device
  br i1 %same, label %remember, label %python
remember:
  %page = lshr i64 %address, $page_bits
  store i64 %page, ptr %entry
  ret i1 true
python:
  %i = call ptr @PyLong_FromLongLong(i64 %index)
  store ptr %i, ptr %args
  %second = getelementptr ptr, ptr %args, i64 1
  %a = call ptr @PyLong_FromUnsignedLongLong(i64 %address)
  store ptr %a, ptr %second
  %result = call ptr @ask(ptr %record, i64 $refuse, ptr %args, i64 2)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %fail, label %allowed
allowed:
  call void @Py_DecRef(ptr %result)
  ret i1 true
fail:
  ret i1 false
}
"""

_SEND = """
; launches; args: grid and stream as Python integers, params: addresses of the slots
define ptr @tw_send(ptr %record, ptr %args, ptr %params) nounwind {
  %config = alloca [$config_bytes x i8], align 8
  %words = alloca [6 x ptr]
  %x_object = load ptr, ptr %args
  %x = call i64 @PyLong_AsLongLong(ptr %x_object)
  %y_at = getelementptr ptr, ptr %args, i64 1
  %y_object = load ptr, ptr %y_at
  %y = call i64 @PyLong_AsLongLong(ptr %y_object)
  %z_at = getelementptr ptr, ptr %args, i64 2
  %z_object = load ptr, ptr %z_at
  %z = call i64 @PyLong_AsLongLong(ptr %z_object)
  %xy = or i64 %x, %y
  %xyz = or i64 %xy, %z
  %valid = icmp ule i64 %xyz, 2147483647
  br i1 %valid, label %size, label %bad_grid
size:
  %no_x = icmp eq i64 %x, 0
  %no_y = icmp eq i64 %y, 0
  %no_z = icmp eq i64 %z, 0
  %no_xy = or i1 %no_x, %no_y
  %empty = or i1 %no_xy, %no_z
  br i1 %empty, label %nothing, label %multiply
multiply:
  %cluster_at = getelementptr i8, ptr %record, i64 $cluster
  %cluster = load i64, ptr %cluster_at
  %blocks = mul i64 %x, %cluster
  %few = icmp ule i64 %blocks, 2147483647
  br i1 %few, label %fill, label %bad_grid
fill:
  %stream_at = getelementptr ptr, ptr %args, i64 3
  %stream_object = load ptr, ptr %stream_at
  %stream = call ptr @PyLong_AsVoidPtr(ptr %stream_object)
  %default = icmp eq ptr %stream, null
  br i1 %default, label %suspect, label %copy
suspect:
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %copy, label %raise
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %config, ptr %record, i64 $config_bytes, i1 false)
  %x32 = trunc i64 %x to i32
  %y32 = trunc i64 %y to i32
  %z32 = trunc i64 %z to i32
  %config_y = getelementptr i8, ptr %config, i64 4
  %config_z = getelementptr i8, ptr %config, i64 8
  %config_stream = getelementptr i8, ptr %config, i64 $config_stream
  %blocks32 = trunc i64 %blocks to i32
  store i32 %blocks32, ptr %config
  store i32 %y32, ptr %config_y
  store i32 %z32, ptr %config_z
  store ptr %stream, ptr %config_stream
  %log_at = getelementptr i8, ptr %record, i64 $log
  %log = load ptr, ptr %log_at
  %number = load i64, ptr %log
  %numbered = add i64 %number, 1
  store i64 %numbered, ptr %log
  %index = and i64 %number, $log_mask
  %offset = mul i64 %index, $log_entry
  %entries = getelementptr i8, ptr %log, i64 8
  %entry = getelementptr i8, ptr %entries, i64 %offset
  store ptr %record, ptr %entry
  %entry_x = getelementptr i8, ptr %entry, i64 8
  %entry_y = getelementptr i8, ptr %entry, i64 12
  %entry_z = getelementptr i8, ptr %entry, i64 16
  %entry_stream = getelementptr i8, ptr %entry, i64 24
  store i32 %x32, ptr %entry_x
  store i32 %y32, ptr %entry_y
  store i32 %z32, ptr %entry_z
  store ptr %stream, ptr %entry_stream
  %function_at = getelementptr i8, ptr %record, i64 $function
  %function = load ptr, ptr %function_at
  %launch_at = getelementptr i8, ptr %record, i64 $launch
  %launch = load ptr, ptr %launch_at
  br label %go
go:
  %attempt = phi i64 [ 0, %copy ], [ 1, %retry ]
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 %launch(ptr %config, ptr %function, ptr %params, ptr null)
  call void @PyEval_RestoreThread(ptr %thread)
  %sent = icmp eq i32 %status, 0
  br i1 %sent, label %after, label %refused
after:
  %after_at = getelementptr i8, ptr %record, i64 $after
  %then = load ptr, ptr %after_at
  %quiet = icmp eq ptr %then, null
  br i1 %quiet, label %nothing, label %call_after
call_after:
  call void @numbers(ptr %words, i64 %x, i64 %y, i64 %z, ptr %stream)
  %late = call ptr @ask(ptr %record, i64 $after, ptr %words, i64 4)
  %late_raised = icmp eq ptr %late, null
  br i1 %late_raised, label %raise, label %drop_late
drop_late:
  call void @Py_DecRef(ptr %late)
  br label %nothing
refused:
  %code = sext i32 %status to i64
  %code_object = call ptr @PyLong_FromLongLong(i64 %code)
  store ptr %code_object, ptr %words
  %attempt_object = call ptr @PyLong_FromLongLong(i64 %attempt)
  %attempt_at = getelementptr ptr, ptr %words, i64 1
  store ptr %attempt_object, ptr %attempt_at
  %rest = getelementptr ptr, ptr %words, i64 2
  call void @numbers(ptr %rest, i64 %x, i64 %y, i64 %z, ptr %stream)
  %advice = call ptr @ask(ptr %record, i64 $failed, ptr %words, i64 6)
  %hopeless = icmp eq ptr %advice, null
  br i1 %hopeless, label %raise, label %retry
retry:
  call void @Py_DecRef(ptr %advice)
  br label %go
bad_grid:
  call void @PyErr_Clear()
  call void @Py_IncRef(ptr %x_object)
  call void @Py_IncRef(ptr %y_object)
  call void @Py_IncRef(ptr %z_object)
  call void @llvm.memcpy.p0.p0.i64(ptr %words, ptr %args, i64 24, i1 false)
  %never = call ptr @ask(ptr %record, i64 $regrid, ptr %words, i64 3)
  br label %raise
nothing:
  %none_at = getelementptr i8, ptr %record, i64 $none
  %none = load ptr, ptr %none_at
  call void @Py_IncRef(ptr %none)
  ret ptr %none
raise:
  ret ptr null
}

; four new Python integers
define internal void @numbers(ptr %words, i64 %x, i64 %y, i64 %z, ptr %stream) nounwind {
  %x_object = call ptr @PyLong_FromLongLong(i64 %x)
  %y_object = call ptr @PyLong_FromLongLong(i64 %y)
  %z_object = call ptr @PyLong_FromLongLong(i64 %z)
  %address = ptrtoint ptr %stream to i64
  %stream_object = call ptr @PyLong_FromUnsignedLongLong(i64 %address)
  %second = getelementptr ptr, ptr %words, i64 1
  %third = getelementptr ptr, ptr %words, i64 2
  %fourth = getelementptr ptr, ptr %words, i64 3
  store ptr %x_object, ptr %words
  store ptr %y_object, ptr %second
  store ptr %z_object, ptr %third
  store ptr %stream_object, ptr %fourth
  ret void
}
"""
