; Generated from thread_pool.c by scripts/compile_native.py.

%union.SigAction = type { ptr, [152 x i8] }
%struct.anon = type { ptr, ptr, i64, i64, i64, i64, i64, ptr, i64, [3 x i32], [44 x i8], i64, [120 x i8], i64, [120 x i8], i32, i32, i32, i32, i32, i32, i32, [100 x i8], %struct.Mutex, %struct.Mutex, %struct.Mutex, %struct.Mutex, %struct.Mutex, i32, i32, i64, i32, i32, i64, i64, i32, [84 x i8], i32, i32, i64, %struct.RaisedError, [88 x i8], [1024 x %struct.Ticket], [1024 x %struct.ThreadSlot] }
%struct.Mutex = type { [128 x i8] }
%struct.RaisedError = type { ptr, ptr, ptr }
%struct.Ticket = type { i64, [120 x i8] }
%struct.ThreadSlot = type { i64, ptr, ptr, i64, i64, [88 x i8] }
%struct.CpuSet = type { [16 x i64] }

@latest = internal global ptr null, align 8
@sigaction_flags_at = external constant i64, align 8
@sigaction_flags = external constant i32, align 4
@sigbus = external constant i32, align 4
@previous_actions = internal global [32 x %union.SigAction] zeroinitializer, align 16
@pool = internal global %struct.anon zeroinitializer, align 128
@reporter = internal global i64 0, align 8
@fault_address_at = external constant i64, align 8
@.str = private constant [39 x i8] c"\0Atilewright: %s in %s\0A  at address %p\0A\00", align 1
@.str.1 = private constant [62 x i8] c"  programs %lld to %lld (x fastest) of the grid (%d, %d, %d)\0A\00", align 1
@.str.2 = private constant [131 x i8] c"An access outside the arrays is the usual cause. TILEWRIGHT_CHECK=bounds\0Achecks every access, and names the line of a wrong one.\0A\0A\00", align 1
@.str.3 = private constant [51 x i8] c"SIGILL: an instruction that this CPU does not have\00", align 1
@.str.4 = private constant [75 x i8] c"SIGFPE: an integer division by zero, or one whose quotient is out of range\00", align 1
@.str.5 = private constant [47 x i8] c"SIGSEGV: an access to memory that is not there\00", align 1
@.str.6 = private constant [46 x i8] c"SIGBUS: an access to memory that is not there\00", align 1
@.str.7 = private constant [14 x i8] c"  %s = %#llx\0A\00", align 1
@.str.8 = private constant [11 x i8] c"  %s = %g\0A\00", align 1
@.str.9 = private constant [31 x i8] c"  %s = %#llx (bits of a half)\0A\00", align 1
@.str.10 = private constant [13 x i8] c"  %s = %lld\0A\00", align 1
@.str.11 = private constant [14 x i8] c"\0Atilewright: \00", align 1
@.str.12 = private constant [61 x i8] c", but not in a kernel. The kernels that were launched last:\0A\00", align 1
@.str.13 = private constant [3 x i8] c"  \00", align 1
@.str.14 = private constant [2 x i8] c"\0A\00", align 1
@.str.15 = private constant [211 x i8] c"One that stores outside its arrays damages memory that may be used much later.\0ATILEWRIGHT_CHECK=bounds checks every access, and names the line of a wrong one;\0ATILEWRIGHT_CRASH_REPORTS=0 turns this report off.\0A\0A\00", align 1
@.str.16 = private constant [8 x i8] c"SIGABRT\00", align 1
@.str.17 = private constant [8 x i8] c"SIGSEGV\00", align 1
@.str.18 = private constant [7 x i8] c"SIGBUS\00", align 1
@sig_setmask = external constant i32, align 4
@blocked_signals = external constant [128 x i8], align 16
@worker_cpus = internal global [1024 x i32] zeroinitializer, align 128

define void @tw_report_crashes(ptr %0) nounwind {
  %2 = alloca %union.SigAction, align 16
  %3 = alloca [5 x i32], align 16
  store ptr %0, ptr @latest, align 8
  call void @llvm.memset.p0.i64(ptr align 16 %2, i8 0, i64 160, i1 false)
  store ptr @crashed, ptr %2, align 16
  %4 = load i64, ptr @sigaction_flags_at, align 8
  %5 = getelementptr inbounds i8, ptr %2, i64 %4
  %6 = load i32, ptr @sigaction_flags, align 4
  store i32 %6, ptr %5, align 1
  store i32 4, ptr %3, align 16
  %7 = getelementptr inbounds nuw i8, ptr %3, i64 4
  store i32 6, ptr %7, align 4
  %8 = getelementptr inbounds nuw i8, ptr %3, i64 8
  store i32 8, ptr %8, align 8
  %9 = getelementptr inbounds nuw i8, ptr %3, i64 12
  store i32 11, ptr %9, align 4
  %10 = getelementptr inbounds nuw i8, ptr %3, i64 16
  %11 = load i32, ptr @sigbus, align 4
  store i32 %11, ptr %10, align 16
  br label %13

12:
  ret void

13:
  %14 = phi i64 [ 0, %1 ], [ %20, %13 ]
  %15 = getelementptr inbounds nuw i32, ptr %3, i64 %14
  %16 = load i32, ptr %15, align 4
  %17 = sext i32 %16 to i64
  %18 = getelementptr inbounds %union.SigAction, ptr @previous_actions, i64 %17
  %19 = call i32 @sigaction(i32 %16, ptr %2, ptr %18)
  %20 = add nuw nsw i64 %14, 1
  %21 = icmp eq i64 %20, 5
  br i1 %21, label %12, label %13
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)

define internal void @crashed(i32 %0, ptr %1, ptr %2) nounwind {
  %4 = call i64 @pthread_self()
  %5 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 404), align 4
  %6 = icmp sgt i32 %5, 0
  br i1 %6, label %7, label %109

7:
  %8 = zext nneg i32 %5 to i64
  br label %9

9:
  %10 = phi i64 [ 0, %7 ], [ %19, %18 ]
  %11 = getelementptr inbounds nuw %struct.ThreadSlot, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132480), i64 %10
  %12 = load volatile i64, ptr %11, align 128
  %13 = icmp eq i64 %12, %4
  br i1 %13, label %14, label %18

14:
  %15 = getelementptr inbounds nuw i8, ptr %11, i64 8
  %16 = load volatile ptr, ptr %15, align 8
  %17 = icmp eq ptr %16, null
  br i1 %17, label %18, label %21

18:
  %19 = add nuw nsw i64 %10, 1
  %20 = icmp eq i64 %19, %8
  br i1 %20, label %109, label %9

21:
  %22 = getelementptr inbounds nuw i8, ptr %11, i64 8
  %23 = icmp eq i32 %0, 6
  br i1 %23, label %115, label %24

24:
  %25 = cmpxchg ptr @reporter, i64 0, i64 %4 seq_cst seq_cst, align 8
  %26 = extractvalue { i64, i1 } %25, 1
  br i1 %26, label %27, label %104

