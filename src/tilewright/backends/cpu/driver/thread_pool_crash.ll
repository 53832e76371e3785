; What is told of a crash: which kernel, on which programs, with which arguments.
;
; A handler of SIGSEGV, SIGBUS, SIGILL and SIGFPE looks whether its thread is running a kernel of
; this pool (@run notes that), writes the report to stderr, puts back the handler that was there
; before, and returns: the faulting instruction runs again and the process dies as it would have
; without it, with faulthandler's traceback where that is on. A signal that was sent is sent again.
; A fault elsewhere, or an abort, is for `thread_pool_later_crash.ll`.
;
; The report is written by `dprintf`. POSIX does not list it as safe in handlers; but the thread is
; in a kernel, which never holds a lock of the C library, and dies anyway.

@previous = internal global [32 x %SigAction] zeroinitializer, align 16   ; by number of the signal
@reporter = internal global i64 0   ; thread that reports

@crash.sigsegv = internal constant [47 x i8]
    c"SIGSEGV: an access to memory that is not there\00"
@crash.sigbus = internal constant [46 x i8]
    c"SIGBUS: an access to memory that is not there\00"
@crash.sigill = internal constant [51 x i8]
    c"SIGILL: an instruction that this CPU does not have\00"
@crash.sigfpe = internal constant [75 x i8]
    c"SIGFPE: an integer division by zero, or one whose quotient is out of range\00"
@crash.title = internal constant [39 x i8]
    c"\0atilewright: %s in %s\0a  at address %p\0a\00"
@crash.programs = internal constant [62 x i8]
    c"  programs %lld to %lld (x fastest) of the grid (%d, %d, %d)\0a\00"
@crash.integer = internal constant [13 x i8]
    c"  %s = %lld\0a\00"
@crash.pointer = internal constant [14 x i8]
    c"  %s = %#llx\0a\00"
@crash.float = internal constant [11 x i8]
    c"  %s = %g\0a\00"
@crash.half = internal constant [31 x i8]
    c"  %s = %#llx (bits of a half)\0a\00"
@crash.cause = internal constant [50 x i8]
    c"An access outside the arrays is the usual cause. \00"
@crash.advice = internal constant [75 x i8]
    c"TILEWRIGHT_CHECK=bounds\0achecks every access, and names the line of a wrong\00"
@crash.advice_end = internal constant [8 x i8]
    c" one.\0a\0a\00"

declare i32 @sigaction(i32, ptr, ptr)
declare i32 @raise(i32)
declare i32 @dprintf(i32, ptr, ...)

; Installs the handlers.
;   %latest  LatestKernels, of all pools of the process
define void @tw_report_crashes(ptr %latest) nounwind {
  store ptr %latest, ptr @latest, align 8
  %action = alloca %SigAction, align 16
  %bytes = ptrtoint ptr getelementptr (%SigAction, ptr null, i32 1) to i64
  call void @llvm.memset.p0.i64(ptr %action, i8 0, i64 %bytes, i1 false)
  %flags = call i64 @SIGACTION_FLAGS()
  %flags.32 = trunc i64 %flags to i32
  call void @SigAction.set_handler(ptr %action, ptr @crashed)
  call void @SigAction.set_flags(ptr %action, i32 %flags.32)
  %sigbus = call i64 @SIGBUS()
  %sigbus.32 = trunc i64 %sigbus to i32
  call void @install(ptr %action, i32 4)    ; SIGILL, everywhere
  call void @install(ptr %action, i32 6)    ; SIGABRT
  call void @install(ptr %action, i32 8)    ; SIGFPE
  call void @install(ptr %action, i32 11)   ; SIGSEGV
  call void @install(ptr %action, i32 %sigbus.32)
  ret void
}

define internal void @install(ptr %action, i32 %signal) nounwind {
  %before = getelementptr %SigAction, ptr @previous, i32 %signal
  call i32 @sigaction(i32 %signal, ptr %action, ptr %before)
  ret void
}

; The handler.
define internal void @crashed(i32 %signal, ptr %info, ptr %context) nounwind {
entry:
  %self = call i64 @pthread_self()
  %record = call ptr @busy_slot(i64 %self)
  %no_kernel = icmp eq ptr %record, null
  %aborts = icmp eq i32 %signal, 6   ; by a function that a kernel has called, if it runs one
  %elsewhere = or i1 %no_kernel, %aborts
  br i1 %elsewhere, label %later, label %first
later:
  call void @report_latest(i32 %signal)
  br label %restore
first:   ; several threads may crash at once: one reports, the others wait until it has, and all die
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
tell:
  call void @report(i32 %signal, ptr %info, ptr %record)
  ; A thread that crashed at the same time may be in faulthandler, which is to end its traceback.
  call i32 @usleep(i32 200000)
  br label %restore
restore:
  %before = getelementptr %SigAction, ptr @previous, i32 %signal
  call i32 @sigaction(i32 %signal, ptr %before, ptr null)
  %code = call i32 @SigInfo.code(ptr %info)
  %sent = icmp sle i32 %code, 0   ; by kill() or abort(), so no instruction faults again
  br i1 %sent, label %send, label %exit
send:
  call i32 @raise(i32 %signal)
  br label %exit
exit:
  ret void
}

