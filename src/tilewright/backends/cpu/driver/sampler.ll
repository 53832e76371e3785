; Generated from sampler.c by scripts/compile_native.py.

%union.SigAction = type { ptr, [152 x i8] }

@buffer = internal global ptr null, align 8
@sigaction_flags_at = external constant i64, align 8
@sigaction_flags = external constant i32, align 4
@sigprof = external constant i32, align 4
@previous = internal global %union.SigAction zeroinitializer, align 16
@counter_at = external constant i64, align 8

define i32 @tw_start_samples(ptr %0) nounwind {
  %2 = alloca %union.SigAction, align 16
  %3 = ptrtoint ptr %0 to i64
  store atomic i64 %3, ptr @buffer release, align 8
  call void @llvm.memset.p0.i64(ptr align 16 %2, i8 0, i64 160, i1 false)
  store ptr @sampled, ptr %2, align 16
  %4 = load i64, ptr @sigaction_flags_at, align 8
  %5 = getelementptr inbounds i8, ptr %2, i64 %4
  %6 = load i32, ptr @sigaction_flags, align 4
  store i32 %6, ptr %5, align 1
  %7 = load i32, ptr @sigprof, align 4
  %8 = call i32 @sigaction(i32 %7, ptr %2, ptr @previous)
  ret i32 %8
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)

define internal void @sampled(i32 %0, ptr %1, ptr %2) nounwind {
  %4 = load atomic i64, ptr @buffer acquire, align 8
  %5 = icmp eq i64 %4, 0
  br i1 %5, label %19, label %6

6:
  %7 = inttoptr i64 %4 to ptr
  %8 = atomicrmw add ptr %7, i64 1 monotonic, align 8
  %9 = getelementptr inbounds nuw i8, ptr %7, i64 8
  %10 = load i64, ptr %9, align 8
  %11 = icmp ult i64 %8, %10
  br i1 %11, label %12, label %19

12:
  %13 = getelementptr inbounds nuw i8, ptr %7, i64 16
  %14 = load ptr, ptr %13, align 8
  %15 = getelementptr inbounds nuw i64, ptr %14, i64 %8
  %16 = load i64, ptr @counter_at, align 8
  %17 = getelementptr inbounds i8, ptr %2, i64 %16
  %18 = load i64, ptr %17, align 1
  store i64 %18, ptr %15, align 8
  br label %19

19:
  ret void
}

declare i32 @sigaction(i32, ptr, ptr)

define void @tw_stop_samples() nounwind {
  store atomic i64 0, ptr @buffer release, align 8
  %1 = load i32, ptr @sigprof, align 4
  %2 = call i32 @sigaction(i32 %1, ptr @previous, ptr null)
  ret void
}