27:
  %28 = load ptr, ptr %22, align 8
  %29 = load i64, ptr @fault_address_at, align 8
  %30 = getelementptr inbounds i8, ptr %1, i64 %29
  %31 = load ptr, ptr %30, align 1
  switch i32 %0, label %34 [
    i32 4, label %35
    i32 8, label %32
    i32 11, label %33
  ]

32:
  br label %35

33:
  br label %35

34:
  br label %35

35:
  %36 = phi ptr [ @.str.6, %34 ], [ @.str.5, %33 ], [ @.str.4, %32 ], [ @.str.3, %27 ]
  %37 = getelementptr inbounds nuw i8, ptr %28, i64 8
  %38 = load ptr, ptr %37, align 8
  %39 = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @.str, ptr %36, ptr %38, ptr %31)
  %40 = getelementptr inbounds nuw i8, ptr %11, i64 24
  %41 = load i64, ptr %40, align 8
  %42 = getelementptr inbounds nuw i8, ptr %11, i64 32
  %43 = load i64, ptr %42, align 8
  %44 = add i64 %43, -1
  %45 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 72), align 8
  %46 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 76), align 4
  %47 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 80), align 16
  %48 = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @.str.1, i64 %41, i64 %44, i32 %45, i32 %46, i32 %47)
  %49 = getelementptr inbounds nuw i8, ptr %28, i64 24
  %50 = load ptr, ptr %49, align 8
  %51 = getelementptr inbounds nuw i8, ptr %28, i64 32
  %52 = load ptr, ptr %51, align 8
  %53 = getelementptr inbounds nuw i8, ptr %11, i64 16
  %54 = load ptr, ptr %53, align 8
  %55 = getelementptr inbounds nuw i8, ptr %28, i64 16
  %56 = load i64, ptr %55, align 8
  %57 = icmp sgt i64 %56, 0
  br i1 %57, label %58, label %101

58:
  %59 = phi i64 [ %98, %97 ], [ 0, %35 ]
  %60 = getelementptr inbounds nuw ptr, ptr %50, i64 %59
  %61 = load ptr, ptr %60, align 8
  %62 = getelementptr inbounds nuw i8, ptr %52, i64 %59
  %63 = load i8, ptr %62, align 1
  %64 = getelementptr inbounds nuw i64, ptr %54, i64 %59
  %65 = load i64, ptr %64, align 8
  switch i8 %63, label %94 [
    i8 80, label %66
    i8 81, label %66
    i8 102, label %68
    i8 100, label %73
    i8 101, label %76
    i8 98, label %79
    i8 104, label %82
    i8 105, label %85
    i8 63, label %88
    i8 66, label %88
    i8 72, label %90
    i8 73, label %92
  ]

66:
  %67 = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @.str.7, ptr %61, i64 %65)
  br label %97

68:
  %69 = trunc i64 %65 to i32
  %70 = bitcast i32 %69 to float
  %71 = fpext float %70 to double
  %72 = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @.str.8, ptr %61, double %71)
  br label %97

73:
  %74 = bitcast i64 %65 to double
  %75 = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @.str.8, ptr %61, double %74)
  br label %97

76:
  %77 = and i64 %65, 65535
  %78 = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @.str.9, ptr %61, i64 %77)
  br label %97

79:
  %80 = shl i64 %65, 56
  %81 = ashr exact i64 %80, 56
  br label %94

82:
  %83 = shl i64 %65, 48
  %84 = ashr exact i64 %83, 48
  br label %94

85:
  %86 = shl i64 %65, 32
  %87 = ashr exact i64 %86, 32
  br label %94

88:
  %89 = and i64 %65, 255
  br label %94

90:
  %91 = and i64 %65, 65535
  br label %94

92:
  %93 = and i64 %65, 4294967295
  br label %94

94:
  %95 = phi i64 [ %93, %92 ], [ %81, %79 ], [ %84, %82 ], [ %87, %85 ], [ %89, %88 ], [ %91, %90 ], [ %65, %58 ]
  %96 = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @.str.10, ptr %61, i64 %95)
  br label %97

97:
  %98 = add nuw nsw i64 %59, 1
  %99 = load i64, ptr %55, align 8
  %100 = icmp slt i64 %98, %99
  br i1 %100, label %58, label %101

101:
  %102 = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @.str.2)
  %103 = call i32 @usleep(i32 200000)
  br label %158

104:
  %105 = extractvalue { i64, i1 } %25, 0
  %106 = icmp eq i64 %105, %4
  br i1 %106, label %158, label %107

107:
  %108 = call i32 @usleep(i32 1000)
  br label %107

109:
  switch i32 %0, label %111 [
    i32 6, label %115
    i32 11, label %110
  ]

110:
  br label %115

111:
  %112 = load i32, ptr @sigbus, align 4
  %113 = icmp eq i32 %0, %112
  %114 = select i1 %113, ptr @.str.18, ptr null
  br label %115

115:
  %116 = phi ptr [ %114, %111 ], [ @.str.17, %110 ], [ @.str.16, %109 ], [ @.str.16, %21 ]
  %117 = load ptr, ptr @latest, align 8
  %118 = icmp ne ptr %117, null
  %119 = icmp ne ptr %116, null
  %120 = select i1 %118, i1 %119, i1 false
  br i1 %120, label %121, label %158

121:
  %122 = load i64, ptr %117, align 8
  %123 = icmp eq i64 %122, 0
  br i1 %123, label %158, label %124

124:
  %125 = getelementptr inbounds nuw i8, ptr %117, i64 40
  %126 = atomicrmw xchg ptr %125, i64 1 seq_cst, align 8
  %127 = icmp eq i64 %126, 0
  br i1 %127, label %128, label %158

128:
  %129 = call i64 @strlen(ptr @.str.11)
  %130 = call i64 @write(i32 2, ptr @.str.11, i64 %129)
  %131 = call i64 @strlen(ptr %116)
  %132 = call i64 @write(i32 2, ptr %116, i64 %131)
  %133 = call i64 @strlen(ptr @.str.12)
  %134 = call i64 @write(i32 2, ptr @.str.12, i64 %133)
  %135 = load ptr, ptr @latest, align 8
  %136 = load i64, ptr %135, align 8
  %137 = call i64 @llvm.umin.i64(i64 %136, i64 4)
  %138 = icmp eq i64 %136, 0
  br i1 %138, label %139, label %142

139:
  %140 = call i64 @strlen(ptr @.str.15)
  %141 = call i64 @write(i32 2, ptr @.str.15, i64 %140)
  br label %158