; The ThreadSlot of a thread that is running a kernel; null if it runs none.
define internal ptr @busy_slot(i64 %self) nounwind {
entry:
  %threads = load i32, ptr @pool.threads, align 4
  %threads.wide = zext i32 %threads to i64
  br label %next
next:
  %slot = phi i64 [ 0, %entry ], [ %slot.next, %other ]
  %more = icmp ult i64 %slot, %threads.wide
  br i1 %more, label %look, label %none
look:
  %record = getelementptr %ThreadSlot, ptr @pool.slots, i64 %slot
  %thread.at = call ptr @ThreadSlot.at_thread(ptr %record)
  %thread = load volatile i64, ptr %thread.at, align 8
  %kernel.at = call ptr @ThreadSlot.at_kernel(ptr %record)
  %kernel = load volatile ptr, ptr %kernel.at, align 8
  %mine = icmp eq i64 %thread, %self
  %runs = icmp ne ptr %kernel, null
  %here = and i1 %mine, %runs
  br i1 %here, label %match, label %other
other:
  %slot.next = add i64 %slot, 1
  br label %next
match:
  ret ptr %record
none:
  ret ptr null
}

; Writes the report.
define internal void @report(i32 %signal, ptr %info, ptr %record) nounwind {
  %kernel = call ptr @ThreadSlot.kernel(ptr %record)
  %address = call ptr @SigInfo.address(ptr %info)
  %text = call ptr @fault_text(i32 %signal)
  %title = call ptr @KernelRecord.title(ptr %kernel)
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash.title, ptr %text, ptr %title, ptr %address)
  call void @report_programs(ptr %record)
  call void @report_arguments(ptr %record, ptr %kernel)
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash.cause)
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash.advice)
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash.advice_end)
  ret void
}

define internal ptr @fault_text(i32 %signal) nounwind {
  switch i32 %signal, label %bus [ i32 4, label %illegal i32 8, label %division i32 11, label %memory ]
illegal:
  ret ptr @crash.sigill
division:
  ret ptr @crash.sigfpe
memory:
  ret ptr @crash.sigsegv
bus:
  ret ptr @crash.sigbus
}

define internal void @report_programs(ptr %record) nounwind {
  %begin = call i64 @ThreadSlot.begin(ptr %record)
  %end = call i64 @ThreadSlot.end(ptr %record)
  %last = sub i64 %end, 1
  %x = load i32, ptr @pool.grid, align 4
  %y = load i32, ptr getelementptr (i8, ptr @pool.grid, i64 4), align 4
  %z = load i32, ptr getelementptr (i8, ptr @pool.grid, i64 8), align 4
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash.programs, i64 %begin, i64 %last,
    i32 %x, i32 %y, i32 %z)
  ret void
}

; One line for each parameter.
define internal void @report_arguments(ptr %record, ptr %kernel) nounwind {
entry:
  %args = call ptr @ThreadSlot.args(ptr %record)
  %count = call i64 @KernelRecord.count(ptr %kernel)
  %names = call ptr @KernelRecord.names(ptr %kernel)
  %kinds = call ptr @KernelRecord.kinds(ptr %kernel)
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %argument ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %argument, label %exit
argument:
  %name.at = getelementptr ptr, ptr %names, i64 %i
  %name = load ptr, ptr %name.at, align 8
  %kind.at = getelementptr i8, ptr %kinds, i64 %i
  %kind = load i8, ptr %kind.at
  %value.at = getelementptr i64, ptr %args, i64 %i
  %bits = load i64, ptr %value.at, align 8
  call void @report_argument(ptr %name, i8 %kind, i64 %bits)
  %next = add i64 %i, 1
  br label %test
exit:
  ret void
}

; %kind: code of Python's `struct`, P for a pointer; %bits: the slot.
define internal void @report_argument(ptr %name, i8 %kind, i64 %bits) nounwind {
  switch i8 %kind, label %integer [
    i8 80, label %pointer    ; P
    i8 81, label %pointer    ; Q
    i8 102, label %single    ; f
    i8 100, label %double    ; d
    i8 101, label %half      ; e
  ]
integer:
  %value = call i64 @integer_value(i8 %kind, i64 %bits)
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash.integer, ptr %name, i64 %value)
  ret void
single:
  %single.bits = trunc i64 %bits to i32
  %single.value = bitcast i32 %single.bits to float
  %single.wide = fpext float %single.value to double
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash.float, ptr %name, double %single.wide)
  ret void
double:
  %double.value = bitcast i64 %bits to double
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash.float, ptr %name, double %double.value)
  ret void
half:
  %half.bits = and i64 %bits, 65535
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash.half, ptr %name, i64 %half.bits)
  ret void
pointer:
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @crash.pointer, ptr %name, i64 %bits)
  ret void
}

; An integer parameter, as wide as its type is.
define internal i64 @integer_value(i8 %kind, i64 %bits) nounwind {
  switch i8 %kind, label %i64 [
    i8 98, label %i8     ; b
    i8 104, label %i16   ; h
    i8 105, label %i32   ; i
    i8 63, label %u8     ; ?
    i8 66, label %u8     ; B
    i8 72, label %u16    ; H
    i8 73, label %u32    ; I
  ]
i8:
  %b = trunc i64 %bits to i8
  %b.wide = sext i8 %b to i64
  ret i64 %b.wide
i16:
  %h = trunc i64 %bits to i16
  %h.wide = sext i16 %h to i64
  ret i64 %h.wide
i32:
  %i = trunc i64 %bits to i32
  %i.wide = sext i32 %i to i64
  ret i64 %i.wide
u8:
  %ub = and i64 %bits, 255
  ret i64 %ub
u16:
  %uh = and i64 %bits, 65535
  ret i64 %uh
u32:
  %ui = and i64 %bits, 4294967295
  ret i64 %ui
i64:
  ret i64 %bits
}
