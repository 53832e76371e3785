; The launch of a grid by the pool. `thread_pool_program.py` explains the protocol.

; Runs the grid (%x, %y, %z).
;   %kernel  KernelRecord
;   %args    the kernel's arguments, 8 bytes each
;   %bytes   of scratch for each thread
; Returns 0; 1 when there is no memory for the scratch areas; 2 when the handler of a signal has
; raised, so that programs were left out; 3 when such a handler calls it; 4 when programs have waited
; for others in vain.
define i32 @tw_launch(ptr %kernel, ptr %args, i32 %x, i32 %y, i32 %z, i64 %bytes) nounwind {
entry:
  %nested = call i1 @is_nested()
  br i1 %nested, label %refuse, label %lock
refuse:
  ret i32 3
lock:
  call i32 @pthread_mutex_lock(ptr @pool.launching)
  %status = call i32 @launch_and_unlock(ptr %kernel, ptr %args, i32 %x, i32 %y, i32 %z, i64 %bytes)
  ret i32 %status
}

; The same of a launch that owns the pool, which it gives back.
define internal i32 @launch_and_unlock(ptr %kernel, ptr %args, i32 %x, i32 %y, i32 %z, i64 %bytes)
    nounwind {
entry:
  %total = call i64 @program_count(i32 %x, i32 %y, i32 %z)
  %empty = icmp sle i64 %total, 0
  br i1 %empty, label %exit, label %fit
fit:
  %fits = call i1 @reserve(i64 %bytes)
  br i1 %fits, label %describe, label %exit
describe:
  call void @note_kernel(ptr %kernel)
  call void @own(i64 0)
  store atomic i32 %x, ptr @pool.grid monotonic, align 8
  store atomic i32 %y, ptr getelementptr (i8, ptr @pool.grid, i64 4) monotonic, align 4
  store atomic i32 %z, ptr getelementptr (i8, ptr @pool.grid, i64 8) monotonic, align 8
  %waits = call i64 @KernelRecord.waits(ptr %kernel)
  store atomic i64 %waits, ptr @pool.waits monotonic, align 8
  %single.program = icmp eq i64 %total, 1
  %never.waits = icmp eq i64 %waits, 0
  %one = and i1 %single.program, %never.waits
  br i1 %one, label %run.one, label %watch
run.one:
  %area = load ptr, ptr @pool.scratch, align 8
  call i64 @run(ptr %kernel, ptr %args, i64 0, i64 1, i64 0, ptr %area)
  br label %exit
watch:
  call void @begin_watch()
  %threads = load i32, ptr @pool.threads, align 4
  %single = icmp sle i32 %threads, 1
  %most = call i64 @KernelRecord.alone(ptr %kernel)
  %small = icmp sle i64 %total, %most
  %alone = or i1 %single, %small
  br i1 %alone, label %run.alone, label %run.parallel
run.alone:
  call void @run_alone(ptr %kernel, ptr %args, i64 %total)
  br label %end
run.parallel:
  call void @run_parallel(ptr %kernel, ptr %args, i64 %total, i32 %threads)
  br label %end
end:
  %interrupted = call i32 @end_watch()
  br label %exit
exit:
  %status = phi i32 [ 0, %entry ], [ 1, %fit ], [ 0, %run.one ], [ %interrupted, %end ]
  call i32 @pthread_mutex_unlock(ptr @pool.launching)
  ret i32 %status
}

; The same for native dispatch.
;   %record  LaunchRecord
;   %words   of the arguments, with room for one more
define i32 @tw_launch_words(ptr %record, i32 %x, i32 %y, i32 %z, ptr %words) nounwind {
  %kernel = call ptr @LaunchRecord.kernel(ptr %record)
  %bytes = call i64 @LaunchRecord.scratch(ptr %record)
  %console = call i64 @LaunchRecord.console(ptr %record)
  %count = call i64 @LaunchRecord.count(ptr %record)
  %last = getelementptr i64, ptr %words, i64 %count
  store i64 %console, ptr %last
  %status = call i32 @launch_with_gil(ptr %kernel, ptr %words, i32 %x, i32 %y, i32 %z, i64 %bytes)
  ret i32 %status
}