142:
  %143 = phi i64 [ %156, %142 ], [ 0, %128 ]
  %144 = call i64 @strlen(ptr @.str.13)
  %145 = call i64 @write(i32 2, ptr @.str.13, i64 %144)
  %146 = load ptr, ptr @latest, align 8
  %147 = getelementptr inbounds nuw i8, ptr %146, i64 8
  %148 = sub nuw i64 %136, %143
  %149 = and i64 %148, 3
  %150 = getelementptr inbounds nuw ptr, ptr %147, i64 %149
  %151 = load ptr, ptr %150, align 8
  %152 = call i64 @strlen(ptr %151)
  %153 = call i64 @write(i32 2, ptr %151, i64 %152)
  %154 = call i64 @strlen(ptr @.str.14)
  %155 = call i64 @write(i32 2, ptr @.str.14, i64 %154)
  %156 = add nuw nsw i64 %143, 1
  %157 = icmp eq i64 %156, %137
  br i1 %157, label %139, label %142

158:
  %159 = sext i32 %0 to i64
  %160 = getelementptr inbounds %union.SigAction, ptr @previous_actions, i64 %159
  %161 = call i32 @sigaction(i32 %0, ptr %160, ptr null)
  %162 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %163 = load i32, ptr %162, align 4
  %164 = icmp slt i32 %163, 1
  br i1 %164, label %165, label %167

165:
  %166 = call i32 @raise(i32 %0)
  br label %167

167:
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)

declare i32 @sigaction(i32, ptr, ptr)

define i32 @tw_launch(ptr %0, ptr %1, i32 %2, i32 %3, i32 %4, i64 %5) nounwind {
  %7 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1280) seq_cst, align 128
  %8 = icmp ne i32 %7, 0
  %9 = load volatile i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132480), align 128
  %10 = call i64 @pthread_self()
  %11 = icmp eq i64 %9, %10
  %12 = and i1 %8, %11
  br i1 %12, label %16, label %13

13:
  %14 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 512))
  %15 = call fastcc i32 @launch_and_unlock(ptr %0, ptr %1, i32 %2, i32 %3, i32 %4, i64 %5)
  br label %16

16:
  %17 = phi i32 [ %15, %13 ], [ 3, %6 ]
  ret i32 %17
}

declare i32 @pthread_mutex_lock(ptr)

define internal fastcc i32 @launch_and_unlock(ptr %0, ptr %1, i32 %2, i32 %3, i32 %4, i64 %5) nounwind {
  %7 = alloca %struct.CpuSet, align 8
  %8 = alloca %struct.CpuSet, align 8
  %9 = alloca %struct.CpuSet, align 8
  %10 = alloca i64, align 8
  %11 = alloca [128 x i8], align 16
  %12 = alloca i64, align 8
  %13 = alloca [128 x i8], align 16
  %14 = alloca ptr, align 8
  %15 = sext i32 %2 to i64
  %16 = sext i32 %3 to i64
  %17 = mul nsw i64 %16, %15
  %18 = sext i32 %4 to i64
  %19 = mul i64 %17, %18
  %20 = icmp slt i64 %19, 1
  br i1 %20, label %317, label %21

21:
  %22 = load i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 64), align 64
  %23 = icmp ugt i64 %5, %22
  br i1 %23, label %24, label %39

24:
  %25 = icmp ugt i64 %5, 1099511627776
  br i1 %25, label %317, label %26

26:
  %27 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 56), align 8
  call void @free(ptr %27)
  store atomic i64 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 56) monotonic, align 8
  store atomic i64 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 64) monotonic, align 64
  %28 = add nuw nsw i64 %5, 65535
  %29 = and i64 %28, 4398046445568
  %30 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 404), align 4
  %31 = sext i32 %30 to i64
  %32 = mul i64 %29, %31
  %33 = call i32 @posix_memalign(ptr %14, i64 4096, i64 %32)
  %34 = icmp eq i32 %33, 0
  br i1 %34, label %35, label %38

35:
  %36 = load ptr, ptr %14, align 8
  %37 = ptrtoint ptr %36 to i64
  store atomic i64 %37, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 56) monotonic, align 8
  store atomic i64 %29, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 64) monotonic, align 64
  br label %39

38:
  br label %317

39:
  %40 = load ptr, ptr @latest, align 8
  %41 = icmp eq ptr %40, null
  br i1 %41, label %57, label %42

42:
  %43 = load atomic i64, ptr %40 monotonic, align 8
  %44 = getelementptr inbounds nuw i8, ptr %40, i64 8
  %45 = and i64 %43, 3
  %46 = getelementptr inbounds nuw ptr, ptr %44, i64 %45
  %47 = load atomic i64, ptr %46 monotonic, align 8
  %48 = inttoptr i64 %47 to ptr
  %49 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %50 = load ptr, ptr %49, align 8
  %51 = icmp eq ptr %50, %48
  br i1 %51, label %57, label %52

52:
  %53 = add i64 %43, 1
  %54 = and i64 %53, 3
  %55 = getelementptr inbounds nuw ptr, ptr %44, i64 %54
  %56 = ptrtoint ptr %50 to i64
  store atomic i64 %56, ptr %55 monotonic, align 8
  store atomic i64 %53, ptr %40 monotonic, align 8
  br label %57

57:
  %58 = call i64 @pthread_self()
  store volatile i64 %58, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132480), align 128
  store atomic i32 %2, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 72) monotonic, align 8
  store atomic i32 %3, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 76) monotonic, align 4
  store atomic i32 %4, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 80) monotonic, align 16
  %59 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %60 = load i64, ptr %59, align 8
  store atomic i64 %60, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1160) monotonic, align 8
  %61 = icmp eq i64 %19, 1
  %62 = icmp eq i64 %60, 0
  %63 = select i1 %61, i1 %62, i1 false
  br i1 %63, label %64, label %68

64:
  %65 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 56), align 8
  store volatile i64 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132504), align 8
  store volatile i64 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132512), align 32
  store volatile ptr %1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132496), align 16
  store volatile ptr %0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132488), align 8
  %66 = load ptr, ptr %0, align 8
  %67 = call i64 %66(ptr %1, i64 0, i64 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 72), ptr %65, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152))
  store volatile ptr null, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132488), align 8
  br label %317

68:
  store atomic i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) monotonic, align 4
  store atomic i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152) monotonic, align 128
  %69 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1288), i64 1 seq_cst, align 8
  store atomic i32 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1280) seq_cst, align 128
  %70 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1284) seq_cst, align 4
  switch i32 %70, label %85 [
    i32 0, label %71
    i32 2, label %81
  ]

71:
  store atomic i32 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1284) seq_cst, align 4
  %72 = load i32, ptr @sig_setmask, align 4
  %73 = call i32 @pthread_sigmask(i32 %72, ptr @blocked_signals, ptr %13)
  %74 = call i32 @pthread_create(ptr %12, ptr null, ptr @ticker, ptr null)
  %75 = call i32 @pthread_sigmask(i32 %72, ptr %13, ptr null)
  %76 = icmp eq i32 %74, 0
  br i1 %76, label %77, label %80

77:
  %78 = load i64, ptr %12, align 8
  %79 = call i32 @pthread_detach(i64 %78)
  br label %80

80:
  br label %85

81:
  %82 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  store atomic i32 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1284) seq_cst, align 4
  %83 = call i32 @pthread_cond_signal(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1024))
  %84 = call i32 @pthread_mutex_unlock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  br label %85

