; The launcher of one kernel in a shared library, as programs of AOTInductor call it. They have no
; Python, and may have no PyTorch beside libtorch: threads are those of the OpenMP that libtorch
; uses, and a failed assertion is its c10::Error. `shared_libraries.py` gives, for the kernel,
;
;   @pack           stores the arguments, as PyTorch passes them, into slots of 8 bytes
;   @SLOTS          how many slots there are
;   @SCRATCH        bytes of scratch that a thread needs
;   @ALONE          programs of the largest grid that the caller runs by itself
;   @TOGETHER       1 if all programs must run at a time, since they wait for each other
;   @kernel.title   its name, a text

@library.torch = private constant [16 x i8] c"libtorch_cpu.so\00"
@name.parallel = private constant [14 x i8] c"GOMP_parallel\00"
@name.most = private constant [20 x i8] c"omp_get_max_threads\00"
@name.thread = private constant [19 x i8] c"omp_get_thread_num\00"
@name.team = private constant [20 x i8] c"omp_get_num_threads\00"
@name.error = private constant [42 x i8] c"_ZN3c106detail14torchCheckFailEPKcS2_jS2_\00"
@here = private constant [11 x i8] c"Tilewright\00"
@line = private constant [4 x i8] c"%s\0A\00"
@told = private constant [55 x i8] c"%s failed in program (%d, %d, %d), at (%d, %d, %d): %s\00"
@cannot.print = private constant [58 x i8] c"device_print needs Python, which a shared library has not\00"
@no.memory = private constant [26 x i8] c"no memory for the scratch\00"
@few.threads = private constant [55 x i8] c"programs wait for each other, and have too few threads\00"

@omp.parallel = internal global ptr null, align 8
@omp.most = internal global ptr null, align 8
@omp.thread = internal global ptr null, align 8
@omp.team = internal global ptr null, align 8
@torch.error = internal global ptr null, align 8

; Of the first failure: 0 none, 1 being written, 2 there, 3 being read.
@failure.state = internal global i32 0, align 4
@failure.text = internal global ptr null, align 8
@failure.place = internal global [6 x i32] zeroinitializer, align 4
@console = internal constant [2 x ptr] [ptr @fail, ptr @print], align 8

@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }]
    [{ i32, ptr, ptr } { i32 65535, ptr @resolve, ptr null }]

