"""The thread pool's machine code, as LLVM IR text.

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

`pool_interrupt_ir` says how a launch notices signals, `pool_crash_ir` what is told of a crash.
"""

import signal
import sys
from string import Template

from tilewright.backends.cpu.driver.crash_report_ir import CRASH, crash_constants
from tilewright.backends.cpu.driver.interrupt_ir import INTERRUPT
from tilewright.backends.cpu.driver.worker_ir import RUN, WORK, WORKER

__all__ = ["MAX_THREADS", "POOL_SYMBOLS", "pool_ir"]

MAX_THREADS = 1024
_LINE_BYTES = 128

POOL_SYMBOLS = (
    "tw_launch", "tw_configure", "tw_stop", "tw_reset", "tw_pause", "tw_workers", "tw_raised",
    "tw_report_crashes",
)  # fmt: skip

# Offsets in bytes into the pool's state. What different threads write lies 128 bytes apart: two
# lines of 64, because processors fetch lines in pairs. 128 bytes are enough for a pthread mutex
# or condition on every platform (at most 64).
_FIELDS = {
    "kernel": 0,  # the job: written by the caller before the tickets
    "args": 8,
    "total": 16,  # programs
    "chunk": 24,  # programs in a chunk
    "chunks": 32,
    "range": 40,  # chunks in a range
    "ranges": 48,  # ranges that are not empty, at most as many as threads
    "scratch": 56,
    "stride": 64,  # bytes of scratch from one thread's to the next
    "grid": 72,  # three i32
    "launch": 128,  # number of the last launch
    "done": 256,  # chunks
    "sleepers": 384,
    "waiting": 388,  # whether the caller sleeps
    "stopping": 392,
    "alive": 396,  # workers that have not left their loop
    "started": 400,
    "threads": 404,  # including the caller
    "spin": 408,  # pauses before a thread sleeps
    "launching": 512,  # mutex: one launch at a time
    "mutex": 640,  # guards the sleepers' conditions
    "wake": 768,
    "finished": 896,
    "poll": 1024,  # kernels return after the program that they are in
    "dropped": 1028,  # a signal's handler has raised: programs that are not begun are not run
    "active": 1152,  # whether a launch is under way
    "ticking": 1156,
    "watched": 1160,  # number of launches that the ticker could have seen
    "raised": 1168,  # what the handler has raised: type, value and traceback
    "raised_value": 1176,
    "raised_trace": 1184,
    "tick": 1280,  # the ticker sleeps on it
    "tickets": 1408,
    "slots": 1408 + MAX_THREADS * _LINE_BYTES,  # for each thread, what it runs (see `_SLOT`)
}
_STATE_BYTES = _FIELDS["slots"] + MAX_THREADS * _LINE_BYTES

# Offsets into the record of a thread. `kernel` is null while it runs none.
_SLOT = {"slot_thread": 0, "slot_kernel": 8, "slot_args": 16, "slot_begin": 24, "slot_end": 32}

_TICK_MICROSECONDS = 50_000
_QUIET_TICKS = 40

# Faults of a kernel must still reach the thread that caused them; all other signals belong to
# Python's main thread.
_FAULTS = ("SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS")

_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_PAUSES["arm64"] = _PAUSES["aarch64"]


def pool_ir(arch: str) -> str:
    """The pool's module for `arch`, the first part of a target triple.

    Each time the module is loaded it is a pool of its own. Exports (C signatures):

    int  tw_launch(kernel *, void *args, int x, int y, int z, int64 scratch_bytes)
         runs the grid; 0, 1 when there is no memory for the scratch areas, or 2 when the handler
         of a signal has raised, so that programs were left out, or 3 when such a handler calls
         it; kernel: a `KernelRecord`
    void tw_raised(PyObject *[3])  after a 2: what was raised; the references are the caller's
    void tw_report_crashes(void)   says on stderr in which kernel a fault has occurred
    void tw_configure(int threads, int spin)   before the first launch or after tw_stop
    void tw_stop(void)      ends the workers; a later launch starts them again
    void tw_reset(void)     after fork, in the child: there are no workers
    void tw_pause(int64 n)  spins n pauses, to measure how long one takes
    int  tw_workers(void)   how many workers are alive
    """
    declare, pause = _PAUSES.get(arch, ("", ""))
    names = {name: f"getelementptr (i8, ptr @pool, i64 {at})" for name, at in _FIELDS.items()}
    names |= {
        "state_bytes": str(_STATE_BYTES),
        "line": str(_LINE_BYTES),
        "pause": pause,
        "blocked": _blocked_signals(),
        "set_mask": str(int(getattr(signal, "SIG_SETMASK", 2))),
        "tick_microseconds": str(_TICK_MICROSECONDS),
        "quiet_ticks": str(_QUIET_TICKS),
        **{name: str(at) for name, at in _SLOT.items()},
        **crash_constants(),
    }
    parts = (_DECLARATIONS, declare, RUN, WORK, WORKER, INTERRUPT, CRASH, _LAUNCH, _CONTROL)
    return Template("".join(parts)).substitute(names)