85:
  %86 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 404), align 4
  %87 = icmp slt i32 %86, 2
  br i1 %87, label %92, label %88

88:
  %89 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %90 = load i64, ptr %89, align 8
  %91 = icmp sgt i64 %19, %90
  br i1 %91, label %113, label %92

92:
  br label %93

93:
  %94 = phi i64 [ %97, %110 ], [ 0, %92 ]
  %95 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 56), align 8
  store volatile i64 %94, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132504), align 8
  store volatile i64 %19, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132512), align 32
  store volatile ptr %1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132496), align 16
  store volatile ptr %0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132488), align 8
  %96 = load ptr, ptr %0, align 8
  %97 = call i64 %96(ptr %1, i64 %94, i64 %19, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 72), ptr %95, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152))
  store volatile ptr null, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132488), align 8
  %98 = icmp slt i64 %97, %19
  br i1 %98, label %99, label %309

99:
  %100 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1176), i64 1 monotonic, align 8
  %101 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) monotonic, align 4
  %102 = icmp eq i32 %101, 0
  br i1 %102, label %103, label %110

103:
  %104 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152), i32 1, i32 0 monotonic monotonic, align 128
  %105 = call i32 @PyGILState_Ensure()
  %106 = call i32 @PyErr_CheckSignals()
  %107 = icmp eq i32 %106, 0
  br i1 %107, label %109, label %108

108:
  call void @PyErr_Fetch(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1296), ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1304), ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1312))
  store atomic i32 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) seq_cst, align 4
  store atomic i32 2, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152) seq_cst, align 128
  br label %109

109:
  call void @PyGILState_Release(i32 %105)
  br label %110

110:
  %111 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) monotonic, align 4
  %112 = icmp eq i32 %111, 0
  br i1 %112, label %93, label %309

113:
  %114 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 400), align 16
  %115 = icmp eq i32 %114, 0
  br i1 %115, label %116, label %136

116:
  store i32 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 400), align 16
  %117 = load i32, ptr @sig_setmask, align 4
  br label %118

118:
  %119 = phi i64 [ 1, %116 ], [ %132, %129 ]
  %120 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @pool, i64 396), i32 1 seq_cst, align 4
  %121 = inttoptr i64 %119 to ptr
  %122 = call i32 @pthread_sigmask(i32 %117, ptr @blocked_signals, ptr %11)
  %123 = call i32 @pthread_create(ptr %10, ptr null, ptr @worker, ptr %121)
  %124 = call i32 @pthread_sigmask(i32 %117, ptr %11, ptr null)
  %125 = icmp eq i32 %123, 0
  br i1 %125, label %129, label %126

126:
  %127 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @pool, i64 396), i32 -1 seq_cst, align 4
  %128 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 404), align 4
  br label %136

129:
  %130 = load i64, ptr %10, align 8
  %131 = call i32 @pthread_detach(i64 %130)
  %132 = add nuw nsw i64 %119, 1
  %133 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 404), align 4
  %134 = sext i32 %133 to i64
  %135 = icmp slt i64 %132, %134
  br i1 %135, label %118, label %136

136:
  %137 = phi i32 [ %86, %113 ], [ %128, %126 ], [ %133, %129 ]
  %138 = sext i32 %137 to i64
  %139 = shl nsw i64 %138, 3
  %140 = udiv i64 %19, %139
  %141 = icmp ugt i64 %139, %19
  %142 = select i1 %141, i64 1, i64 %140
  %143 = add nsw i64 %19, -1
  %144 = add nuw i64 %143, %142
  %145 = udiv i64 %144, %142
  %146 = add i64 %145, -1
  %147 = add i64 %146, %138
  %148 = udiv i64 %147, %138
  %149 = ptrtoint ptr %0 to i64
  store atomic i64 %149, ptr @pool monotonic, align 128
  %150 = ptrtoint ptr %1 to i64
  store atomic i64 %150, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 8) monotonic, align 8
  store atomic i64 %19, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 16) monotonic, align 16
  store atomic i64 %142, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 24) monotonic, align 8
  store atomic i64 %145, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 32) monotonic, align 32
  store atomic i64 %148, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 40) monotonic, align 8
  %151 = add i64 %146, %148
  %152 = udiv i64 %151, %148
  store atomic i64 %152, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 48) monotonic, align 16
  store atomic i64 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 256) monotonic, align 128
  %153 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 128) monotonic, align 128
  %154 = add i64 %153, 1
  %155 = shl i64 %154, 32
  br label %156

156:
  %157 = phi ptr [ getelementptr inbounds nuw (i8, ptr @pool, i64 1408), %136 ], [ %162, %156 ]
  %158 = phi i64 [ %145, %136 ], [ %161, %156 ]
  %159 = call i64 @llvm.umin.i64(i64 %158, i64 %148)
  %160 = or i64 %159, %155
  store atomic i64 %160, ptr %157 release, align 8
  %161 = sub i64 %158, %159
  %162 = getelementptr inbounds nuw i8, ptr %157, i64 128
  %163 = icmp eq i64 %161, 0
  br i1 %163, label %164, label %156

164:
  store atomic i64 %154, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 128) seq_cst, align 128
  call void @llvm.memset.p0.i64(ptr align 8 %9, i8 0, i64 128, i1 false)
  %165 = icmp sgt i32 %137, 0
  br i1 %165, label %167, label %247

166:
  br i1 %191, label %194, label %247

167:
  %168 = phi i64 [ %192, %189 ], [ 0, %164 ]
  %169 = phi i1 [ %191, %189 ], [ false, %164 ]
  %170 = icmp eq i64 %168, 0
  br i1 %170, label %171, label %173

171:
  %172 = call i32 @sched_getcpu()
  br label %176

173:
  %174 = getelementptr inbounds nuw i32, ptr @worker_cpus, i64 %168
  %175 = load atomic i32, ptr %174 acquire, align 4
  br label %176

176:
  %177 = phi i32 [ %172, %171 ], [ %175, %173 ]
  %178 = icmp ugt i32 %177, 1023
  br i1 %178, label %189, label %179

179:
  %180 = lshr i32 %177, 6
  %181 = zext nneg i32 %180 to i64
  %182 = getelementptr inbounds nuw i64, ptr %9, i64 %181
  %183 = load i64, ptr %182, align 8
  %184 = and i32 %177, 63
  %185 = zext nneg i32 %184 to i64
  %186 = shl nuw i64 1, %185
  %187 = or i64 %183, %186
  store i64 %187, ptr %182, align 8
  %188 = icmp eq i64 %187, %183
  br label %189

189:
  %190 = phi i1 [ %188, %179 ], [ false, %176 ]
  %191 = or i1 %169, %190
  %192 = add nuw nsw i64 %168, 1
  %193 = icmp eq i64 %192, %138
  br i1 %193, label %166, label %167

