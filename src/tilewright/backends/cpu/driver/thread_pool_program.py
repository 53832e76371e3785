"""The thread pool's machine code: its protocol, its structures and its files.

One launch at a time owns the pool. Its grid is cut into chunks of consecutive programs, about
eight for each thread, and the chunks into as many consecutive ranges as there are threads. A thread
works through its own range first and then helps with the others: thread k gets the same part of
the arrays in each launch, so what it left in its caches is found again (on processors with
several last-level caches twice as fast as handing out chunks in order).

What is left of a range is a 64-bit *ticket*, (launch number << 32) | chunks not yet taken; a thread
takes a chunk by a compare-and-swap that lowers the ticket by one. That the swap succeeded proves
that the fields of the job which the thread read before it belong to the same launch: they are
overwritten only when all tickets hold no chunks and every taken one is done.

    caller   lock; write job; done = 0; write tickets; raise launch number; wake sleepers;
             work; wait for done; unlock
    worker   loop { work; spin until the launch number changes, in the end sleep on `wake` }
    work     for each range, the thread's own first: while chunks are left: take one, run the
             kernel on it, done += 1; who finishes the last wakes the caller if it sleeps

No wake-up is lost, because each side first writes (launch number / number of sleepers) and then
reads what the other wrote, all in one total order; and sleepers re-check while they hold the mutex.
The caller takes chunks too, so a launch ends even if no worker ever runs.

The C files describe their parts at their heads, and the exported functions in `thread_pool.c`.
"""

import ctypes
import signal
import sys
from pathlib import Path

from tilewright.backends.cpu.driver.kernel_record import KernelRecord, LaunchRecord
from tilewright.native import NativeProgram, constant
from tilewright.support import operating_system

# Fixes the length of the tables of tickets and slots below.
MAX_THREADS = 1024
# More chunks level out uneven threads better, fewer cost fewer compare-and-swaps.
CHUNKS_PER_THREAD = 8
_LINES_BYTES = 128
"""Bytes of two cache lines: processors fetch lines in pairs."""

LATEST_KERNELS = 4
"""How many kernels the report of a later crash names."""
NO_MEMORY, RAISED, NESTED, WAITED = 1, 2, 3, 4
"""Statuses of a launch other than 0, which is success."""

_SYMBOLS = (
    "tw_launch", "tw_launch_packed", "tw_start", "tw_configure", "tw_stop", "tw_reset", "tw_pause",
    "tw_workers", "tw_raised", "tw_report_crashes", "tw_limit_waits", "tw_waited",
)  # fmt: skip
_PAUSE = "define internal void @pause_once() alwaysinline nounwind {{\n{}  ret void\n}}"
_PAUSES = {
    "x86_64": "declare void @llvm.x86.sse2.pause()\n"
    + _PAUSE.format("  call void @llvm.x86.sse2.pause()\n"),
    "aarch64": "declare void @llvm.aarch64.hint(i32)\n"
    + _PAUSE.format("  call void @llvm.aarch64.hint(i32 1)\n"),  # yield
}
"""Instructions for loops that wait; other processors have none."""

_NO_PLACEMENT = {
    name: f"define internal i32 @{name}({parameters}) nounwind {{\n  ret i32 -1\n}}"
    for name, parameters in (
        ("sched_getcpu", ""),
        ("pthread_getaffinity_np", "i64, i64, ptr"),
        ("pthread_setaffinity_np", "i64, i64, ptr"),
    )
}
"""Functions that fail, where the system does not place threads."""

_MACOS = operating_system.IS_MACOS
_OPEN = ("SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS", "SIGPROF")
"""Faults of a kernel must still reach the thread that caused them, and samples of a profiler the
thread that runs; all other signals belong to Python's main thread."""


class Ticket(ctypes.Structure):
    """The chunks of a range that are not taken yet."""

    _fields_ = (("left", ctypes.c_uint64), ("padding", ctypes.c_char * (_LINES_BYTES - 8)))


