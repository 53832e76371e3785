; How a launch notices signals: a ticker makes long launches look, and what is raised ends them.
;
; A launch runs without the GIL, so Python cannot run the handler of a signal (Ctrl-C) meanwhile.
; The ticker, a native thread, wakes every 50 ms; a launch that it has seen before gets its `poll`
; flag set. Kernels return at the next end of a program instance then. The caller's thread takes the
; GIL, lets Python run its handlers, clears the flag, and goes on where it was. If a handler has
; raised (KeyboardInterrupt, say), `dropped` is set, and chunks that are not begun count as done.
;
;     caller   watched += 1; active = 1; ... work ...; active = 0
;     ticker   loop { sleep 50 ms; if active and `watched` is that of the last look: poll = 1, wake
;              the caller; if nothing was launched for 2 s: sleep until the next launch }
;
; So a launch of less than 50 ms costs two stores and a load more, and nobody reads a clock.

; Lets Python run the handlers of signals that have come; if one raises, the launch is dropped.
; Only the caller's thread does this.
define internal void @look_for_signals() nounwind {
entry:
  %dropped = load atomic i32, ptr @pool.dropped monotonic, align 4
  %is.dropped = icmp ne i32 %dropped, 0
  br i1 %is.dropped, label %exit, label %look
look:
  store atomic i32 0, ptr @pool.poll monotonic, align 4
  %gil = call i32 @PyGILState_Ensure()
  %raised = call i32 @PyErr_CheckSignals()
  %none = icmp eq i32 %raised, 0
  br i1 %none, label %release, label %drop
drop:
  ; Kept for the Python code that called: an exception cannot wait where the GIL is not held.
  call void @PyErr_Fetch(ptr @pool.raised,
      ptr getelementptr (%RaisedError, ptr @pool.raised, i32 0, i32 1),
      ptr getelementptr (%RaisedError, ptr @pool.raised, i32 0, i32 2))
  store atomic i32 1, ptr @pool.dropped seq_cst, align 4
  store atomic i32 1, ptr @pool.poll seq_cst, align 4
  br label %release
release:
  call void @PyGILState_Release(i32 %gil)
  br label %exit
exit:
  ret void
}

; Before the first program: makes sure that a ticker watches.
define internal void @begin_watch() nounwind {
entry:
  store atomic i32 0, ptr @pool.dropped monotonic, align 4
  store atomic i32 0, ptr @pool.poll monotonic, align 4
  atomicrmw add ptr @pool.watched, i64 1 seq_cst, align 8
  store atomic i32 1, ptr @pool.active seq_cst, align 4
  %ticking = load atomic i32, ptr @pool.ticking seq_cst, align 4
  switch i32 %ticking, label %exit [
    i32 0, label %start
    i32 2, label %wake
  ]
start:
  store atomic i32 1, ptr @pool.ticking seq_cst, align 4
  call void @start_thread(ptr @ticker, i64 0)
  br label %exit
wake:
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  store atomic i32 1, ptr @pool.ticking seq_cst, align 4
  call i32 @pthread_cond_signal(ptr @pool.tick)
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %exit
exit:
  ret void
}

; After the last program: 0, or 2 if the launch was dropped.
define internal i32 @end_watch() nounwind {
  store atomic i32 0, ptr @pool.active seq_cst, align 4
  store atomic i32 0, ptr @pool.poll monotonic, align 4
  %dropped = load atomic i32, ptr @pool.dropped monotonic, align 4
  %status = shl i32 %dropped, 1
  ret i32 %status
}

; What the ticker runs. Looks every 50 ms whether a launch is still under way, and after 40 quiet
; looks sleeps until a launch wakes it.
define internal ptr @ticker(ptr %unused) nounwind {
entry:
  br label %tick
tick:
  %seen = phi i64 [ -1, %entry ], [ %now, %idle ], [ %now, %poke ], [ -1, %woken ]
  %quiet = phi i32 [ 0, %entry ], [ %quiet.next, %idle ], [ 0, %poke ], [ 0, %woken ]
  call i32 @usleep(i32 50000)
  %now = load atomic i64, ptr @pool.watched seq_cst, align 8
  %same = icmp eq i64 %now, %seen
  %active = load atomic i32, ptr @pool.active seq_cst, align 4
  %runs = icmp ne i32 %active, 0
  %long = and i1 %same, %runs
  br i1 %long, label %poke, label %idle
poke: ; under the mutex, so that a caller that is about to sleep sees the flag
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  store atomic i32 1, ptr @pool.poll seq_cst, align 4
  call i32 @pthread_cond_signal(ptr @pool.finished)
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %tick
idle:
  %one.more = add i32 %quiet, 1
  %quiet.next = select i1 %same, i32 %one.more, i32 0
  %tired = icmp sge i32 %quiet.next, 40
  br i1 %tired, label %sleep, label %tick
sleep:
  call i32 @pthread_mutex_lock(ptr @pool.mutex)
  store atomic i32 2, ptr @pool.ticking seq_cst, align 4
  %launched = load atomic i64, ptr @pool.watched seq_cst, align 8
  %still = icmp eq i64 %launched, %now
  br i1 %still, label %asleep, label %stay
stay:
  store atomic i32 1, ptr @pool.ticking seq_cst, align 4
  br label %woken
asleep:
  call i32 @pthread_cond_wait(ptr @pool.tick, ptr @pool.mutex)
  %ticking = load atomic i32, ptr @pool.ticking seq_cst, align 4
  %sleeps = icmp eq i32 %ticking, 2
  br i1 %sleeps, label %asleep, label %woken
woken:
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %tick
}