194:
  call void @llvm.memset.p0.i64(ptr align 8 %8, i8 0, i64 128, i1 false)
  %195 = call i64 @pthread_self()
  %196 = call i32 @pthread_getaffinity_np(i64 %195, i64 128, ptr %7)
  %197 = icmp eq i32 %196, 0
  br i1 %197, label %198, label %246

198:
  %199 = phi i64 [ %209, %198 ], [ 0, %194 ]
  %200 = phi i64 [ %204, %198 ], [ 0, %194 ]
  %201 = getelementptr inbounds nuw i64, ptr %7, i64 %199
  %202 = load i64, ptr %201, align 8
  %203 = call i64 @llvm.ctpop.i64(i64 %202)
  %204 = add i64 %203, %200
  %205 = getelementptr inbounds nuw i64, ptr %9, i64 %199
  %206 = load i64, ptr %205, align 8
  %207 = xor i64 %206, -1
  %208 = and i64 %202, %207
  store i64 %208, ptr %201, align 8
  %209 = add nuw nsw i64 %199, 1
  %210 = icmp eq i64 %209, 16
  br i1 %210, label %211, label %198

211:
  %212 = icmp slt i64 %204, %138
  br i1 %212, label %246, label %213

213:
  %214 = phi i64 [ %244, %243 ], [ 0, %211 ]
  %215 = icmp eq i64 %214, 0
  br i1 %215, label %216, label %218

216:
  %217 = call i32 @sched_getcpu()
  br label %221

218:
  %219 = getelementptr inbounds nuw i32, ptr @worker_cpus, i64 %214
  %220 = load atomic i32, ptr %219 acquire, align 4
  br label %221

221:
  %222 = phi i32 [ %217, %216 ], [ %220, %218 ]
  %223 = icmp ugt i32 %222, 1023
  br i1 %223, label %243, label %224

224:
  %225 = lshr i32 %222, 6
  %226 = zext nneg i32 %225 to i64
  %227 = getelementptr inbounds nuw i64, ptr %8, i64 %226
  %228 = load i64, ptr %227, align 8
  %229 = and i32 %222, 63
  %230 = zext nneg i32 %229 to i64
  %231 = shl nuw i64 1, %230
  %232 = or i64 %228, %231
  store i64 %232, ptr %227, align 8
  %233 = icmp eq i64 %232, %228
  br i1 %233, label %234, label %243

234:
  %235 = getelementptr inbounds nuw i32, ptr @worker_cpus, i64 %214
  %236 = load atomic i32, ptr %235 monotonic, align 4
  %237 = icmp eq i32 %236, -1
  br i1 %237, label %239, label %238

238:
  store atomic i32 -1, ptr %235 release, align 4
  br label %239

239:
  %240 = getelementptr inbounds nuw %struct.ThreadSlot, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132480), i64 %214
  %241 = load i64, ptr %240, align 128
  %242 = call i32 @pthread_setaffinity_np(i64 %241, i64 128, ptr %7)
  br label %243

243:
  %244 = add nuw nsw i64 %214, 1
  %245 = icmp eq i64 %244, %138
  br i1 %245, label %246, label %213

246:
  br label %247

247:
  %248 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 384) seq_cst, align 128
  %249 = icmp eq i32 %248, 0
  br i1 %249, label %264, label %250

250:
  %251 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  %252 = call i32 @pthread_mutex_unlock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  %253 = zext i32 %248 to i64
  %254 = icmp slt i64 %146, %253
  br i1 %254, label %255, label %257

255:
  %256 = icmp sgt i64 %145, 1
  br i1 %256, label %259, label %264

257:
  %258 = call i32 @pthread_cond_broadcast(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 768))
  br label %264

259:
  %260 = phi i64 [ %262, %259 ], [ 1, %255 ]
  %261 = call i32 @pthread_cond_signal(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 768))
  %262 = add nuw nsw i64 %260, 1
  %263 = icmp eq i64 %262, %145
  br i1 %263, label %264, label %259

264:
  call fastcc void @work(i64 0)
  %265 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 408), align 8
  %266 = icmp sgt i32 %265, 0
  br i1 %266, label %267, label %279

267:
  %268 = phi i32 [ %277, %276 ], [ 0, %264 ]
  %269 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 256) acquire, align 128
  %270 = icmp eq i64 %269, %145
  br i1 %270, label %309, label %271

271:
  call void @pause_once()
  %272 = and i32 %268, 63
  %273 = icmp eq i32 %272, 63
  br i1 %273, label %274, label %276

274:
  %275 = call i32 @sched_yield()
  br label %276

276:
  %277 = add nuw nsw i32 %268, 1
  %278 = icmp eq i32 %277, %265
  br i1 %278, label %279, label %267

279:
  %280 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  store atomic i32 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 388) seq_cst, align 4
  %281 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 256) seq_cst, align 128
  %282 = icmp eq i64 %281, %145
  br i1 %282, label %307, label %283

283:
  %284 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152) seq_cst, align 128
  %285 = icmp eq i32 %284, 1
  br i1 %285, label %286, label %302

286:
  %287 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) monotonic, align 4
  %288 = icmp eq i32 %287, 0
  br i1 %288, label %289, label %302

289:
  %290 = call i32 @pthread_mutex_unlock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  %291 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) monotonic, align 4
  %292 = icmp eq i32 %291, 0
  br i1 %292, label %293, label %300

293:
  %294 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152), i32 1, i32 0 monotonic monotonic, align 128
  %295 = call i32 @PyGILState_Ensure()
  %296 = call i32 @PyErr_CheckSignals()
  %297 = icmp eq i32 %296, 0
  br i1 %297, label %299, label %298

298:
  call void @PyErr_Fetch(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1296), ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1304), ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1312))
  store atomic i32 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) seq_cst, align 4
  store atomic i32 2, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152) seq_cst, align 128
  br label %299

299:
  call void @PyGILState_Release(i32 %295)
  br label %300

300:
  %301 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  br label %304

302:
  %303 = call i32 @pthread_cond_wait(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 896), ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  br label %304

304:
  %305 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 256) seq_cst, align 128
  %306 = icmp eq i64 %305, %145
  br i1 %306, label %307, label %283

307:
  store atomic i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 388) seq_cst, align 4
  %308 = call i32 @pthread_mutex_unlock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  br label %309

309:
  store atomic i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1280) seq_cst, align 128
  %310 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152), i32 0 monotonic, align 128
  %311 = add i32 %310, -3
  store i32 %311, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1192), align 8
  %312 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) monotonic, align 4
  %313 = icmp eq i32 %312, 1
  %314 = icmp ugt i32 %310, 2
  %315 = select i1 %314, i32 4, i32 0
  %316 = select i1 %313, i32 2, i32 %315
  br label %317

317:
  %318 = phi i32 [ 0, %6 ], [ %316, %309 ], [ 0, %64 ], [ 1, %38 ], [ 1, %24 ]
  %319 = call i32 @pthread_mutex_unlock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 512))
  ret i32 %318
}