def _blocked_signals() -> str:
    """A sigset_t with every signal but the faults, as an LLVM array of 128 bytes."""
    bits = (1 << 1024) - 1
    for name in _FAULTS:
        number = getattr(signal, name, None)
        if number is not None:
            bits &= ~(1 << (int(number) - 1))
    return ", ".join(f"i8 {byte}" for byte in bits.to_bytes(128, sys.byteorder))


_DECLARATIONS = """
@pool = internal global [$state_bytes x i8] zeroinitializer, align 128
@blocked = internal constant [128 x i8] [$blocked], align 16

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i64 @pthread_self()
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare i32 @sched_yield()
declare void @free(ptr)
"""

_LAUNCH = """
define i32 @tw_launch(ptr %kernel, ptr %args, i32 %x, i32 %y, i32 %z, i64 %bytes) nounwind {
entry:
  ; A handler that runs while this thread's own launch looks for signals cannot launch another.
  ; A launch of another thread wrote its owner before it became active; read the other way round,
  ; it could seem to be this thread's, which was the owner until then.
  %busy = load atomic i32, ptr $active seq_cst, align 4
  %launches = icmp ne i32 %busy, 0
  %owner = load volatile i64, ptr $slots, align 8
  %self = call i64 @pthread_self()
  %own = icmp eq i64 %owner, %self
  %nested = and i1 %own, %launches
  br i1 %nested, label %refuse, label %lock
refuse:
  ret i32 3
lock:
  call i32 @pthread_mutex_lock(ptr $launching)
  %x.wide = sext i32 %x to i64
  %y.wide = sext i32 %y to i64
  %z.wide = sext i32 %z to i64
  %xy = mul i64 %x.wide, %y.wide
  %total = mul i64 %xy, %z.wide
  %empty = icmp sle i64 %total, 0
  br i1 %empty, label %exit, label %fit
fit:
  %fits = call i1 @reserve(i64 %bytes)
  br i1 %fits, label %describe, label %exit
describe:
  call void @own(i64 0)
  store atomic i32 %x, ptr $grid monotonic, align 8
  store atomic i32 %y, ptr getelementptr (i8, ptr $grid, i64 4) monotonic, align 4
  store atomic i32 %z, ptr getelementptr (i8, ptr $grid, i64 8) monotonic, align 8
  %threads = load i32, ptr $threads, align 4
  %alone = icmp sle i32 %threads, 1
  %small = icmp eq i64 %total, 1
  br i1 %small, label %run.one, label %watch
run.one:
  %area.one = load ptr, ptr $scratch, align 8
  call i64 @run(ptr %kernel, ptr %args, i64 0, i64 1, i64 0, ptr %area.one)
  br label %exit
watch:
  call void @begin_watch()
  br i1 %alone, label %run.inline, label %run.parallel
run.inline:
  %at = phi i64 [ 0, %watch ], [ %reached, %look ]
  %area = load ptr, ptr $scratch, align 8
  %reached = call i64 @run(ptr %kernel, ptr %args, i64 %at, i64 %total, i64 0, ptr %area)
  %complete = icmp sge i64 %reached, %total
  br i1 %complete, label %end, label %look
look:
  call void @look_for_signals()
  %dropped = load atomic i32, ptr $dropped monotonic, align 4
  %goes.on = icmp eq i32 %dropped, 0
  br i1 %goes.on, label %run.inline, label %end
run.parallel:
  %started = load i32, ptr $started, align 4
  %is.started = icmp ne i32 %started, 0
  br i1 %is.started, label %publish, label %start
start:
  call void @start()
  br label %publish
publish:
  %threads.wide = zext i32 %threads to i64
  %wanted = mul i64 %threads.wide, 8
  %even = udiv i64 %total, %wanted
  %chunk = call i64 @llvm.umax.i64(i64 %even, i64 1)
  %chunks = call i64 @divide_up(i64 %total, i64 %chunk)
  %range = call i64 @divide_up(i64 %chunks, i64 %threads.wide)
  %ranges = call i64 @divide_up(i64 %chunks, i64 %range)
  store atomic ptr %kernel, ptr $kernel monotonic, align 8
  store atomic ptr %args, ptr $args monotonic, align 8
  store atomic i64 %total, ptr $total monotonic, align 8
  store atomic i64 %chunk, ptr $chunk monotonic, align 8
  store atomic i64 %chunks, ptr $chunks monotonic, align 8
  store atomic i64 %range, ptr $range monotonic, align 8
  store atomic i64 %ranges, ptr $ranges monotonic, align 8
  store atomic i64 0, ptr $done monotonic, align 8
  call void @write_tickets(i64 %chunks, i64 %range)
  call void @wake_sleepers(i64 %chunks)
  call void @work(i64 0)
  call void @wait_until_done(i64 %chunks)
  br label %end
end:
  %interrupted = call i32 @end_watch()
  br label %exit
exit:
  %status = phi i32 [ 0, %lock ], [ 1, %fit ], [ 0, %run.one ], [ %interrupted, %end ]
  call i32 @pthread_mutex_unlock(ptr $launching)
  ret i32 %status
}

define internal i64 @divide_up(i64 %a, i64 %b) nounwind {
  %padded = add i64 %a, %b
  %less = sub i64 %padded, 1
  %result = udiv i64 %less, %b
  ret i64 %result
}

; Hands out all chunks under a new launch number.
define internal void @write_tickets(i64 %chunks, i64 %range) nounwind {
entry:
  %launch.old = load atomic i64, ptr $launch monotonic, align 8
  %launch = add i64 %launch.old, 1
  %launch.high = shl i64 %launch, 32
  br label %next
next:
  %left = phi i64 [ %chunks, %entry ], [ %left.next, %write ]
  %pointer = phi ptr [ $tickets, %entry ], [ %pointer.next, %write ]
  %over = icmp eq i64 %left, 0
  br i1 %over, label %exit, label %write
write:
  %count = call i64 @llvm.umin.i64(i64 %left, i64 %range)
  %ticket = or i64 %launch.high, %count
  store atomic i64 %ticket, ptr %pointer release, align 8
  %left.next = sub i64 %left, %count
  %pointer.next = getelementptr i8, ptr %pointer, i64 $line
  br label %next
exit:
  store atomic i64 %launch, ptr $launch seq_cst, align 8
  ret void
}

; As many as there are chunks besides the caller's first.
define internal void @wake_sleepers(i64 %chunks) nounwind {
entry:
  %sleepers = load atomic i32, ptr $sleepers seq_cst, align 4
  %all.awake = icmp eq i32 %sleepers, 0
  br i1 %all.awake, label %exit, label %pass
pass:
  call i32 @pthread_mutex_lock(ptr $mutex)
  call i32 @pthread_mutex_unlock(ptr $mutex)
  %others = sub i64 %chunks, 1
  %sleepers.wide = zext i32 %sleepers to i64
  %few = icmp ult i64 %others, %sleepers.wide
  br i1 %few, label %some, label %all
all:
  call i32 @pthread_cond_broadcast(ptr $wake)
  ret void
some:
  %n = phi i64 [ %others, %pass ], [ %n.next, %some.next ]
  %finished = icmp eq i64 %n, 0
  br i1 %finished, label %exit, label %some.next
some.next:
  call i32 @pthread_cond_signal(ptr $wake)
  %n.next = sub i64 %n, 1
  br label %some
exit:
  ret void
}

; Spins, then sleeps, until every chunk is done.
define internal void @wait_until_done(i64 %chunks) nounwind {
entry:
  %pauses = load i32, ptr $spin, align 4
  br label %spin
spin:
  %n = phi i32 [ 0, %entry ], [ %n.next, %spin.again ]
  %done = load atomic i64, ptr $done acquire, align 8
  %complete = icmp eq i64 %done, %chunks
  br i1 %complete, label %exit, label %spin.check
spin.check:
  %enough = icmp sge i32 %n, %pauses
  br i1 %enough, label %sleep, label %spin.again
spin.again:
  call void @spin_once(i32 %n)
  %n.next = add i32 %n, 1
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr $mutex)
  store atomic i32 1, ptr $waiting seq_cst, align 4
  br label %asleep
asleep:
  %done.now = load atomic i64, ptr $done seq_cst, align 8
  %over = icmp eq i64 %done.now, %chunks
  br i1 %over, label %awake, label %wait
wait:
  %poll = load atomic i32, ptr $poll seq_cst, align 4
  %dropped = load atomic i32, ptr $dropped monotonic, align 4
  %looks = icmp ugt i32 %poll, %dropped
  br i1 %looks, label %look, label %doze
look: ; not under the mutex: handlers of signals may launch kernels of another pool
  call i32 @pthread_mutex_unlock(ptr $mutex)
  call void @look_for_signals()
  call i32 @pthread_mutex_lock(ptr $mutex)
  br label %asleep
doze:
  call i32 @pthread_cond_wait(ptr $finished, ptr $mutex)
  br label %asleep
awake:
  store atomic i32 0, ptr $waiting seq_cst, align 4
  call i32 @pthread_mutex_unlock(ptr $mutex)
  br label %exit
exit:
  ret void
}

; Makes each thread's scratch area at least %bytes large. No launch is under way, so no thread
; uses the old ones. Pages are touched first by the thread that owns them.
define internal i1 @reserve(i64 %bytes) nounwind {
entry:
  %pointer = alloca ptr
  %stride = load i64, ptr $stride, align 8
  %fits = icmp ule i64 %bytes, %stride
  br i1 %fits, label %good, label %check
check: ; beyond 1 TiB the sums below could overflow
  %absurd = icmp ugt i64 %bytes, 1099511627776
  br i1 %absurd, label %bad, label %grow
grow:
  %old = load ptr, ptr $scratch, align 8
  call void @free(ptr %old)
  store atomic ptr null, ptr $scratch monotonic, align 8
  store atomic i64 0, ptr $stride monotonic, align 8
  %bytes.up = add i64 %bytes, 65535
  %rounded = and i64 %bytes.up, -65536
  %threads = load i32, ptr $threads, align 4
  %threads.wide = zext i32 %threads to i64
  %all = mul i64 %rounded, %threads.wide
  %refused = call i32 @posix_memalign(ptr %pointer, i64 4096, i64 %all)
  %failed = icmp ne i32 %refused, 0
  br i1 %failed, label %bad, label %keep
keep:
  %new = load ptr, ptr %pointer
  store atomic ptr %new, ptr $scratch monotonic, align 8
  store atomic i64 %rounded, ptr $stride monotonic, align 8
  br label %good
good:
  ret i1 true
bad:
  ret i1 false
}

declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
"""

