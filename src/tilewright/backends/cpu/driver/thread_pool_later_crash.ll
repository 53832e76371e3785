; What is told of a crash elsewhere: which kernels were launched last.
;
; A store outside of an array often hits memory of the allocator, which notices when it frees some,
; long after the launch ("double free or corruption"). The report names the latest different kernels,
; once for the process, and only if there are any. It is written by `write` alone, which is safe in a
; handler of any thread, whatever lock that holds.

@latest = internal global ptr null   ; LatestKernels; null: nothing is reported

@later.start = internal constant [14 x i8]
    c"\0atilewright: \00"
@later.sigsegv = internal constant [8 x i8]
    c"SIGSEGV\00"
@later.sigbus = internal constant [7 x i8]
    c"SIGBUS\00"
@later.sigabrt = internal constant [8 x i8]
    c"SIGABRT\00"
@later.title = internal constant [61 x i8]
    c", but not in a kernel. The kernels that were launched last:\0a\00"
@later.indent = internal constant [3 x i8]
    c"  \00"
@later.newline = internal constant [2 x i8]
    c"\0a\00"
@later.cause = internal constant [79 x i8]
    c"One that stores outside its arrays damages memory that may be used much later.\00"
@later.advice = internal constant [81 x i8]
    c"\0aTILEWRIGHT_CHECK=bounds checks every access, and names the line of a wrong one;\00"
@later.setting = internal constant [53 x i8]
    c"\0aTILEWRIGHT_CRASH_REPORTS=0 turns this report off.\0a\0a\00"

declare i64 @write(i32, ptr, i64)
declare i64 @strlen(ptr)

; Notes that a kernel is launched. Pools that launch at once may lose one of their notes.
define internal void @note_kernel(ptr %kernel) nounwind {
entry:
  %latest = load ptr, ptr @latest, align 8
  %off = icmp eq ptr %latest, null
  br i1 %off, label %exit, label %compare
compare:
  %title = call ptr @KernelRecord.title(ptr %kernel)
  %count.at = call ptr @LatestKernels.at_count(ptr %latest)
  %count = load atomic i64, ptr %count.at monotonic, align 8
  %before.at = call ptr @title_at(ptr %latest, i64 %count)
  %before = load atomic ptr, ptr %before.at monotonic, align 8
  %same = icmp eq ptr %title, %before
  br i1 %same, label %exit, label %add
add:
  %more = add i64 %count, 1
  %at = call ptr @title_at(ptr %latest, i64 %more)
  store atomic ptr %title, ptr %at monotonic, align 8
  store atomic i64 %more, ptr %count.at monotonic, align 8
  br label %exit
exit:
  ret void
}

; Where the title of the kernel with a number is, or of one that many before.
define internal ptr @title_at(ptr %latest, i64 %number) nounwind alwaysinline {
  %titles = call ptr @LatestKernels.at_titles(ptr %latest)
  %kept = call i64 @LATEST_KERNELS()
  %place = urem i64 %number, %kept
  %at = getelementptr ptr, ptr %titles, i64 %place
  ret ptr %at
}

; Writes the report of a signal but SIGILL and SIGFPE, unless it has been written.
define internal void @report_latest(i32 %signal) nounwind {
entry:
  %latest = load ptr, ptr @latest, align 8
  %off = icmp eq ptr %latest, null
  br i1 %off, label %exit, label %choose
choose:
  %name = call ptr @signal_name(i32 %signal)
  %no.memory = icmp eq ptr %name, null
  br i1 %no.memory, label %exit, label %look
look:
  %count = call i64 @LatestKernels.count(ptr %latest)
  %none = icmp eq i64 %count, 0
  br i1 %none, label %exit, label %claim
claim:
  %told.at = call ptr @LatestKernels.at_told(ptr %latest)
  %before = atomicrmw xchg ptr %told.at, i64 1 seq_cst, align 8
  %told = icmp ne i64 %before, 0
  br i1 %told, label %exit, label %tell
tell:
  call void @put(ptr @later.start)
  call void @put(ptr %name)
  call void @put(ptr @later.title)
  call void @put_titles(ptr %latest, i64 %count)
  call void @put(ptr @later.cause)
  call void @put(ptr @later.advice)
  call void @put(ptr @later.setting)
  br label %exit
exit:
  ret void
}

; Null for a signal that has nothing to do with memory.
define internal ptr @signal_name(i32 %signal) nounwind {
  %sigbus = call i64 @SIGBUS()
  %bus = trunc i64 %sigbus to i32
  %is.bus = icmp eq i32 %signal, %bus
  %other = select i1 %is.bus, ptr @later.sigbus, ptr null
  %is.segv = icmp eq i32 %signal, 11
  %memory = select i1 %is.segv, ptr @later.sigsegv, ptr %other
  %is.abrt = icmp eq i32 %signal, 6
  %name = select i1 %is.abrt, ptr @later.sigabrt, ptr %memory
  ret ptr %name
}

; A line for each kernel, the latest first.
define internal void @put_titles(ptr %latest, i64 %count) nounwind {
entry:
  %kept = call i64 @LATEST_KERNELS()
  %lines = call i64 @llvm.umin.i64(i64 %count, i64 %kept)
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %line ]
  %more = icmp ult i64 %i, %lines
  br i1 %more, label %line, label %exit
line:
  %number = sub i64 %count, %i
  %at = call ptr @title_at(ptr %latest, i64 %number)
  %title = load ptr, ptr %at, align 8
  call void @put(ptr @later.indent)
  call void @put(ptr %title)
  call void @put(ptr @later.newline)
  %next = add i64 %i, 1
  br label %test
exit:
  ret void
}

; Writes a text to stderr.
define internal void @put(ptr %text) nounwind {
  %length = call i64 @strlen(ptr %text)
  call i64 @write(i32 2, ptr %text, i64 %length)
  ret void
}