define i32 @tw_launch_packed(ptr %0, i32 %1, i32 %2, i32 %3, ptr %4) nounwind {
  %6 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %7 = load i64, ptr %6, align 8
  %8 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %9 = load i64, ptr %8, align 8
  %10 = getelementptr inbounds i64, ptr %4, i64 %9
  store i64 %7, ptr %10, align 8
  %11 = load ptr, ptr %0, align 8
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %13 = load i64, ptr %12, align 8
  %14 = call fastcc i32 @launch_with_gil(ptr %11, ptr %4, i32 %1, i32 %2, i32 %3, i64 %13)
  ret i32 %14
}

define internal fastcc i32 @launch_with_gil(ptr %0, ptr %1, i32 %2, i32 %3, i32 %4, i64 %5) nounwind {
  %7 = sext i32 %2 to i64
  %8 = sext i32 %3 to i64
  %9 = mul nsw i64 %8, %7
  %10 = sext i32 %4 to i64
  %11 = mul i64 %9, %10
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %13 = load i64, ptr %12, align 8
  %14 = icmp sgt i64 %11, %13
  br i1 %14, label %20, label %15

15:
  %16 = call i32 @pthread_mutex_trylock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 512))
  %17 = icmp eq i32 %16, 0
  br i1 %17, label %18, label %20

18:
  %19 = call fastcc i32 @launch_and_unlock(ptr %0, ptr %1, i32 %2, i32 %3, i32 %4, i64 %5)
  br label %33

20:
  %21 = call ptr @PyEval_SaveThread()
  %22 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1280) seq_cst, align 128
  %23 = icmp ne i32 %22, 0
  %24 = load volatile i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132480), align 128
  %25 = call i64 @pthread_self()
  %26 = icmp eq i64 %24, %25
  %27 = and i1 %23, %26
  br i1 %27, label %31, label %28

28:
  %29 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 512))
  %30 = call fastcc i32 @launch_and_unlock(ptr %0, ptr %1, i32 %2, i32 %3, i32 %4, i64 %5)
  br label %31

31:
  %32 = phi i32 [ %30, %28 ], [ 3, %20 ]
  call void @PyEval_RestoreThread(ptr %21)
  br label %33

33:
  %34 = phi i32 [ %19, %18 ], [ %32, %31 ]
  ret i32 %34
}

define ptr @tw_start(ptr %0, ptr %1, i64 %2) nounwind {
  %4 = load ptr, ptr %1, align 8
  %5 = call ptr @PyLong_AsVoidPtr(ptr %4)
  %6 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %7 = load ptr, ptr %6, align 8
  %8 = call ptr @PyBytes_AsString(ptr %7)
  %9 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %10 = load ptr, ptr %9, align 8
  %11 = call i64 @PyLong_AsLongLong(ptr %10)
  %12 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %13 = load ptr, ptr %12, align 8
  %14 = call i64 @PyLong_AsLongLong(ptr %13)
  %15 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %16 = load ptr, ptr %15, align 8
  %17 = call i64 @PyLong_AsLongLong(ptr %16)
  %18 = getelementptr inbounds nuw i8, ptr %1, i64 40
  %19 = load ptr, ptr %18, align 8
  %20 = call i64 @PyLong_AsLongLong(ptr %19)
  %21 = call ptr @PyErr_Occurred()
  %22 = icmp eq ptr %21, null
  br i1 %22, label %23, label %30

23:
  %24 = trunc i64 %11 to i32
  %25 = trunc i64 %14 to i32
  %26 = trunc i64 %17 to i32
  %27 = call fastcc i32 @launch_with_gil(ptr %5, ptr %8, i32 %24, i32 %25, i32 %26, i64 %20)
  %28 = zext nneg i32 %27 to i64
  %29 = call ptr @PyLong_FromLongLong(i64 %28)
  br label %30

30:
  %31 = phi ptr [ %29, %23 ], [ null, %3 ]
  ret ptr %31
}

declare ptr @PyLong_AsVoidPtr(ptr)

declare ptr @PyBytes_AsString(ptr)

declare i64 @PyLong_AsLongLong(ptr)

declare ptr @PyErr_Occurred()

declare ptr @PyLong_FromLongLong(i64)

define void @tw_configure(i32 %0, i32 %1) nounwind {
  store i64 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 48), align 16
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 400), align 16
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 396), align 4
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 392), align 8
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 388), align 4
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 384), align 128
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152), align 128
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1280), align 128
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1284), align 4
  call void @llvm.memset.p0.i64(ptr align 128 @worker_cpus, i8 -1, i64 4096, i1 false)
  %3 = call i32 @pthread_mutex_init(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 512), ptr null)
  %4 = call i32 @pthread_mutex_init(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640), ptr null)
  %5 = call i32 @pthread_cond_init(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 768), ptr null)
  %6 = call i32 @pthread_cond_init(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 896), ptr null)
  %7 = call i32 @pthread_cond_init(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1024), ptr null)
  %8 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 56), align 8
  call void @free(ptr %8)
  store ptr null, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 56), align 8
  store i64 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 64), align 64
  store i32 %0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 404), align 4
  store i32 %1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 408), align 8
  ret void
}

declare void @free(ptr)

define void @tw_reset() nounwind {
  store i64 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 48), align 16
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 400), align 16
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 396), align 4
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 392), align 8
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 388), align 4
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 384), align 128
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152), align 128
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1280), align 128
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1284), align 4
  call void @llvm.memset.p0.i64(ptr align 128 @worker_cpus, i8 -1, i64 4096, i1 false)
  %1 = call i32 @pthread_mutex_init(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 512), ptr null)
  %2 = call i32 @pthread_mutex_init(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640), ptr null)
  %3 = call i32 @pthread_cond_init(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 768), ptr null)
  %4 = call i32 @pthread_cond_init(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 896), ptr null)
  %5 = call i32 @pthread_cond_init(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1024), ptr null)
  store ptr null, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 56), align 8
  store i64 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 64), align 64
  ret void
}

define void @tw_stop() nounwind {
  %1 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 512))
  store atomic i32 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 392) seq_cst, align 8
  %2 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @pool, i64 128), i64 1 seq_cst, align 128
  br label %3

3:
  %4 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  %5 = call i32 @pthread_mutex_unlock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  %6 = call i32 @pthread_cond_broadcast(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 768))
  %7 = call i32 @sched_yield()
  %8 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 396) seq_cst, align 4
  %9 = icmp eq i32 %8, 0
  br i1 %9, label %10, label %3

10:
  store atomic i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 392) seq_cst, align 8
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 400), align 16
  %11 = call i32 @pthread_mutex_unlock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 512))
  ret void
}

declare i32 @pthread_mutex_unlock(ptr)

declare i32 @pthread_cond_broadcast(ptr)

declare i32 @sched_yield()

define void @tw_limit_waits(i32 %0) nounwind {
  store atomic i32 %0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1168) monotonic, align 16
  ret void
}

define i32 @tw_waited() nounwind {
  %1 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1192), align 8
  ret i32 %1
}

