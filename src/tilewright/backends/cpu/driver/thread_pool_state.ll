; The state of the thread pool, and what the pool calls. Each time the module is loaded it is a pool
; of its own.
;
; What different threads write lies 128 bytes apart: two lines of 64, because processors fetch lines
; in pairs. LLVM lays variables out in the order in which they stand here.

; The job: written by the caller before the tickets.
@pool.kernel = internal global ptr null, align 128   ; KernelRecord
@pool.args = internal global ptr null
@pool.total = internal global i64 0     ; programs
@pool.chunk = internal global i64 0     ; programs in a chunk
@pool.chunks = internal global i64 0
@pool.range = internal global i64 0     ; chunks in a range
@pool.ranges = internal global i64 0    ; ranges that are not empty, at most as many as threads
@pool.scratch = internal global ptr null
@pool.stride = internal global i64 0    ; bytes of scratch from one thread's to the next
@pool.grid = internal global [3 x i32] zeroinitializer, align 8

@pool.launch = internal global i64 0, align 128   ; number of the last launch
@pool.done = internal global i64 0, align 128     ; chunks

@pool.sleepers = internal global i32 0, align 128
@pool.waiting = internal global i32 0   ; whether the caller sleeps
@pool.stopping = internal global i32 0
@pool.alive = internal global i32 0     ; workers that have not left their loop
@pool.started = internal global i32 0
@pool.threads = internal global i32 0   ; including the caller
@pool.spin = internal global i32 0      ; pauses before a thread sleeps

; 128 bytes are enough for a pthread mutex or condition on every platform (at most 64).
@pool.launching = internal global [128 x i8] zeroinitializer, align 128   ; mutex: one launch
@pool.mutex = internal global [128 x i8] zeroinitializer, align 128       ; for the conditions
@pool.wake = internal global [128 x i8] zeroinitializer, align 128        ; workers sleep on it
@pool.finished = internal global [128 x i8] zeroinitializer, align 128    ; the caller does
@pool.tick = internal global [128 x i8] zeroinitializer, align 128        ; the ticker does

@pool.poll = internal global i32 0, align 128   ; kernels return after the program they are in
@pool.dropped = internal global i32 0   ; a signal's handler has raised: run no further programs
@pool.waits = internal global i64 0     ; whether programs may wait for each other
@pool.limit = internal global i32 0     ; looks of the ticker without progress; 0: any number
@pool.stalled = internal global i32 0   ; such looks so far
@pool.returns = internal global i64 0   ; returns of kernels before their chunk is done
@pool.counted = internal global i64 0   ; progress when the ticker looked last
@pool.waited = internal global i32 0    ; the spin loop in which a program has waited in vain
@pool.active = internal global i32 0, align 128   ; whether a launch is under way
@pool.ticking = internal global i32 0   ; 0 there is no ticker, 1 it is awake, 2 it sleeps
@pool.watched = internal global i64 0   ; number of launches that the ticker could have seen
@pool.raised = internal global %RaisedError zeroinitializer

@pool.tickets = internal global %PoolTickets zeroinitializer, align 128   ; of the ranges
@pool.slots = internal global %PoolSlots zeroinitializer, align 128       ; of the threads

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i64 @pthread_self()
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_trylock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare i32 @sched_yield()
declare i32 @usleep(i32)
declare void @free(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyErr_CheckSignals()
declare ptr @PyErr_Occurred()
declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyBytes_AsString(ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; Before the first launch, or after @tw_stop.
;   %threads  including the caller
;   %spin     pauses before a thread without work sleeps
define void @tw_configure(i32 %threads, i32 %spin) nounwind {
  call void @initialise()
  %areas = load ptr, ptr @pool.scratch, align 8
  call void @free(ptr %areas)
  store ptr null, ptr @pool.scratch, align 8
  store i64 0, ptr @pool.stride, align 8
  store i32 %threads, ptr @pool.threads, align 4
  store i32 %spin, ptr @pool.spin, align 4
  ret void
}

; How many looks of the ticker programs may wait without progress; 0: any number.
define void @tw_limit_waits(i32 %looks) nounwind {
  store atomic i32 %looks, ptr @pool.limit monotonic, align 4
  ret void
}

; The spin loop of the latest launch that returned 4.
define i32 @tw_waited() nounwind {
  %loop = load i32, ptr @pool.waited, align 4
  ret i32 %loop
}

; Ends the workers; a later launch starts them again.
define void @tw_stop() nounwind {
entry:
  call i32 @pthread_mutex_lock(ptr @pool.launching)
  store atomic i32 1, ptr @pool.stopping seq_cst, align 4
  atomicrmw add ptr @pool.launch, i64 1 seq_cst, align 8
  br label %wake
wake:
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  call i32 @pthread_cond_broadcast(ptr @pool.wake)
  call i32 @sched_yield()
  %alive = load atomic i32, ptr @pool.alive seq_cst, align 4
  %ended = icmp eq i32 %alive, 0
  br i1 %ended, label %exit, label %wake
exit:
  store atomic i32 0, ptr @pool.stopping seq_cst, align 4
  store i32 0, ptr @pool.started, align 4
  call i32 @pthread_mutex_unlock(ptr @pool.launching)
  ret void
}

; After fork, in the child: there are no workers.
; The parent may have been about to replace the scratch areas, so they are given up, not freed.
define void @tw_reset() nounwind {
  call void @initialise()
  store ptr null, ptr @pool.scratch, align 8
  store i64 0, ptr @pool.stride, align 8
  ret void
}

; Everything but the configuration and the scratch areas.
define internal void @initialise() nounwind {
  store i64 0, ptr @pool.ranges, align 8
  store i32 0, ptr @pool.sleepers, align 4
  store i32 0, ptr @pool.waiting, align 4
  store i32 0, ptr @pool.stopping, align 4
  store i32 0, ptr @pool.alive, align 4
  store i32 0, ptr @pool.started, align 4
  store i32 0, ptr @pool.poll, align 4
  store i32 0, ptr @pool.active, align 4
  store i32 0, ptr @pool.ticking, align 4
  call void @forget_cpus()
  call i32 @pthread_cond_init(ptr @pool.tick, ptr null)
  call i32 @pthread_mutex_init(ptr @pool.launching, ptr null)
  call i32 @pthread_mutex_init(ptr @pool.mutex, ptr null)
  call i32 @pthread_cond_init(ptr @pool.wake, ptr null)
  call i32 @pthread_cond_init(ptr @pool.finished, ptr null)
  ret void
}

; Spins %count pauses, to measure how long one takes.
define void @tw_pause(i64 %count) nounwind {
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %n.next, %again ]
  %enough = icmp sge i64 %n, %count
  br i1 %enough, label %exit, label %again
again:
  %ignored = load atomic i64, ptr @pool.launch acquire, align 8
  call void @pause()
  %n.next = add i64 %n, 1
  br label %loop
exit:
  ret void
}

; After a launch that was dropped: copies what was raised, a RaisedError, whose references are now
; the caller's.
define void @tw_raised(ptr %into) nounwind {
  call void @llvm.memcpy.p0.p0.i64(ptr %into, ptr @pool.raised, i64 24, i1 false)
  call void @llvm.memset.p0.i64(ptr @pool.raised, i8 0, i64 24, i1 false)
  ret void
}

; How many workers are alive.
define i32 @tw_workers() nounwind {
  %alive = load atomic i32, ptr @pool.alive seq_cst, align 4
  ret i32 %alive
}