_CONTROL = """
define void @tw_configure(i32 %threads, i32 %spin) nounwind {
  call void @initialise()
  %areas = load ptr, ptr $scratch, align 8
  call void @free(ptr %areas)
  store ptr null, ptr $scratch, align 8
  store i64 0, ptr $stride, align 8
  store i32 %threads, ptr $threads, align 4
  store i32 %spin, ptr $spin, align 4
  ret void
}

define void @tw_stop() nounwind {
entry:
  call i32 @pthread_mutex_lock(ptr $launching)
  store atomic i32 1, ptr $stopping seq_cst, align 4
  atomicrmw add ptr $launch, i64 1 seq_cst, align 8
  br label %wake
wake:
  call i32 @pthread_mutex_lock(ptr $mutex)
  call i32 @pthread_mutex_unlock(ptr $mutex)
  call i32 @pthread_cond_broadcast(ptr $wake)
  call i32 @sched_yield()
  %alive = load atomic i32, ptr $alive seq_cst, align 4
  %ended = icmp eq i32 %alive, 0
  br i1 %ended, label %exit, label %wake
exit:
  store atomic i32 0, ptr $stopping seq_cst, align 4
  store i32 0, ptr $started, align 4
  call i32 @pthread_mutex_unlock(ptr $launching)
  ret void
}

; The parent may have been about to replace the scratch areas, so they are given up, not freed.
define void @tw_reset() nounwind {
  call void @initialise()
  store ptr null, ptr $scratch, align 8
  store i64 0, ptr $stride, align 8
  ret void
}

; Everything but the configuration and the scratch areas.
define internal void @initialise() nounwind {
  store i64 0, ptr $ranges, align 8
  store i32 0, ptr $sleepers, align 4
  store i32 0, ptr $waiting, align 4
  store i32 0, ptr $stopping, align 4
  store i32 0, ptr $alive, align 4
  store i32 0, ptr $started, align 4
  store i32 0, ptr $poll, align 4
  store i32 0, ptr $active, align 4
  store i32 0, ptr $ticking, align 4
  call i32 @pthread_cond_init(ptr $tick, ptr null)
  call i32 @pthread_mutex_init(ptr $launching, ptr null)
  call i32 @pthread_mutex_init(ptr $mutex, ptr null)
  call i32 @pthread_cond_init(ptr $wake, ptr null)
  call i32 @pthread_cond_init(ptr $finished, ptr null)
  ret void
}

define void @tw_pause(i64 %count) nounwind {
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %n.next, %again ]
  %enough = icmp sge i64 %n, %count
  br i1 %enough, label %exit, label %again
again:
  %ignored = load atomic i64, ptr $launch acquire, align 8
  $pause
  %n.next = add i64 %n, 1
  br label %loop
exit:
  ret void
}

define void @tw_raised(ptr %into) nounwind {
  call void @llvm.memcpy.p0.p0.i64(ptr %into, ptr $raised, i64 24, i1 false)
  call void @llvm.memset.p0.i64(ptr $raised, i8 0, i64 24, i1 false)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define i32 @tw_workers() nounwind {
  %alive = load atomic i32, ptr $alive seq_cst, align 4
  ret i32 %alive
}
"""
