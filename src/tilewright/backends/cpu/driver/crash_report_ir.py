"""What is told of a crash: which kernel, on which programs, with which arguments.

A handler of SIGSEGV, SIGBUS, SIGILL and SIGFPE looks whether its thread is running a kernel of
this pool (`run` notes that), writes the report to stderr, puts back the handler that was there
before, and returns: the faulting instruction runs again and the process dies as it would have
without it, with faulthandler's traceback where that is on. A fault elsewhere reports nothing.

The report is written by `dprintf`. POSIX does not list it as safe in handlers; but the thread is in
a kernel, which never holds a lock of the C library, and dies anyway.

A kernel is launched by its record (`KernelRecord`), 8 bytes a field:

    code        its function
    title       "kernel 'add' (program.py:12)", as a C string
    count       of parameters
    names       address of a C string for each
    kinds       a byte for each: struct's codes, as in the launcher, P for a pointer

Templates of LLVM IR; `pool_ir` fills in the $names.
"""

import ctypes
import signal
import sys
from collections.abc import Sequence

__all__ = ["CRASH", "KernelRecord", "crash_constants", "kernel_record"]

ADVICE = (
    "An access outside the arrays is the usual cause. TILEWRIGHT_INTERPRET=1 runs kernels in the "
    "interpreter,\\nwhich checks the bounds of every access and names the line."
)


class KernelRecord(ctypes.Structure):
    """The fields above; keep it, and what it points to, as long as the kernel may run."""

    _fields_ = (
        ("code", ctypes.c_void_p),
        ("title", ctypes.c_char_p),
        ("count", ctypes.c_int64),
        ("names", ctypes.POINTER(ctypes.c_char_p)),
        ("kinds", ctypes.c_char_p),
    )


def kernel_record(
    code: int, title: str, names: Sequence[str] = (), kinds: Sequence[str] = ()
) -> KernelRecord:
    """The record of a kernel at address `code`; ctypes keeps what it points to."""
    texts = (ctypes.c_char_p * len(names))(*(name.encode() for name in names))
    pointer = ctypes.cast(texts, ctypes.POINTER(ctypes.c_char_p))
    return KernelRecord(code, title.encode(), len(names), pointer, "".join(kinds).encode())


# Layout of `struct sigaction` and of what `siginfo_t` says: <bits/sigaction.h> of glibc and musl,
# <sys/signal.h> of macOS.
_LINUX = {
    "action_bytes": 152, "action_flags": 136, "flags": 0x04 | 0x08000000 | 0x40000000,
    "info_address": 16,
}  # fmt: skip
_MACOS = {"action_bytes": 16, "action_flags": 12, "flags": 0x40 | 0x1 | 0x10, "info_address": 24}
"""SA_SIGINFO, SA_ONSTACK (where the thread has an alternate stack) and SA_NODEFER."""

FAULTS = {
    "SIGSEGV": "an access to memory that is not there",
    "SIGBUS": "an access to memory that is not there",
    "SIGILL": "an instruction that this CPU does not have",
    "SIGFPE": "an integer division by zero, or one whose quotient is out of range",
}


def crash_constants() -> dict[str, str]:
    """What fills in the templates: numbers of this platform, and the texts as LLVM constants."""
    layout = _MACOS if sys.platform == "darwin" else _LINUX
    numbers = {name: int(getattr(signal, name)) for name in FAULTS if hasattr(signal, name)}
    texts = [f"{name}: {FAULTS[name]}" for name in numbers]
    constants = [_constant(f"fault{i}", text) for i, text in enumerate(texts)]
    constants += [
        _constant("crash_title", "\ntilewright: %s in %s\n  at address %p\n"),
        _constant(
            "crash_programs", "  programs %lld to %lld (x fastest) of the grid (%d, %d, %d)\n"
        ),
        _constant("crash_int", "  %s = %lld\n"),
        _constant("crash_pointer", "  %s = %#llx\n"),
        _constant("crash_float", "  %s = %g\n"),
        _constant("crash_bits", "  %s = %#llx (bits of a half)\n"),
        _constant("crash_advice", ADVICE.replace("\\n", "\n") + "\n\n"),
    ]
    cases = " ".join(f"i32 {number}, label %text{i}" for i, number in enumerate(numbers.values()))
    return {
        **{f"crash_{name}": str(value) for name, value in layout.items()},
        "crash_linger_microseconds": "200000",
        "crash_texts": "\n".join(constants),
        "crash_cases": cases,
        "crash_labels": "\n".join(f"text{i}:\n  br label %told" for i in range(len(numbers))),
        "crash_phi": ", ".join(f"[ @fault{i}, %text{i} ]" for i in range(len(numbers))),
        "crash_install": "\n".join(
            f"  call i32 @sigaction(i32 {number}, ptr %action, ptr "
            f"getelementptr (i8, ptr @previous, i64 {layout['action_bytes'] * number}))"
            for number in numbers.values()
        ),
        "crash_previous_bytes": str(layout["action_bytes"] * (max(numbers.values()) + 1)),
    }