define void @tw_pause(i64 %0) nounwind {
  %2 = icmp sgt i64 %0, 0
  br i1 %2, label %4, label %3

3:
  ret void

4:
  %5 = phi i64 [ %7, %4 ], [ 0, %1 ]
  %6 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 128) acquire, align 128
  call void @pause_once()
  %7 = add nuw nsw i64 %5, 1
  %8 = icmp eq i64 %7, %0
  br i1 %8, label %3, label %4
}

declare void @pause_once()

define void @tw_raised(ptr %0) nounwind {
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %0, ptr align 16 getelementptr inbounds nuw (i8, ptr @pool, i64 1296), i64 24, i1 false)
  call void @llvm.memset.p0.i64(ptr align 16 getelementptr inbounds nuw (i8, ptr @pool, i64 1296), i8 0, i64 24, i1 false)
  ret void
}

define i32 @tw_workers() nounwind {
  %1 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 396) seq_cst, align 4
  ret i32 %1
}

declare i64 @pthread_self()

declare i32 @raise(i32)

declare i32 @usleep(i32)

declare i32 @dprintf(i32, ptr, ...)

declare i64 @write(i32, ptr, i64)

declare i64 @strlen(ptr)

declare i32 @posix_memalign(ptr, i64, i64)

define internal ptr @ticker(ptr %0) nounwind noreturn {
  br label %2

2:
  %3 = phi i32 [ 0, %1 ], [ %64, %63 ]
  %4 = phi i64 [ -1, %1 ], [ %65, %63 ]
  %5 = call i32 @usleep(i32 50000)
  %6 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1288) seq_cst, align 8
  %7 = icmp eq i64 %6, %4
  %8 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1280) seq_cst, align 128
  %9 = icmp ne i32 %8, 0
  %10 = select i1 %9, i1 %7, i1 false
  br i1 %10, label %11, label %47

11:
  %12 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  %13 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152) seq_cst, align 128
  %14 = icmp ult i32 %13, 2
  br i1 %14, label %15, label %36

15:
  %16 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 256) seq_cst, align 128
  %17 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1176) seq_cst, align 8
  %18 = add i64 %17, %16
  %19 = load i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1184), align 32
  %20 = icmp eq i64 %18, %19
  store i64 %18, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1184), align 32
  %21 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1172), align 4
  %22 = add i32 %21, 1
  %23 = select i1 %20, i32 %22, i32 0
  store i32 %23, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1172), align 4
  %24 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1168) monotonic, align 16
  %25 = icmp eq i32 %24, 0
  br i1 %25, label %33, label %26

26:
  %27 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1160) monotonic, align 8
  %28 = icmp ne i64 %27, 0
  %29 = icmp uge i32 %23, %24
  %30 = select i1 %28, i1 %29, i1 false
  %31 = freeze i1 %30
  %32 = select i1 %31, i32 2, i32 1
  br label %33

33:
  %34 = phi i32 [ 1, %15 ], [ %32, %26 ]
  %35 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152), i32 %13, i32 %34 seq_cst seq_cst, align 128
  br label %45

36:
  %37 = icmp eq i32 %13, 2
  br i1 %37, label %40, label %38

38:
  %39 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156), i32 0, i32 2 seq_cst seq_cst, align 4
  br label %45

40:
  %41 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) seq_cst, align 4
  %42 = icmp eq i32 %41, 0
  br i1 %42, label %43, label %45

43:
  %44 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152), i32 2, i32 0 seq_cst seq_cst, align 128
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1172), align 4
  br label %45

45:
  %46 = call i32 @pthread_cond_signal(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 896))
  br label %60

47:
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1172), align 4
  %48 = add nsw i32 %3, 1
  %49 = select i1 %7, i32 %48, i32 0
  %50 = icmp sgt i32 %49, 39
  br i1 %50, label %51, label %63

51:
  %52 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  store atomic i32 2, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1284) seq_cst, align 4
  %53 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1288) seq_cst, align 8
  %54 = icmp eq i64 %53, %6
  br i1 %54, label %55, label %59

55:
  %56 = call i32 @pthread_cond_wait(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1024), ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  %57 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1284) seq_cst, align 4
  %58 = icmp eq i32 %57, 2
  br i1 %58, label %55, label %60

59:
  store atomic i32 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1284) seq_cst, align 4
  br label %60

60:
  %61 = phi i64 [ %4, %45 ], [ -1, %59 ], [ -1, %55 ]
  %62 = call i32 @pthread_mutex_unlock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  br label %63

63:
  %64 = phi i32 [ %49, %47 ], [ 0, %60 ]
  %65 = phi i64 [ %6, %47 ], [ %61, %60 ]
  br label %2
}

declare i32 @pthread_cond_signal(ptr)

declare i32 @pthread_sigmask(i32, ptr, ptr)

declare i32 @pthread_create(ptr, ptr, ptr, ptr)

declare i32 @pthread_detach(i64)

declare i32 @pthread_cond_wait(ptr, ptr)

declare i32 @PyGILState_Ensure()

declare i32 @PyErr_CheckSignals()

declare void @PyErr_Fetch(ptr, ptr, ptr)

declare void @PyGILState_Release(i32)

define internal fastcc void @work(i64 %0) nounwind {
  %2 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 48) acquire, align 16
  %3 = icmp eq i64 %2, 0
  br i1 %3, label %88, label %4

4:
  %5 = urem i64 %0, %2
  %6 = getelementptr inbounds %struct.ThreadSlot, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132480), i64 %0
  %7 = getelementptr inbounds nuw i8, ptr %6, i64 24
  %8 = getelementptr inbounds nuw i8, ptr %6, i64 32
  %9 = getelementptr inbounds nuw i8, ptr %6, i64 16
  %10 = getelementptr inbounds nuw i8, ptr %6, i64 8
  %11 = icmp eq i64 %0, 0
  br label %12

12:
  %13 = phi i64 [ 0, %4 ], [ %86, %83 ]
  %14 = phi i64 [ %5, %4 ], [ %85, %83 ]
  %15 = getelementptr inbounds %struct.Ticket, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1408), i64 %14
  %16 = load atomic i64, ptr %15 acquire, align 128
  %17 = and i64 %16, 4294967295
  %18 = icmp eq i64 %17, 0
  %19 = add i64 %14, 1
  br i1 %18, label %83, label %20

20:
  %21 = phi i64 [ %81, %79 ], [ %17, %12 ]
  %22 = phi i64 [ %80, %79 ], [ %16, %12 ]
  %23 = load atomic i64, ptr @pool acquire, align 128
  %24 = inttoptr i64 %23 to ptr
  %25 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 8) acquire, align 8
  %26 = inttoptr i64 %25 to ptr
  %27 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 16) acquire, align 16
  %28 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 24) acquire, align 8
  %29 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 32) acquire, align 32
  %30 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 40) acquire, align 8
  %31 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 56) acquire, align 8
  %32 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 64) acquire, align 64
  %33 = add i64 %22, -1
  %34 = cmpxchg ptr %15, i64 %22, i64 %33 acq_rel monotonic, align 8
  %35 = extractvalue { i64, i1 } %34, 1
  br i1 %35, label %36, label %79