class ThreadSlot(ctypes.Structure):
    """The work of a thread; `kernel` is null while it runs none."""

    _fields_ = (
        ("thread", ctypes.c_uint64),  # pthread_self()
        ("kernel", ctypes.c_void_p),  # KernelRecord
        ("args", ctypes.c_void_p),
        ("begin", ctypes.c_int64),  # programs
        ("end", ctypes.c_int64),
        ("padding", ctypes.c_char * (_LINES_BYTES - 40)),
    )


class RaisedError(ctypes.Structure):
    """The exception that the handler of a signal has raised, as PyErr_Fetch gives it."""

    _fields_ = (
        ("type", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("traceback", ctypes.c_void_p),
    )


class LatestKernels(ctypes.Structure):
    """The kernels that were launched last, by all pools of the process."""

    _fields_ = (
        ("count", ctypes.c_uint64),  # of launches that differ from the one before
        ("titles", ctypes.c_void_p * LATEST_KERNELS),  # of the kernel with number n at n % kept
        ("reported", ctypes.c_uint64),  # whether a report has named them
    )


_SIGNALS = {
    # The defaults serve Windows only, where no native pool is made.
    "sig_setmask": (int(getattr(signal, "SIG_SETMASK", 2)), 32),
    "sigbus": (int(getattr(signal, "SIGBUS", 7)), 32),
    # SA_SIGINFO, SA_ONSTACK (where the thread has an alternate stack) and SA_NODEFER
    "sigaction_flags": (0x40 | 0x1 | 0x10 if _MACOS else 0x04 | 0x08000000 | 0x40000000, 32),
    # of sa_flags in struct sigaction, which follows the handler and a sigset_t, and of si_addr in
    # siginfo_t: <bits/sigaction.h> of glibc and musl, <sys/signal.h> of macOS
    "sigaction_flags_at": (12 if _MACOS else 136, 64),
    "fault_address_at": (24 if _MACOS else 16, 64),
}
"""Numbers of the system, and their bits."""


def pool_program(arch: str, is_linux: bool = operating_system.IS_LINUX) -> NativeProgram:
    """The pool's program for `arch`, the first part of a target triple."""
    return NativeProgram(
        source=Path(__file__).with_name("thread_pool.c"),
        exports=_SYMBOLS,
        structures=[
            KernelRecord,
            LaunchRecord,
            Ticket,
            ThreadSlot,
            RaisedError,
            LatestKernels,
        ],
        constants={
            "LINES_BYTES": _LINES_BYTES,
            "MAX_THREADS": MAX_THREADS,
            "CHUNKS_PER_THREAD": CHUNKS_PER_THREAD,
            "LATEST_KERNELS": LATEST_KERNELS,
            "STATUS_DONE": 0,
            "STATUS_NO_MEMORY": NO_MEMORY,
            "STATUS_RAISED": RAISED,
            "STATUS_NESTED": NESTED,
            "STATUS_WAITED": WAITED,
        },
        definitions={
            "pause_once": _PAUSES.get(arch.replace("arm64", "aarch64"), _PAUSE.format("")),
            "blocked_signals": f"@blocked_signals = internal constant [128 x i8] "
            f"[{_blocked_signals()}], align 16",
            **{name: constant(name, *number) for name, number in _SIGNALS.items()},
            **({} if is_linux else _NO_PLACEMENT),
        },
    )


def _blocked_signals() -> str:
    """A sigset_t with every signal but those of `_OPEN`, as the elements of an LLVM array."""
    # glibc and musl have 1024 bits; macOS reads the first 32.
    bits = (1 << 1024) - 1
    for name in _OPEN:
        number = getattr(signal, name, None)
        if number is not None:
            # Signals count from 1, bits from 0.
            bits &= ~(1 << (int(number) - 1))
    return ", ".join(f"i8 {byte}" for byte in bits.to_bytes(128, sys.byteorder))
