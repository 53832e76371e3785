; Keeps the threads of a launch on CPUs of their own.
;
; A kernel of Linux may wake a thread on the CPU of the thread that wakes it, though others are idle,
; and leave both there for milliseconds: a launch is over by then, at the speed of one thread. So
; each worker notes where it runs, and the caller sees before it wakes anyone whether two threads
; were on one CPU: then the second may use only such of the caller's CPUs as none of them was on. It
; keeps that choice, so that what it left in its caches is found again, until it meets another
; thread. Where threads outnumber the CPUs that the caller may use, the system decides.

declare i32 @sched_getcpu()
declare i32 @pthread_getaffinity_np(i64, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i64 @llvm.ctpop.i64(i64)

@pool.cpus = internal global [1024 x i32] zeroinitializer, align 128   ; of workers; -1 not known

; Forgets where workers ran.
define internal void @forget_cpus() nounwind {
  call void @llvm.memset.p0.i64(ptr @pool.cpus, i8 -1, i64 4096, i1 false)
  ret void
}

define internal void @note_cpu(i64 %slot) nounwind {
  %cpu = call i32 @sched_getcpu()
  call void @set_cpu(i64 %slot, i32 %cpu)
  ret void
}

define internal void @forget_cpu(i64 %slot) nounwind {
  call void @set_cpu(i64 %slot, i32 -1)
  ret void
}

; Writes only what has changed: the caller reads it at each launch.
define internal void @set_cpu(i64 %slot, i32 %cpu) nounwind {
entry:
  %pointer = getelementptr i32, ptr @pool.cpus, i64 %slot
  %old = load atomic i32, ptr %pointer monotonic, align 4
  %same = icmp eq i32 %old, %cpu
  br i1 %same, label %exit, label %write
write:
  store atomic i32 %cpu, ptr %pointer release, align 4
  br label %exit
exit:
  ret void
}

; Where a thread is now, if it is the caller, or was.
define internal i32 @cpu_of(i64 %slot) nounwind {
entry:
  %is.caller = icmp eq i64 %slot, 0
  br i1 %is.caller, label %here, label %noted
here:
  %cpu = call i32 @sched_getcpu()
  ret i32 %cpu
noted:
  %pointer = getelementptr i32, ptr @pool.cpus, i64 %slot
  %worker = load atomic i32, ptr %pointer acquire, align 4
  ret i32 %worker
}

; Adds a CPU to a set of 1024. True if it was there; an unknown one is in none.
define internal i1 @add_cpu(ptr %set, i32 %cpu) nounwind {
entry:
  %known = icmp ult i32 %cpu, 1024
  br i1 %known, label %add, label %unknown
unknown:
  ret i1 false
add:
  %number = lshr i32 %cpu, 6
  %low = and i32 %cpu, 63
  %low.wide = zext i32 %low to i64
  %bit = shl i64 1, %low.wide
  %pointer = getelementptr i64, ptr %set, i32 %number
  %word = load i64, ptr %pointer
  %with = or i64 %word, %bit
  store i64 %with, ptr %pointer
  %found = icmp eq i64 %with, %word
  ret i1 %found
}

; Gives workers that were on the CPU of another thread CPUs where none was.
define internal void @spread_threads(i64 %threads) nounwind {
entry:
  %taken = alloca [16 x i64], align 16
  call void @llvm.memset.p0.i64(ptr %taken, i8 0, i64 128, i1 false)
  br label %next
next:
  %slot = phi i64 [ 0, %entry ], [ %slot.next, %add ]
  %met.before = phi i1 [ false, %entry ], [ %met, %add ]
  %more = icmp ult i64 %slot, %threads
  br i1 %more, label %add, label %decide
add:
  %cpu = call i32 @cpu_of(i64 %slot)
  %found = call i1 @add_cpu(ptr %taken, i32 %cpu)
  %met = or i1 %met.before, %found
  %slot.next = add i64 %slot, 1
  br label %next
decide:
  br i1 %met.before, label %part, label %exit
part:
  call void @part_threads(i64 %threads, ptr %taken)
  br label %exit
exit:
  ret void
}

; The same when some have met; %taken is the set of CPUs that threads were on.
define internal void @part_threads(i64 %threads, ptr %taken) nounwind {
entry:
  %free = alloca [16 x i64], align 16
  %seen = alloca [16 x i64], align 16
  %allowed = call i64 @free_cpus(ptr %free, ptr %taken)
  call void @llvm.memset.p0.i64(ptr %seen, i8 0, i64 128, i1 false)
  %enough = icmp uge i64 %allowed, %threads
  br i1 %enough, label %next, label %exit
next:
  %slot = phi i64 [ 0, %entry ], [ %slot.next, %look ], [ %slot.next, %move ]
  %more = icmp ult i64 %slot, %threads
  br i1 %more, label %look, label %exit
look:
  %slot.next = add i64 %slot, 1
  %cpu = call i32 @cpu_of(i64 %slot)
  %met = call i1 @add_cpu(ptr %seen, i32 %cpu)
  br i1 %met, label %move, label %next
move:
  %record = getelementptr %ThreadSlot, ptr @pool.slots, i64 %slot
  %thread = call i64 @ThreadSlot.thread(ptr %record)
  call void @forget_cpu(i64 %slot)
  call i32 @pthread_setaffinity_np(i64 %thread, i64 128, ptr %free)
  br label %next
exit:
  ret void
}

; Writes the CPUs that the caller may use without those in %taken; returns how many it may use, 0
; where that is not to be had.
define internal i64 @free_cpus(ptr %free, ptr %taken) nounwind {
entry:
  %self = call i64 @pthread_self()
  %refused = call i32 @pthread_getaffinity_np(i64 %self, i64 128, ptr %free)
  %failed = icmp ne i32 %refused, 0
  br i1 %failed, label %none, label %word
none:
  ret i64 0
word:
  %n = phi i64 [ 0, %entry ], [ %n.next, %word ]
  %count = phi i64 [ 0, %entry ], [ %count.next, %word ]
  %free.word = getelementptr i64, ptr %free, i64 %n
  %taken.word = getelementptr i64, ptr %taken, i64 %n
  %allowed = load i64, ptr %free.word
  %used = load i64, ptr %taken.word
  %unused = xor i64 %used, -1
  %left = and i64 %allowed, %unused
  store i64 %left, ptr %free.word
  %more.cpus = call i64 @llvm.ctpop.i64(i64 %allowed)
  %count.next = add i64 %count, %more.cpus
  %n.next = add i64 %n, 1
  %more = icmp ult i64 %n.next, 16
  br i1 %more, label %word, label %exit
exit:
  ret i64 %count.next
}