; The same as a function of Python (METH_FASTCALL), of the address of the KernelRecord, a bytes object
; of the arguments, x, y, z and the bytes of scratch: a call by ctypes takes 0.7 us more.
define ptr @tw_start(ptr %self, ptr %args, i64 %count) nounwind {
entry:
  %record = load ptr, ptr %args
  %kernel = call ptr @PyLong_AsVoidPtr(ptr %record)
  %slots_at = getelementptr ptr, ptr %args, i64 1
  %slots = load ptr, ptr %slots_at
  %words = call ptr @PyBytes_AsString(ptr %slots)
  %x = call i64 @number(ptr %args, i64 2)
  %y = call i64 @number(ptr %args, i64 3)
  %z = call i64 @number(ptr %args, i64 4)
  %bytes = call i64 @number(ptr %args, i64 5)
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %launch, label %fail
launch:
  %x.extent = trunc i64 %x to i32
  %y.extent = trunc i64 %y to i32
  %z.extent = trunc i64 %z to i32
  %status = call i32 @launch_with_gil(ptr %kernel, ptr %words, i32 %x.extent, i32 %y.extent,
                                      i32 %z.extent, i64 %bytes)
  %wide = sext i32 %status to i64
  %result = call ptr @PyLong_FromLongLong(i64 %wide)
  ret ptr %result
fail:
  ret ptr null
}

define internal i64 @number(ptr %args, i64 %position) nounwind alwaysinline {
  %at = getelementptr ptr, ptr %args, i64 %position
  %object = load ptr, ptr %at
  %value = call i64 @PyLong_AsLongLong(ptr %object)
  ret i64 %value
}

; The same by a caller that holds the GIL. A grid that it runs alone is done before others would have
; taken the GIL; but it may not wait for the pool with the GIL in its hands, since the pool's owner
; may wait for that.
define internal i32 @launch_with_gil(ptr %kernel, ptr %words, i32 %x, i32 %y, i32 %z, i64 %bytes)
    nounwind {
entry:
  %total = call i64 @program_count(i32 %x, i32 %y, i32 %z)
  %most = call i64 @KernelRecord.alone(ptr %kernel)
  %small = icmp sle i64 %total, %most
  br i1 %small, label %try, label %release
try: ; in vain, too, if this thread owns it
  %busy = call i32 @pthread_mutex_trylock(ptr @pool.launching)
  %owned = icmp eq i32 %busy, 0
  br i1 %owned, label %keep, label %release
keep:
  %quick = call i32 @launch_and_unlock(ptr %kernel, ptr %words, i32 %x, i32 %y, i32 %z, i64 %bytes)
  ret i32 %quick
release:
  %state = call ptr @PyEval_SaveThread()
  %status = call i32 @tw_launch(ptr %kernel, ptr %words, i32 %x, i32 %y, i32 %z, i64 %bytes)
  call void @PyEval_RestoreThread(ptr %state)
  ret i32 %status
}

; Whether this thread has a launch under way: a handler that runs while the launch looks for signals
; cannot launch another. A launch of another thread wrote its owner before it became active; read
; the other way round, it could seem to be this thread's, which was the owner until then.
define internal i1 @is_nested() nounwind alwaysinline {
  %busy = load atomic i32, ptr @pool.active seq_cst, align 4
  %launches = icmp ne i32 %busy, 0
  %owner = load volatile i64, ptr @pool.slots, align 8
  %self = call i64 @pthread_self()
  %own = icmp eq i64 %owner, %self
  %nested = and i1 %own, %launches
  ret i1 %nested
}

