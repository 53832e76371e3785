; Generated from cache_flush.c by scripts/compile_native.py.

%struct.MemoryBlock = type { i64, i64 }

define i64 @tw_drop_lines(ptr %0, i64 %1, i64 %2, ptr %3, ptr %4, ptr %5) nounwind {
  call void @fence()
  %7 = icmp slt i64 %1, %2
  br i1 %7, label %9, label %8

8:
  call void @fence()
  ret i64 %2

9:
  %10 = phi i64 [ %17, %16 ], [ %1, %6 ]
  %11 = getelementptr inbounds %struct.MemoryBlock, ptr %0, i64 %10
  %12 = load i64, ptr %11, align 8
  %13 = getelementptr inbounds nuw i8, ptr %11, i64 8
  %14 = load i64, ptr %13, align 8
  %15 = icmp ult i64 %12, %14
  br i1 %15, label %19, label %16

16:
  %17 = add nsw i64 %10, 1
  %18 = icmp eq i64 %17, %2
  br i1 %18, label %8, label %9

19:
  %20 = phi i64 [ %22, %19 ], [ %12, %9 ]
  %21 = inttoptr i64 %20 to ptr
  call void @flush_line(ptr %21)
  %22 = add i64 %20, 64
  %23 = load i64, ptr %13, align 8
  %24 = icmp ult i64 %22, %23
  br i1 %24, label %19, label %16
}

declare void @fence()

declare void @flush_line(ptr)