def _constant(name: str, text: str) -> str:
    """A C string as a constant of the module."""
    data = text.encode() + b"\0"
    escaped = "".join(f"\\{byte:02x}" for byte in data)
    return f'@{name} = internal constant [{len(data)} x i8] c"{escaped}"'


CRASH = """
$crash_texts
@previous = internal global [$crash_previous_bytes x i8] zeroinitializer, align 16
@reporter = internal global i64 0

declare i32 @sigaction(i32, ptr, ptr)
declare i32 @dprintf(i32, ptr, ...)

define void @tw_report_crashes() nounwind {
  %action = alloca [$crash_action_bytes x i8], align 16
  call void @llvm.memset.p0.i64(ptr %action, i8 0, i64 $crash_action_bytes, i1 false)
  store ptr @crashed, ptr %action, align 8
  %flags = getelementptr i8, ptr %action, i64 $crash_action_flags
  store i32 $crash_flags, ptr %flags, align 4
$crash_install
  ret void
}

; The handler. Looks for the slot of this thread: that of a kernel under way.
define internal void @crashed(i32 %signal, ptr %info, ptr %context) nounwind {
entry:
  %self = call i64 @pthread_self()
  %threads = load i32, ptr $threads, align 4
  %threads.wide = zext i32 %threads to i64
  br label %next
next:
  %slot = phi i64 [ 0, %entry ], [ %slot.next, %other ]
  %more = icmp ult i64 %slot, %threads.wide
  br i1 %more, label %look, label %restore
look:
  %at = mul i64 %slot, $line
  %record = getelementptr i8, ptr $slots, i64 %at
  %thread = load volatile i64, ptr %record, align 8
  %kernel.at = getelementptr i8, ptr %record, i64 $slot_kernel
  %kernel = load volatile ptr, ptr %kernel.at, align 8
  %mine = icmp eq i64 %thread, %self
  %busy = icmp ne ptr %kernel, null
  %here = and i1 %mine, %busy
  br i1 %here, label %first, label %other
first: ; several threads may crash at once: one reports, the others wait until it has, and all die
  %claim = cmpxchg ptr @reporter, i64 0, i64 %self seq_cst seq_cst, align 8
  %is.first = extractvalue { i64, i1 } %claim, 1
  br i1 %is.first, label %tell, label %late
late:
  %holder = extractvalue { i64, i1 } %claim, 0
  %again = icmp eq i64 %holder, %self
  br i1 %again, label %restore, label %wait
wait:
  call i32 @usleep(i32 1000)
  br label %wait
other:
  %slot.next = add i64 %slot, 1
  br label %next
tell:
  %address.at = getelementptr i8, ptr %info, i64 $crash_info_address
  %address = load ptr, ptr %address.at, align 8
  %text = call ptr @fault_text(i32 %signal)
  %title.at = getelementptr i8, ptr %kernel, i64 8
  %title = load ptr, ptr %title.at, align 8
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash_title, ptr %text, ptr %title, ptr %address)
  call void @tell_programs(ptr %record)
  call void @tell_arguments(ptr %record, ptr %kernel)
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash_advice)
  ; A thread that crashed at the same time may be in faulthandler, which is to end its traceback.
  call i32 @usleep(i32 $crash_linger_microseconds)
  br label %restore
restore:
  %offset = mul i32 %signal, $crash_action_bytes
  %offset.wide = zext i32 %offset to i64
  %before = getelementptr i8, ptr @previous, i64 %offset.wide
  call i32 @sigaction(i32 %signal, ptr %before, ptr null)
  ret void
}

define internal ptr @fault_text(i32 %signal) nounwind {
entry:
  switch i32 %signal, label %text0 [ $crash_cases ]
$crash_labels
told:
  %text = phi ptr $crash_phi
  ret ptr %text
}

define internal void @tell_programs(ptr %record) nounwind {
  %begin.at = getelementptr i8, ptr %record, i64 $slot_begin
  %begin = load volatile i64, ptr %begin.at, align 8
  %end.at = getelementptr i8, ptr %record, i64 $slot_end
  %end = load volatile i64, ptr %end.at, align 8
  %last = sub i64 %end, 1
  %x = load i32, ptr $grid, align 4
  %y = load i32, ptr getelementptr (i8, ptr $grid, i64 4), align 4
  %z = load i32, ptr getelementptr (i8, ptr $grid, i64 8), align 4
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash_programs, i64 %begin, i64 %last,
    i32 %x, i32 %y, i32 %z)
  ret void
}

; One line for each parameter; its slot is read as wide as its type is.
define internal void @tell_arguments(ptr %record, ptr %kernel) nounwind {
entry:
  %args.at = getelementptr i8, ptr %record, i64 $slot_args
  %args = load volatile ptr, ptr %args.at, align 8
  %count.at = getelementptr i8, ptr %kernel, i64 16
  %count = load i64, ptr %count.at, align 8
  %names.at = getelementptr i8, ptr %kernel, i64 24
  %names = load ptr, ptr %names.at, align 8
  %kinds.at = getelementptr i8, ptr %kernel, i64 32
  %kinds = load ptr, ptr %kinds.at, align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %again ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %read, label %exit
read:
  %name.at = getelementptr ptr, ptr %names, i64 %i
  %name = load ptr, ptr %name.at, align 8
  %kind.at = getelementptr i8, ptr %kinds, i64 %i
  %kind = load i8, ptr %kind.at
  %value.at = getelementptr i64, ptr %args, i64 %i
  %bits = load i64, ptr %value.at, align 8
  switch i8 %kind, label %pointer [ i8 98, label %b i8 104, label %h i8 105, label %i32
    i8 113, label %q i8 63, label %ub i8 66, label %ub i8 72, label %uh i8 73, label %ui
    i8 102, label %f i8 100, label %d i8 101, label %e ]
b:
  %b8 = trunc i64 %bits to i8
  %b64 = sext i8 %b8 to i64
  br label %integer
h:
  %h16 = trunc i64 %bits to i16
  %h64 = sext i16 %h16 to i64
  br label %integer
i32:
  %w32 = trunc i64 %bits to i32
  %w64 = sext i32 %w32 to i64
  br label %integer
q:
  br label %integer
ub:
  %ub64 = and i64 %bits, 255
  br label %integer
uh:
  %uh64 = and i64 %bits, 65535
  br label %integer
ui:
  %ui64 = and i64 %bits, 4294967295
  br label %integer
integer:
  %value = phi i64 [ %b64, %b ], [ %h64, %h ], [ %w64, %i32 ], [ %bits, %q ], [ %ub64, %ub ],
    [ %uh64, %uh ], [ %ui64, %ui ]
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash_int, ptr %name, i64 %value)
  br label %again
f:
  %f32bits = trunc i64 %bits to i32
  %f32 = bitcast i32 %f32bits to float
  %f64 = fpext float %f32 to double
  br label %float
d:
  %d64 = bitcast i64 %bits to double
  br label %float
float:
  %number = phi double [ %f64, %f ], [ %d64, %d ]
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash_float, ptr %name, double %number)
  br label %again
e:
  %half = and i64 %bits, 65535
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash_bits, ptr %name, i64 %half)
  br label %again
pointer:
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash_pointer, ptr %name, i64 %bits)
  br label %again
again:
  %i.next = add i64 %i, 1
  br label %next
exit:
  ret void
}
"""