define internal i64 @program_count(i32 %x, i32 %y, i32 %z) nounwind alwaysinline {
  %x.wide = sext i32 %x to i64
  %y.wide = sext i32 %y to i64
  %z.wide = sext i32 %z to i64
  %xy = mul i64 %x.wide, %y.wide
  %total = mul i64 %xy, %z.wide
  ret i64 %total
}

; Runs all programs on the caller's thread, which looks for signals where the kernel returns early.
define internal void @run_alone(ptr %kernel, ptr %args, i64 %total) nounwind alwaysinline {
entry:
  br label %run
run:
  %at = phi i64 [ 0, %entry ], [ %reached, %look ]
  %area = load ptr, ptr @pool.scratch, align 8
  %reached = call i64 @run(ptr %kernel, ptr %args, i64 %at, i64 %total, i64 0, ptr %area)
  %complete = icmp sge i64 %reached, %total
  br i1 %complete, label %exit, label %look
look:
  atomicrmw add ptr @pool.returns, i64 1 monotonic, align 8
  call void @look_for_signals()
  %dropped = load atomic i32, ptr @pool.dropped monotonic, align 4
  %goes.on = icmp eq i32 %dropped, 0
  br i1 %goes.on, label %run, label %exit
exit:
  ret void
}

; Runs all programs on all threads: writes the job and its tickets, works, waits for the others.
define internal void @run_parallel(ptr %kernel, ptr %args, i64 %total, i32 %threads)
    nounwind alwaysinline {
entry:
  %started = load i32, ptr @pool.started, align 4
  %is.started = icmp ne i32 %started, 0
  br i1 %is.started, label %publish, label %start
start:
  call void @start()
  br label %publish
publish:
  %threads.wide = zext i32 %threads to i64
  %per.thread = call i64 @CHUNKS_PER_THREAD()
  %wanted = mul i64 %threads.wide, %per.thread
  %even = udiv i64 %total, %wanted
  %chunk = call i64 @llvm.umax.i64(i64 %even, i64 1)
  %chunks = call i64 @divide_up(i64 %total, i64 %chunk)
  %range = call i64 @divide_up(i64 %chunks, i64 %threads.wide)
  %ranges = call i64 @divide_up(i64 %chunks, i64 %range)
  ; not in order with each other: the tickets, released after them, publish them
  store atomic ptr %kernel, ptr @pool.kernel monotonic, align 8
  store atomic ptr %args, ptr @pool.args monotonic, align 8
  store atomic i64 %total, ptr @pool.total monotonic, align 8
  store atomic i64 %chunk, ptr @pool.chunk monotonic, align 8
  store atomic i64 %chunks, ptr @pool.chunks monotonic, align 8
  store atomic i64 %range, ptr @pool.range monotonic, align 8
  store atomic i64 %ranges, ptr @pool.ranges monotonic, align 8
  store atomic i64 0, ptr @pool.done monotonic, align 8
  call void @write_tickets(i64 %chunks, i64 %range)
  call void @spread_threads(i64 %threads.wide)
  call void @wake_sleepers(i64 %chunks)
  call void @work(i64 0)
  call void @wait_until_done(i64 %chunks)
  ret void
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
  %launch.old = load atomic i64, ptr @pool.launch monotonic, align 8
  %launch = add i64 %launch.old, 1
  %launch.high = shl i64 %launch, 32
  br label %next
next:
  %left = phi i64 [ %chunks, %entry ], [ %left.next, %write ]
  %pointer = phi ptr [ @pool.tickets, %entry ], [ %pointer.next, %write ]
  %over = icmp eq i64 %left, 0
  br i1 %over, label %exit, label %write
write:
  %count = call i64 @llvm.umin.i64(i64 %left, i64 %range)
  %ticket = or i64 %launch.high, %count
  store atomic i64 %ticket, ptr %pointer release, align 8
  %left.next = sub i64 %left, %count
  %pointer.next = getelementptr %Ticket, ptr %pointer, i64 1
  br label %next
exit:
  store atomic i64 %launch, ptr @pool.launch seq_cst, align 8
  ret void
}