declare ptr @dlopen(ptr, i32)
declare ptr @dlsym(ptr, ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @snprintf(ptr, i64, ptr, ...)
declare i32 @dprintf(i32, ptr, ...)
declare void @abort() noreturn

; When the library is loaded: finds what libtorch has, if the process has a libtorch.
define internal void @resolve() nounwind {
entry:
  %flags.wide = call i64 @LOADED_ALREADY()
  %flags = trunc i64 %flags.wide to i32
  %torch = call ptr @dlopen(ptr @library.torch, i32 %flags)
  %missing = icmp eq ptr %torch, null
  br i1 %missing, label %exit, label %look
look:
  %parallel = call ptr @dlsym(ptr %torch, ptr @name.parallel)
  store ptr %parallel, ptr @omp.parallel, align 8
  %most = call ptr @dlsym(ptr %torch, ptr @name.most)
  store ptr %most, ptr @omp.most, align 8
  %thread = call ptr @dlsym(ptr %torch, ptr @name.thread)
  store ptr %thread, ptr @omp.thread, align 8
  %team = call ptr @dlsym(ptr %torch, ptr @name.team)
  store ptr %team, ptr @omp.team, align 8
  %error = call ptr @dlsym(ptr %torch, ptr @name.error)
  store ptr %error, ptr @torch.error, align 8
  br label %exit
exit:
  ret void
}

; Runs the grid (%x, %y, %z) of a kernel, whose function is %code.
;   %threads  is not looked at: PyTorch 2.13 always passes 1, and means the number that it uses
;   %args     of each parameter of the source: a pointer itself, the address of a number, or null
; A failure is thrown as an exception of C++, so this function may unwind.
define void @run_from_nativert(i32 %x, i32 %y, i32 %z, i32 %threads, ptr %args, ptr %code) uwtable {
entry:
  %job = alloca %LibraryJob, align 8
  %count = call i64 @SLOTS()
  %room = add i64 %count, 1
  %slots = alloca i64, i64 %room, align 8
  call void @pack(ptr %args, ptr %slots)
  %last = getelementptr i64, ptr %slots, i64 %count
  store ptr @console, ptr %last, align 8
  %x.wide = zext i32 %x to i64
  %y.wide = zext i32 %y to i64
  %z.wide = zext i32 %z to i64
  %xy = mul i64 %x.wide, %y.wide
  %total = mul i64 %xy, %z.wide
  %grid = call ptr @LibraryJob.at_grid(ptr %job)
  store i32 %x, ptr %grid, align 4
  %grid.y = getelementptr i32, ptr %grid, i64 1
  store i32 %y, ptr %grid.y, align 4
  %grid.z = getelementptr i32, ptr %grid, i64 2
  store i32 %z, ptr %grid.z, align 4
  call void @LibraryJob.set_code(ptr %job, ptr %code)
  call void @LibraryJob.set_slots(ptr %job, ptr %slots)
  call void @LibraryJob.set_total(ptr %job, i64 %total)
  call void @LibraryJob.set_poll(ptr %job, i32 0)
  %team = call i32 @team_size(i64 %total)
  %one = icmp eq i32 %team, 1
  br i1 %one, label %alone, label %parallel
alone:
  call void @run_range(ptr %job, i64 0, i64 %total)
  br label %check
parallel:
  %start = load ptr, ptr @omp.parallel, align 8
  call void %start(ptr @work, ptr %job, i32 %team, i32 0)
  br label %check
check:
  %state = load atomic i32, ptr @failure.state acquire, align 4
  %failed = icmp eq i32 %state, 2
  br i1 %failed, label %report, label %exit
report:
  call void @report()
  br label %exit
exit:
  ret void
}

; How many threads share a grid: one where it is small, or where there is no OpenMP.
define internal i32 @team_size(i64 %total) nounwind {
entry:
  %start = load ptr, ptr @omp.parallel, align 8
  %serial = icmp eq ptr %start, null
  %most.alone = call i64 @ALONE()
  %small = icmp ule i64 %total, %most.alone
  %few = icmp ule i64 %total, 1
  %short = or i1 %small, %few
  %alone = or i1 %serial, %short
  br i1 %alone, label %single, label %ask
single:
  ret i32 1
ask:
  %programs = trunc i64 %total to i32
  %together = call i64 @TOGETHER()
  %all = icmp ne i64 %together, 0
  br i1 %all, label %each, label %some
each:
  ret i32 %programs
some:
  %most.function = load ptr, ptr @omp.most, align 8
  %most = call i32 %most.function()
  %most.wide = zext i32 %most to i64
  %least = call i64 @llvm.umin.i64(i64 %total, i64 %most.wide)
  %size = trunc i64 %least to i32
  ret i32 %size
}

; What each thread of a team does: its part of the grid, consecutive programs.
define internal void @work(ptr %job) nounwind {
entry:
  %thread.function = load ptr, ptr @omp.thread, align 8
  %thread = call i32 %thread.function()
  %team.function = load ptr, ptr @omp.team, align 8
  %team = call i32 %team.function()
  %thread.wide = zext i32 %thread to i64
  %team.wide = zext i32 %team to i64
  %total = call i64 @LibraryJob.total(ptr %job)
  %together = call i64 @TOGETHER()
  %all = icmp ne i64 %together, 0
  %less = icmp ult i64 %team.wide, %total
  %stuck = and i1 %all, %less
  br i1 %stuck, label %refuse, label %run
refuse: ; each thread does, so none waits
  call void @fail(ptr @few.threads, i32 0, i64 0, i32 -1, i32 -1, i32 -1, i32 0, i32 0, i32 0)
  ret void
run:
  %following = add i64 %thread.wide, 1
  %begin.scaled = mul i64 %total, %thread.wide
  %begin = udiv i64 %begin.scaled, %team.wide
  %end.scaled = mul i64 %total, %following
  %end = udiv i64 %end.scaled, %team.wide
  call void @run_range(ptr %job, i64 %begin, i64 %end)
  ret void
}

; Runs the programs %begin ... %end - 1 on this thread.
define internal void @run_range(ptr %job, i64 %begin, i64 %end) nounwind {
entry:
  %any = icmp ult i64 %begin, %end
  br i1 %any, label %reserve, label %exit
reserve:
  %bytes = call i64 @SCRATCH()
  %padded = add i64 %bytes, 127 ; one line at least, and a multiple of lines
  %lines = and i64 %padded, -64
  %area = call ptr @aligned_alloc(i64 64, i64 %lines)
  %missing = icmp eq ptr %area, null
  br i1 %missing, label %refuse, label %run
refuse:
  call void @fail(ptr @no.memory, i32 0, i64 0, i32 -1, i32 -1, i32 -1, i32 0, i32 0, i32 0)
  ret void
run:
  %code = call ptr @LibraryJob.code(ptr %job)
  %slots = call ptr @LibraryJob.slots(ptr %job)
  %grid = call ptr @LibraryJob.at_grid(ptr %job)
  %poll = call ptr @LibraryJob.at_poll(ptr %job)
  call i64 %code(ptr %slots, i64 %begin, i64 %end, ptr %grid, ptr %area, ptr %poll)
  call void @free(ptr %area)
  br label %exit
exit:
  ret void
}

; The console of the kernel: keeps the first failure of a launch.
define internal void @fail(ptr %text, i32 %kind, i64 %bits, i32 %i, i32 %j, i32 %k, i32 %x, i32 %y,
                           i32 %z) nounwind {
entry:
  %swap = cmpxchg ptr @failure.state, i32 0, i32 1 acq_rel monotonic, align 4
  %first = extractvalue { i32, i1 } %swap, 1
  br i1 %first, label %keep, label %exit
keep:
  store ptr %text, ptr @failure.text, align 8
  store i32 %i, ptr @failure.place, align 4
  store i32 %j, ptr getelementptr (i32, ptr @failure.place, i64 1), align 4
  store i32 %k, ptr getelementptr (i32, ptr @failure.place, i64 2), align 4
  store i32 %x, ptr getelementptr (i32, ptr @failure.place, i64 3), align 4
  store i32 %y, ptr getelementptr (i32, ptr @failure.place, i64 4), align 4
  store i32 %z, ptr getelementptr (i32, ptr @failure.place, i64 5), align 4
  store atomic i32 2, ptr @failure.state release, align 4
  br label %exit
exit:
  ret void
}

; What would be printed is formatted by Python where there is one; here it is a failure.
define internal void @print(ptr %text, i32 %kind, i64 %bits, i32 %i, i32 %j, i32 %k, i32 %x, i32 %y,
                            i32 %z) nounwind {
  call void @fail(ptr @cannot.print, i32 0, i64 0, i32 -1, i32 -1, i32 -1, i32 %x, i32 %y, i32 %z)
  ret void
}

; Throws the failure; without libtorch it is written to stderr, and the process ends.
define internal void @report() uwtable {
entry:
  %swap = cmpxchg ptr @failure.state, i32 2, i32 3 acq_rel monotonic, align 4
  %ours = extractvalue { i32, i1 } %swap, 1
  br i1 %ours, label %write, label %exit
write:
  %message = alloca [1024 x i8], align 16
  %text = load ptr, ptr @failure.text, align 8
  %i = load i32, ptr @failure.place, align 4
  %j = load i32, ptr getelementptr (i32, ptr @failure.place, i64 1), align 4
  %k = load i32, ptr getelementptr (i32, ptr @failure.place, i64 2), align 4
  %x = load i32, ptr getelementptr (i32, ptr @failure.place, i64 3), align 4
  %y = load i32, ptr getelementptr (i32, ptr @failure.place, i64 4), align 4
  %z = load i32, ptr getelementptr (i32, ptr @failure.place, i64 5), align 4
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %message, i64 1024, ptr @told, ptr @kernel.title,
                                          i32 %x, i32 %y, i32 %z, i32 %i, i32 %j, i32 %k, ptr %text)
  store atomic i32 0, ptr @failure.state release, align 4
  %throw = load ptr, ptr @torch.error, align 8
  %missing = icmp eq ptr %throw, null
  br i1 %missing, label %end, label %raise
raise:
  call void %throw(ptr @kernel.title, ptr @here, i32 0, ptr %message)
  unreachable
end:
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @line, ptr %message)
  call void @abort()
  unreachable
exit:
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