36:
  %37 = inttoptr i64 %31 to ptr
  %38 = mul i64 %30, %19
  %39 = call i64 @llvm.smin.i64(i64 %38, i64 %29)
  %40 = sub i64 %39, %21
  %41 = mul i64 %40, %28
  %42 = add i64 %41, %28
  %43 = call i64 @llvm.smin.i64(i64 %42, i64 %27)
  %44 = mul i64 %32, %0
  %45 = getelementptr inbounds i8, ptr %37, i64 %44
  %46 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) monotonic, align 4
  %47 = icmp eq i32 %46, 0
  br i1 %47, label %48, label %68

48:
  %49 = phi i64 [ %51, %65 ], [ %41, %36 ]
  store volatile i64 %49, ptr %7, align 8
  store volatile i64 %43, ptr %8, align 32
  store volatile ptr %26, ptr %9, align 16
  store volatile ptr %24, ptr %10, align 8
  %50 = load ptr, ptr %24, align 8
  %51 = call i64 %50(ptr %26, i64 %49, i64 %43, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 72), ptr %45, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152))
  store volatile ptr null, ptr %10, align 8
  %52 = icmp slt i64 %51, %43
  br i1 %52, label %53, label %68

53:
  %54 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1176), i64 1 monotonic, align 8
  br i1 %11, label %55, label %65

55:
  %56 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) monotonic, align 4
  %57 = icmp eq i32 %56, 0
  br i1 %57, label %58, label %65

58:
  %59 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152), i32 1, i32 0 monotonic monotonic, align 128
  %60 = call i32 @PyGILState_Ensure()
  %61 = call i32 @PyErr_CheckSignals()
  %62 = icmp eq i32 %61, 0
  br i1 %62, label %64, label %63

63:
  call void @PyErr_Fetch(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1296), ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1304), ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1312))
  store atomic i32 1, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) seq_cst, align 4
  store atomic i32 2, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1152) seq_cst, align 128
  br label %64

64:
  call void @PyGILState_Release(i32 %60)
  br label %65

65:
  %66 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 1156) monotonic, align 4
  %67 = icmp eq i32 %66, 0
  br i1 %67, label %48, label %68

68:
  %69 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @pool, i64 256), i64 1 seq_cst, align 128
  %70 = add i64 %69, 1
  %71 = icmp eq i64 %70, %29
  br i1 %71, label %72, label %79

72:
  %73 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 388) seq_cst, align 4
  %74 = icmp eq i32 %73, 0
  br i1 %74, label %83, label %75

75:
  %76 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  %77 = call i32 @pthread_mutex_unlock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  %78 = call i32 @pthread_cond_signal(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 896))
  br label %83

79:
  %80 = load atomic i64, ptr %15 acquire, align 128
  %81 = and i64 %80, 4294967295
  %82 = icmp eq i64 %81, 0
  br i1 %82, label %83, label %20

83:
  %84 = icmp eq i64 %19, %2
  %85 = select i1 %84, i64 0, i64 %19
  %86 = add nuw i64 %13, 1
  %87 = icmp eq i64 %86, %2
  br i1 %87, label %88, label %12

88:
  ret void
}

define internal ptr @worker(ptr %0) nounwind {
  %2 = ptrtoint ptr %0 to i64
  %3 = call i64 @pthread_self()
  %4 = getelementptr inbounds %struct.ThreadSlot, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 132480), i64 %2
  store volatile i64 %3, ptr %4, align 128
  %5 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 128) seq_cst, align 128
  %6 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 392) seq_cst, align 8
  %7 = icmp eq i32 %6, 0
  br i1 %7, label %8, label %47

8:
  %9 = getelementptr inbounds i32, ptr @worker_cpus, i64 %2
  br label %10

10:
  %11 = phi i64 [ %5, %8 ], [ %44, %43 ]
  %12 = call i32 @sched_getcpu()
  %13 = load atomic i32, ptr %9 monotonic, align 4
  %14 = icmp eq i32 %13, %12
  br i1 %14, label %16, label %15

15:
  store atomic i32 %12, ptr %9 release, align 4
  br label %16

16:
  call fastcc void @work(i64 %2)
  %17 = load i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 408), align 8
  %18 = icmp sgt i32 %17, 0
  br i1 %18, label %19, label %31

19:
  %20 = phi i32 [ %29, %28 ], [ 0, %16 ]
  %21 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 128) acquire, align 128
  %22 = icmp eq i64 %21, %11
  br i1 %22, label %23, label %43

23:
  call void @pause_once()
  %24 = and i32 %20, 63
  %25 = icmp eq i32 %24, 63
  br i1 %25, label %26, label %28

26:
  %27 = call i32 @sched_yield()
  br label %28

28:
  %29 = add nuw nsw i32 %20, 1
  %30 = icmp eq i32 %29, %17
  br i1 %30, label %31, label %19

31:
  %32 = call i32 @pthread_mutex_lock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  %33 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @pool, i64 384), i32 1 seq_cst, align 128
  %34 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 128) seq_cst, align 128
  %35 = icmp eq i64 %34, %11
  br i1 %35, label %36, label %40

36:
  %37 = call i32 @pthread_cond_wait(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 768), ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  %38 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 128) seq_cst, align 128
  %39 = icmp eq i64 %38, %11
  br i1 %39, label %36, label %40

40:
  %41 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @pool, i64 384), i32 -1 seq_cst, align 128
  %42 = call i32 @pthread_mutex_unlock(ptr getelementptr inbounds nuw (i8, ptr @pool, i64 640))
  br label %43

43:
  %44 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 128) seq_cst, align 128
  %45 = load atomic i32, ptr getelementptr inbounds nuw (i8, ptr @pool, i64 392) seq_cst, align 8
  %46 = icmp eq i32 %45, 0
  br i1 %46, label %10, label %47

47:
  %48 = getelementptr inbounds i32, ptr @worker_cpus, i64 %2
  %49 = load atomic i32, ptr %48 monotonic, align 4
  %50 = icmp eq i32 %49, -1
  br i1 %50, label %52, label %51

51:
  store atomic i32 -1, ptr %48 release, align 4
  br label %52

52:
  %53 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @pool, i64 396), i32 -1 seq_cst, align 4
  ret ptr null
}

declare i32 @sched_getcpu()

declare i32 @pthread_setaffinity_np(i64, i64, ptr)

declare i32 @pthread_getaffinity_np(i64, i64, ptr)

declare i64 @llvm.ctpop.i64(i64)

declare i32 @pthread_mutex_trylock(ptr)

declare ptr @PyEval_SaveThread()

declare void @PyEval_RestoreThread(ptr)

declare i32 @pthread_mutex_init(ptr, ptr)

declare i32 @pthread_cond_init(ptr, ptr)

declare i64 @llvm.umin.i64(i64, i64)

declare i64 @llvm.smin.i64(i64, i64)
