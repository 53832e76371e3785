; The pool's threads: they take chunks, run the kernel on them, spin, sleep.

; Takes chunks until none is left. %slot is the thread's number, 0 for the caller.
define internal void @work(i64 %slot) nounwind {
entry:
  %ranges = load atomic i64, ptr @pool.ranges acquire, align 8
  %idle = icmp eq i64 %ranges, 0
  br i1 %idle, label %exit, label %first
first:
  %own = urem i64 %slot, %ranges
  br label %next
next:
  %visited = phi i64 [ 0, %first ], [ %visited.next, %visit ]
  %range = phi i64 [ %own, %first ], [ %range.next, %visit ]
  %all = icmp eq i64 %visited, %ranges
  br i1 %all, label %exit, label %visit
visit:
  call void @work_on(i64 %range, i64 %slot)
  %visited.next = add i64 %visited, 1
  %after = add i64 %range, 1
  %wraps = icmp eq i64 %after, %ranges
  %range.next = select i1 %wraps, i64 0, i64 %after
  br label %next
exit:
  ret void
}

; Takes chunks of one range and runs them, until none is left.
define internal void @work_on(i64 %range, i64 %slot) nounwind {
entry:
  %ticket.pointer = getelementptr %Ticket, ptr @pool.tickets, i64 %range
  br label %look
look:
  %ticket = load atomic i64, ptr %ticket.pointer acquire, align 8
  %left = and i64 %ticket, 4294967295
  %none = icmp eq i64 %left, 0
  br i1 %none, label %exit, label %read
read:
  %kernel = load atomic ptr, ptr @pool.kernel acquire, align 8
  %args = load atomic ptr, ptr @pool.args acquire, align 8
  %total = load atomic i64, ptr @pool.total acquire, align 8
  %chunk = load atomic i64, ptr @pool.chunk acquire, align 8
  %chunks = load atomic i64, ptr @pool.chunks acquire, align 8
  %in.range = load atomic i64, ptr @pool.range acquire, align 8
  %areas = load atomic ptr, ptr @pool.scratch acquire, align 8
  %stride = load atomic i64, ptr @pool.stride acquire, align 8
  ; that the ticket is still the same proves that all of these belong to its launch
  %rest = sub i64 %ticket, 1
  %swap = cmpxchg ptr %ticket.pointer, i64 %ticket, i64 %rest acq_rel monotonic, align 8
  %taken = extractvalue { i64, i1 } %swap, 1
  br i1 %taken, label %run, label %look
run:
  %range.after = add i64 %range, 1
  %range.end.full = mul i64 %range.after, %in.range
  %range.end = call i64 @llvm.umin.i64(i64 %range.end.full, i64 %chunks)
  %number = sub i64 %range.end, %left
  %begin = mul i64 %number, %chunk
  %end.full = add i64 %begin, %chunk
  %end = call i64 @llvm.umin.i64(i64 %end.full, i64 %total)
  %offset = mul i64 %slot, %stride
  %area = getelementptr i8, ptr %areas, i64 %offset
  call void @run_chunk(ptr %kernel, ptr %args, i64 %begin, i64 %end, i64 %slot, ptr %area)
  %last = call i1 @count_chunk(i64 %chunks)
  br i1 %last, label %exit, label %look
exit:
  ret void
}

; Runs a chunk, unless the launch is dropped. A kernel returns early when it is to look for signals.
define internal void @run_chunk(ptr %kernel, ptr %args, i64 %begin, i64 %end, i64 %slot, ptr %area)
    nounwind alwaysinline {
entry:
  br label %piece
piece:
  %at = phi i64 [ %begin, %entry ], [ %reached, %look ], [ %reached, %interrupted ]
  %dropped = load atomic i32, ptr @pool.dropped monotonic, align 4
  %is.dropped = icmp ne i32 %dropped, 0
  br i1 %is.dropped, label %exit, label %go
go:
  %reached = call i64 @run(ptr %kernel, ptr %args, i64 %at, i64 %end, i64 %slot, ptr %area)
  %is.complete = icmp sge i64 %reached, %end
  br i1 %is.complete, label %exit, label %interrupted
interrupted:   ; only the caller, slot 0, asks Python
  atomicrmw add ptr @pool.returns, i64 1 monotonic, align 8
  %is.caller = icmp eq i64 %slot, 0
  br i1 %is.caller, label %look, label %piece
look:
  call void @look_for_signals()
  br label %piece
exit:
  ret void
}

; Counts a chunk as done; true if it was the last, and then the caller is awake.
define internal i1 @count_chunk(i64 %chunks) nounwind alwaysinline {
  %before = atomicrmw add ptr @pool.done, i64 1 seq_cst, align 8
  %now = add i64 %before, 1
  %last = icmp eq i64 %now, %chunks
  br i1 %last, label %tell, label %exit
tell:
  %waiting = load atomic i32, ptr @pool.waiting seq_cst, align 4
  %sleeps = icmp ne i32 %waiting, 0
  br i1 %sleeps, label %signal, label %exit
signal:
  ; locked once, so that a caller that was about to sleep does, and hears the signal
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  call i32 @pthread_cond_signal(ptr @pool.finished)
  br label %exit
exit:
  ret i1 %last
}

