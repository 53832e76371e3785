; Drops memory from the caches of all cores. The thread pool calls this as a kernel.

declare void @llvm.x86.clflushopt(ptr)
declare void @llvm.x86.sse2.mfence()

;   %args        for each program instance the first address of its memory, and the one after the
;                last
;   %begin %end  program instances
define i64 @tw_drop_lines(ptr %args, i64 %begin, i64 %end, ptr %grid, ptr %scratch, ptr %poll)
    nounwind {
entry:
  call void @llvm.x86.sse2.mfence()
  br label %program
program:
  %id = phi i64 [ %begin, %entry ], [ %id.next, %lines ]
  %work = icmp slt i64 %id, %end
  br i1 %work, label %block, label %exit
block:
  %row = getelementptr [2 x i64], ptr %args, i64 %id
  %first = load i64, ptr %row
  %last.slot = getelementptr i64, ptr %row, i64 1
  %last = load i64, ptr %last.slot
  br label %lines
lines:
  %line = phi i64 [ %first, %block ], [ %next, %drop ]
  %id.next = add i64 %id, 1
  %more = icmp ult i64 %line, %last
  br i1 %more, label %drop, label %program
drop:
  %pointer = inttoptr i64 %line to ptr
  call void @llvm.x86.clflushopt(ptr %pointer)
  %bytes = call i64 @LINE_BYTES()
  %next = add i64 %line, %bytes
  br label %lines
exit:
  ; the flushes are done before anything that follows is measured
  call void @llvm.x86.sse2.mfence()
  ret i64 %end
}
