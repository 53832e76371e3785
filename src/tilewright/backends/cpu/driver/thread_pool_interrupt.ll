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
; A program that polls memory for another one (`lower/waiting_loops.py`) ends where `poll` is 2 or
; more, and sets it to 3 + the number of its loop. The ticker sets it to 2 where no kernel has
; returned and no chunk is done since as many looks as a setting says; if then a program has ended so,
; the launch is dropped, and returns 4. If none has, `poll` is 0 again: they were not waiting.
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
  cmpxchg ptr @pool.poll, i32 1, i32 0 monotonic monotonic, align 4
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
  store atomic i32 2, ptr @pool.poll seq_cst, align 4   ; also programs that wait
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

; After the last program: 0; 2 if the handler of a signal has raised; 4 if a program has waited in
; vain, whose loop is then noted.
define internal i32 @end_watch() nounwind {
  store atomic i32 0, ptr @pool.active seq_cst, align 4
  %poll = atomicrmw xchg ptr @pool.poll, i32 0 monotonic, align 4
  %dropped = load atomic i32, ptr @pool.dropped monotonic, align 4
  %raised = icmp eq i32 %dropped, 1
  %vain = icmp ugt i32 %poll, 2
  %loop = sub i32 %poll, 3
  store i32 %loop, ptr @pool.waited, align 4
  %waited = select i1 %vain, i32 4, i32 0
  %status = select i1 %raised, i32 2, i32 %waited
  ret i32 %status
}

; What the ticker does to a long launch.
define internal void @poke() nounwind {
entry:
  %poll = load atomic i32, ptr @pool.poll seq_cst, align 4
  switch i32 %poll, label %vain [
    i32 0, label %ask
    i32 1, label %ask
    i32 2, label %again
  ]
vain:   ; a program has ended though it waited: unless a handler has raised before
  cmpxchg ptr @pool.dropped, i32 0, i32 2 seq_cst seq_cst, align 4
  br label %exit
again:   ; nobody was waiting
  %dropped = load atomic i32, ptr @pool.dropped seq_cst, align 4
  %whole = icmp eq i32 %dropped, 0
  br i1 %whole, label %forget, label %exit
forget:
  cmpxchg ptr @pool.poll, i32 2, i32 0 seq_cst seq_cst, align 4
  store i32 0, ptr @pool.stalled, align 4
  br label %exit
ask:
  %too.long = call i1 @is_stalled()
  %asked = select i1 %too.long, i32 2, i32 1
  cmpxchg ptr @pool.poll, i32 %poll, i32 %asked seq_cst seq_cst, align 4
  br label %exit
exit:
  ret void
}

; Counts looks without progress in a launch whose programs may wait; whether these are too many.
define internal i1 @is_stalled() nounwind {
entry:
  %done = load atomic i64, ptr @pool.done seq_cst, align 8
  %returns = load atomic i64, ptr @pool.returns seq_cst, align 8
  %progress = add i64 %done, %returns
  %before = load i64, ptr @pool.counted, align 8
  store i64 %progress, ptr @pool.counted, align 8
  %none = icmp eq i64 %progress, %before
  %stalled = load i32, ptr @pool.stalled, align 4
  %longer = add i32 %stalled, 1
  %now = select i1 %none, i32 %longer, i32 0
  store i32 %now, ptr @pool.stalled, align 4
  %limit = load atomic i32, ptr @pool.limit monotonic, align 4
  %any = icmp ne i32 %limit, 0
  %waits.word = load atomic i64, ptr @pool.waits monotonic, align 8
  %waits = icmp ne i64 %waits.word, 0
  %reached = icmp uge i32 %now, %limit
  %limited = and i1 %any, %waits
  %result = and i1 %limited, %reached
  ret i1 %result
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
  call void @poke()
  call i32 @pthread_cond_signal(ptr @pool.finished)
  call i32 @pthread_mutex_unlock(ptr @pool.mutex)
  br label %tick
idle:
  store i32 0, ptr @pool.stalled, align 4
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