; Wakes as many workers as there are chunks besides the caller's first.
define internal void @wake_sleepers(i64 %chunks) nounwind {
entry:
  %sleepers = load atomic i32, ptr @pool.sleepers seq_cst, align 4
  %all.awake = icmp eq i32 %sleepers, 0
  br i1 %all.awake, label %exit, label %pass
pass:
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  %others = sub i64 %chunks, 1
  %sleepers.wide = zext i32 %sleepers to i64
  %few = icmp ult i64 %others, %sleepers.wide
  br i1 %few, label %some, label %all
all:
  call i32 @pthread_cond_broadcast(ptr @pool.wake)
  ret void
some:
  %n = phi i64 [ %others, %pass ], [ %n.next, %some.next ]
  %finished = icmp eq i64 %n, 0
  br i1 %finished, label %exit, label %some.next
some.next:
  call i32 @pthread_cond_signal(ptr @pool.wake)
  %n.next = sub i64 %n, 1
  br label %some
exit:
  ret void
}

; Spins, then sleeps, until every chunk is done.
define internal void @wait_until_done(i64 %chunks) nounwind {
entry:
  %pauses = load i32, ptr @pool.spin, align 4
  br label %spin
spin:
  %n = phi i32 [ 0, %entry ], [ %n.next, %spin.again ]
  %done = load atomic i64, ptr @pool.done acquire, align 8
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
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  store atomic i32 1, ptr @pool.waiting seq_cst, align 4
  br label %asleep
asleep:
  %done.now = load atomic i64, ptr @pool.done seq_cst, align 8
  %over = icmp eq i64 %done.now, %chunks
  br i1 %over, label %awake, label %wait
wait:
  %poll = load atomic i32, ptr @pool.poll seq_cst, align 4
  %dropped = load atomic i32, ptr @pool.dropped monotonic, align 4
  %asked = icmp eq i32 %poll, 1
  %whole = icmp eq i32 %dropped, 0
  %looks = and i1 %asked, %whole
  br i1 %looks, label %look, label %doze
look: ; not under the mutex: handlers of signals may launch kernels of another pool
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  call void @look_for_signals()
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  br label %asleep
doze:
  call i32 @pthread_cond_wait(ptr @pool.finished, ptr @pool.mutex)
  br label %asleep
awake:
  store atomic i32 0, ptr @pool.waiting seq_cst, align 4
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %exit
exit:
  ret void
}

; Makes each thread's scratch area at least %bytes large. No launch is under way, so no thread
; uses the old ones. Pages are touched first by the thread that owns them.
define internal i1 @reserve(i64 %bytes) nounwind {
entry:
  %pointer = alloca ptr
  %stride = load i64, ptr @pool.stride, align 8
  %fits = icmp ule i64 %bytes, %stride
  br i1 %fits, label %good, label %check
check: ; beyond 1 TiB the sums below could overflow
  %absurd = icmp ugt i64 %bytes, 1099511627776
  br i1 %absurd, label %bad, label %grow
grow:
  %old = load ptr, ptr @pool.scratch, align 8
  call void @free(ptr %old)
  store atomic ptr null, ptr @pool.scratch monotonic, align 8
  store atomic i64 0, ptr @pool.stride monotonic, align 8
  %bytes.up = add i64 %bytes, 65535
  %rounded = and i64 %bytes.up, -65536
  %threads = load i32, ptr @pool.threads, align 4
  %threads.wide = zext i32 %threads to i64
  %all = mul i64 %rounded, %threads.wide
  %refused = call i32 @posix_memalign(ptr %pointer, i64 4096, i64 %all)
  %failed = icmp ne i32 %refused, 0
  br i1 %failed, label %bad, label %keep
keep:
  %new = load ptr, ptr %pointer
  store atomic ptr %new, ptr @pool.scratch monotonic, align 8
  store atomic i64 %rounded, ptr @pool.stride monotonic, align 8
  br label %good
good:
  ret i1 true
bad:
  ret i1 false
}
