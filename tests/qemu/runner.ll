; A Linux program without a C library, which runs a kernel on memory that it is given.
;
;   standard input:   a job | its maps | its pieces | the bytes of each piece
;   standard output:  the bytes of each piece after the kernel has run
;
; A map is memory to have at an address, a piece a part of it. The functions of the C library that LLVM
; calls are here too: those of memory byte by byte, remainders bit by bit.

; number of maps, table of pieces, number of pieces, arguments, grid, scratch, programs
%Job = type { i64, ptr, i64, ptr, ptr, ptr, i64 }
; address, bytes
%Range = type { ptr, i64 }

declare i64 @kernel(ptr, i64, i64, ptr, ptr, ptr)

; Linux: see system_calls_*.s
declare i64 @read(i64, ptr, i64)
declare i64 @write(i64, ptr, i64)
declare void @map(ptr, i64)
declare void @exit(i64)

define void @_start() nounwind noreturn "stackrealign" {
entry:
  %job = alloca %Job
  %poll = alloca i32
  store i32 0, ptr %poll
  call void @read_all(ptr %job, i64 56)
  %maps = load i64, ptr %job
  call void @map_all(i64 %maps)
  %table.at = getelementptr %Job, ptr %job, i32 0, i32 1
  %table = load ptr, ptr %table.at
  %count.at = getelementptr %Job, ptr %job, i32 0, i32 2
  %count = load i64, ptr %count.at
  %bytes = mul i64 %count, 16
  call void @read_all(ptr %table, i64 %bytes)
  call void @each_piece(ptr %table, i64 %count, ptr @read_all)
  %args.at = getelementptr %Job, ptr %job, i32 0, i32 3
  %args = load ptr, ptr %args.at
  %grid.at = getelementptr %Job, ptr %job, i32 0, i32 4
  %grid = load ptr, ptr %grid.at
  %scratch.at = getelementptr %Job, ptr %job, i32 0, i32 5
  %scratch = load ptr, ptr %scratch.at
  %programs.at = getelementptr %Job, ptr %job, i32 0, i32 6
  %programs = load i64, ptr %programs.at
  call i64 @kernel(ptr %args, i64 0, i64 %programs, ptr %grid, ptr %scratch, ptr %poll)
  call void @each_piece(ptr %table, i64 %count, ptr @write_all)
  call void @exit(i64 0)
  unreachable
}

define internal void @map_all(i64 %count) nounwind {
entry:
  %range = alloca %Range
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  call void @read_all(ptr %range, i64 16)
  %address = load ptr, ptr %range
  %size.at = getelementptr %Range, ptr %range, i32 0, i32 1
  %size = load i64, ptr %size.at
  call void @map(ptr %address, i64 %size)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define internal void @each_piece(ptr %table, i64 %count, ptr %transfer) nounwind {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %range = getelementptr %Range, ptr %table, i64 %i
  %address = load ptr, ptr %range
  %size.at = getelementptr %Range, ptr %range, i32 0, i32 1
  %size = load i64, ptr %size.at
  call void %transfer(ptr %address, i64 %size)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

define internal void @read_all(ptr %to, i64 %size) nounwind {
  call void @transfer_all(ptr %to, i64 %size, i64 0)
  ret void
}

define internal void @write_all(ptr %from, i64 %size) nounwind {
  call void @transfer_all(ptr %from, i64 %size, i64 1)
  ret void
}

; A pipe takes and gives some bytes at a time. The number of the file says which way.
define internal void @transfer_all(ptr %memory, i64 %size, i64 %file) nounwind {
entry:
  %writes = icmp eq i64 %file, 1
  br label %head
head:
  %done = phi i64 [ 0, %entry ], [ %after, %moved ]
  %left = sub i64 %size, %done
  %ends = icmp eq i64 %left, 0
  br i1 %ends, label %return, label %body
body:
  %at = getelementptr i8, ptr %memory, i64 %done
  br i1 %writes, label %write, label %read
write:
  %written = call i64 @write(i64 %file, ptr %at, i64 %left)
  br label %check
read:
  %taken = call i64 @read(i64 %file, ptr %at, i64 %left)
  br label %check
check:
  %count = phi i64 [ %written, %write ], [ %taken, %read ]
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %moved, label %fail
moved:
  %after = add i64 %done, %count
  br label %head
fail:
  call void @exit(i64 3)
  unreachable
return:
  ret void
}

define ptr @memcpy(ptr %to, ptr %from, i64 %size) nounwind "no-builtins" {
  %result = call ptr @memmove(ptr %to, ptr %from, i64 %size)
  ret ptr %result
}

define ptr @memmove(ptr %to, ptr %from, i64 %size) noinline nounwind "no-builtins" {
entry:
  %backwards = icmp ugt ptr %to, %from
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %body, label %done
body:
  %next = add i64 %i, 1
  %mirrored = sub i64 %size, %next
  %at = select i1 %backwards, i64 %mirrored, i64 %i
  %source = getelementptr i8, ptr %from, i64 %at
  %byte = load i8, ptr %source
  %target = getelementptr i8, ptr %to, i64 %at
  store i8 %byte, ptr %target
  br label %head
done:
  ret ptr %to
}

define ptr @memset(ptr %to, i32 %value, i64 %size) noinline nounwind "no-builtins" {
entry:
  %byte = trunc i32 %value to i8
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %body, label %done
body:
  %target = getelementptr i8, ptr %to, i64 %i
  store volatile i8 %byte, ptr %target
  %next = add i64 %i, 1
  br label %head
done:
  ret ptr %to
}

define float @fmodf(float %x, float %y) nounwind "no-builtins" {
  %wide.x = fpext float %x to double
  %wide.y = fpext float %y to double
  %wide = call double @fmod(double %wide.x, double %wide.y)
  %result = fptrunc double %wide to float
  ret float %result
}

; By long division, whose steps are exact: y doubled while it stays below x, then taken off.
define double @fmod(double %x, double %y) noinline nounwind "no-builtins" {
entry:
  %abs.x = call double @llvm.fabs.f64(double %x)
  %abs.y = call double @llvm.fabs.f64(double %y)
  %x.finite = fcmp one double %abs.x, 0x7FF0000000000000
  %y.number = fcmp ogt double %abs.y, 0.0
  %defined = and i1 %x.finite, %y.number
  br i1 %defined, label %smaller, label %nan
smaller:
  %less = fcmp olt double %abs.x, %abs.y
  br i1 %less, label %whole, label %double
double:
  %t = phi double [ %abs.y, %smaller ], [ %twice, %double ]
  %rest = fsub double %abs.x, %t
  %fits = fcmp ole double %t, %rest
  %twice = fadd double %t, %t
  br i1 %fits, label %double, label %subtract
subtract:
  %r = phi double [ %abs.x, %double ], [ %r.next, %subtract ]
  %s = phi double [ %t, %double ], [ %half, %subtract ]
  %takes = fcmp oge double %r, %s
  %less.s = fsub double %r, %s
  %r.next = select i1 %takes, double %less.s, double %r
  %half = fmul double %s, 0.5
  %more = fcmp oge double %half, %abs.y
  br i1 %more, label %subtract, label %done
done:
  %signed = call double @llvm.copysign.f64(double %r.next, double %x)
  ret double %signed
whole:
  ret double %x
nan:
  ret double 0x7FF8000000000000
}

declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)