; Runs programs of a kernel, noting in the thread's slot, for the report of a crash, that it does.
; Returns the next program: %end, or less if `poll` was set.
define internal i64 @run(ptr %kernel, ptr %args, i64 %begin, i64 %end, i64 %slot, ptr %area)
    nounwind {
  %record = getelementptr %ThreadSlot, ptr @pool.slots, i64 %slot
  %record.begin = call ptr @ThreadSlot.at_begin(ptr %record)
  %record.end = call ptr @ThreadSlot.at_end(ptr %record)
  %record.args = call ptr @ThreadSlot.at_args(ptr %record)
  %record.kernel = call ptr @ThreadSlot.at_kernel(ptr %record)
  store volatile i64 %begin, ptr %record.begin, align 8
  store volatile i64 %end, ptr %record.end, align 8
  store volatile ptr %args, ptr %record.args, align 8
  store volatile ptr %kernel, ptr %record.kernel, align 8
  %code = call ptr @KernelRecord.code(ptr %kernel)
  %reached = call i64 %code(ptr %args, i64 %begin, i64 %end, ptr @pool.grid, ptr %area, ptr @pool.poll)
  store volatile ptr null, ptr %record.kernel, align 8
  ret i64 %reached
}

; Notes that the slot belongs to the thread that calls this.
define internal void @own(i64 %slot) nounwind {
  %record = getelementptr %ThreadSlot, ptr @pool.slots, i64 %slot
  %thread = call ptr @ThreadSlot.at_thread(ptr %record)
  %self = call i64 @pthread_self()
  store volatile i64 %self, ptr %thread, align 8
  ret void
}

; Starts a detached thread that gets no signals but the faults that it causes itself: Python's main
; thread gets all others.
;   %function  ptr (ptr), called with %argument
; Returns 0 or an error of pthread_create.
define internal i32 @start_thread(ptr %function, i64 %argument) nounwind {
entry:
  %thread = alloca i64
  %old.mask = alloca [128 x i8], align 16
  %set.mask = call i64 @SIG_SETMASK()
  %how = trunc i64 %set.mask to i32
  call i32 @pthread_sigmask(i32 %how, ptr @blocked, ptr %old.mask)
  %pointer = inttoptr i64 %argument to ptr
  %refused = call i32 @pthread_create(ptr %thread, ptr null, ptr %function, ptr %pointer)
  call i32 @pthread_sigmask(i32 %how, ptr %old.mask, ptr null)
  %failed = icmp ne i32 %refused, 0
  br i1 %failed, label %exit, label %detach
detach:
  %handle = load i64, ptr %thread
  call i32 @pthread_detach(i64 %handle)
  br label %exit
exit:
  ret i32 %refused
}

; What a worker runs: works, spins until the next launch, in the end sleeps.
define internal ptr @worker(ptr %slot.pointer) nounwind {
entry:
  %slot = ptrtoint ptr %slot.pointer to i64
  call void @own(i64 %slot)
  %pauses = load i32, ptr @pool.spin, align 4
  br label %work
work:
  ; Whoever raises the launch number has written the tickets, or `stopping`, before.
  %seen = load atomic i64, ptr @pool.launch seq_cst, align 8
  %stop = load atomic i32, ptr @pool.stopping seq_cst, align 4
  %stops = icmp ne i32 %stop, 0
  br i1 %stops, label %exit, label %help
help:
  call void @note_cpu(i64 %slot)
  call void @work(i64 %slot)
  br label %spin
spin:
  %n = phi i32 [ 0, %help ], [ %n.next, %spin.again ]
  %launched = load atomic i64, ptr @pool.launch acquire, align 8
  %same = icmp eq i64 %launched, %seen
  br i1 %same, label %spin.check, label %work
spin.check:
  %enough = icmp sge i32 %n, %pauses
  br i1 %enough, label %sleep, label %spin.again
spin.again:
  call void @spin_once(i32 %n)
  %n.next = add i32 %n, 1
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  atomicrmw add ptr @pool.sleepers, i32 1 seq_cst, align 4
  br label %asleep
asleep:
  %launched.now = load atomic i64, ptr @pool.launch seq_cst, align 8
  %still = icmp eq i64 %launched.now, %seen
  br i1 %still, label %wait, label %awake
wait:
  call i32 @pthread_cond_wait(ptr @pool.wake, ptr @pool.mutex)
  br label %asleep
awake:
  atomicrmw sub ptr @pool.sleepers, i32 1 seq_cst, align 4
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %work
exit:
  call void @forget_cpu(i64 %slot)
  atomicrmw sub ptr @pool.alive, i32 1 seq_cst, align 4
  ret ptr null
}

; A pause; each 64th (about 2 us) lets other threads of this CPU run, since where threads outnumber
; free CPUs the one that is waited for may be among them.
define internal void @spin_once(i32 %n) nounwind {
entry:
  call void @pause()
  %low = and i32 %n, 63
  %yields = icmp eq i32 %low, 63
  br i1 %yields, label %yield, label %exit
yield:
  call i32 @sched_yield()
  br label %exit
exit:
  ret void
}

; Starts the workers, with fewer threads if the system refuses some.
define internal void @start() nounwind {
entry:
  store i32 1, ptr @pool.started, align 4
  %threads = load i32, ptr @pool.threads, align 4
  br label %next
next:
  %slot = phi i32 [ 1, %entry ], [ %slot.next, %made ]
  %more = icmp slt i32 %slot, %threads
  br i1 %more, label %create, label %exit
create:
  atomicrmw add ptr @pool.alive, i32 1 seq_cst, align 4
  %slot.wide = zext i32 %slot to i64
  %refused = call i32 @start_thread(ptr @worker, i64 %slot.wide)
  %failed = icmp ne i32 %refused, 0
  br i1 %failed, label %give.up, label %made
made:
  %slot.next = add i32 %slot, 1
  br label %next
give.up:
  atomicrmw sub ptr @pool.alive, i32 1 seq_cst, align 4
  br label %exit
exit:
  ret void
}
