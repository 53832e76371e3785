; Generated from runner.c by scripts/compile_native.py.

%struct.Job = type { i64, ptr, i64, ptr, ptr, ptr, i64 }
%struct.Range = type { ptr, i64 }

define void @run() nounwind noreturn {
  %1 = alloca %struct.Job, align 8
  %2 = alloca i32, align 4
  %3 = alloca %struct.Range, align 8
  store i32 0, ptr %2, align 4
  br label %12

4:
  %5 = add nuw i64 %16, %13
  %6 = icmp ult i64 %5, 56
  br i1 %6, label %12, label %7

7:
  %8 = load i64, ptr %1, align 8
  %9 = icmp eq i64 %8, 0
  br i1 %9, label %19, label %10

10:
  %11 = getelementptr inbounds nuw i8, ptr %3, i64 8
  br label %34

12:
  %13 = phi i64 [ 0, %0 ], [ %5, %4 ]
  %14 = getelementptr inbounds nuw i8, ptr %1, i64 %13
  %15 = sub nuw nsw i64 56, %13
  %16 = call i64 @read(i64 0, ptr %14, i64 %15)
  %17 = icmp slt i64 %16, 1
  br i1 %17, label %18, label %4

18:
  call void @exit(i64 3)
  unreachable

19:
  %20 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %21 = load ptr, ptr %20, align 8
  %22 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %23 = load i64, ptr %22, align 8
  %24 = shl i64 %23, 4
  call fastcc void @transfer_all(ptr %21, i64 %24, i64 0)
  call fastcc void @transfer_pieces(ptr %1, i64 0)
  %25 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %26 = load ptr, ptr %25, align 8
  %27 = getelementptr inbounds nuw i8, ptr %1, i64 48
  %28 = load i64, ptr %27, align 8
  %29 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %30 = load ptr, ptr %29, align 8
  %31 = getelementptr inbounds nuw i8, ptr %1, i64 40
  %32 = load ptr, ptr %31, align 8
  %33 = call i64 @kernel(ptr %26, i64 0, i64 %28, ptr %30, ptr %32, ptr %2)
  call fastcc void @transfer_pieces(ptr %1, i64 1)
  call void @exit(i64 0)
  unreachable

34:
  %35 = phi i64 [ 0, %10 ], [ %49, %46 ]
  br label %39

36:
  %37 = add nuw i64 %43, %40
  %38 = icmp ult i64 %37, 16
  br i1 %38, label %39, label %46

39:
  %40 = phi i64 [ 0, %34 ], [ %37, %36 ]
  %41 = getelementptr inbounds nuw i8, ptr %3, i64 %40
  %42 = sub nuw nsw i64 16, %40
  %43 = call i64 @read(i64 0, ptr %41, i64 %42)
  %44 = icmp slt i64 %43, 1
  br i1 %44, label %45, label %36

45:
  call void @exit(i64 3)
  unreachable

46:
  %47 = load ptr, ptr %3, align 8
  %48 = load i64, ptr %11, align 8
  call void @map(ptr %47, i64 %48)
  %49 = add nuw i64 %35, 1
  %50 = load i64, ptr %1, align 8
  %51 = icmp ult i64 %49, %50
  br i1 %51, label %34, label %19
}

define internal fastcc void @transfer_all(ptr %0, i64 %1, i64 %2) nounwind {
  %4 = icmp eq i64 %1, 0
  br i1 %4, label %10, label %5

5:
  %6 = icmp eq i64 %2, 0
  br label %11

7:
  %8 = add i64 %20, %12
  %9 = icmp ult i64 %8, %1
  br i1 %9, label %11, label %10

10:
  ret void

11:
  %12 = phi i64 [ 0, %5 ], [ %8, %7 ]
  %13 = getelementptr inbounds nuw i8, ptr %0, i64 %12
  %14 = sub i64 %1, %12
  br i1 %6, label %17, label %15

15:
  %16 = call i64 @write(i64 1, ptr %13, i64 %14)
  br label %19

17:
  %18 = call i64 @read(i64 0, ptr %13, i64 %14)
  br label %19

19:
  %20 = phi i64 [ %16, %15 ], [ %18, %17 ]
  %21 = icmp slt i64 %20, 1
  br i1 %21, label %22, label %7

22:
  call void @exit(i64 3)
  unreachable
}

declare void @map(ptr, i64)

define internal fastcc void @transfer_pieces(ptr %0, i64 %1) nounwind {
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %4 = load i64, ptr %3, align 8
  %5 = icmp eq i64 %4, 0
  br i1 %5, label %9, label %6

6:
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %8 = icmp eq i64 %1, 0
  br label %10

9:
  ret void

10:
  %11 = phi i64 [ %4, %6 ], [ %37, %36 ]
  %12 = phi i64 [ 0, %6 ], [ %38, %36 ]
  %13 = load ptr, ptr %7, align 8
  %14 = getelementptr inbounds nuw %struct.Range, ptr %13, i64 %12
  %15 = load ptr, ptr %14, align 8
  %16 = getelementptr inbounds nuw i8, ptr %14, i64 8
  %17 = load i64, ptr %16, align 8
  %18 = icmp eq i64 %17, 0
  br i1 %18, label %36, label %22

19:
  %20 = add i64 %31, %23
  %21 = icmp ult i64 %20, %17
  br i1 %21, label %22, label %34

22:
  %23 = phi i64 [ %20, %19 ], [ 0, %10 ]
  %24 = getelementptr inbounds nuw i8, ptr %15, i64 %23
  %25 = sub i64 %17, %23
  br i1 %8, label %28, label %26

26:
  %27 = call i64 @write(i64 1, ptr %24, i64 %25)
  br label %30

28:
  %29 = call i64 @read(i64 0, ptr %24, i64 %25)
  br label %30

30:
  %31 = phi i64 [ %27, %26 ], [ %29, %28 ]
  %32 = icmp slt i64 %31, 1
  br i1 %32, label %33, label %19

33:
  call void @exit(i64 3)
  unreachable

34:
  %35 = load i64, ptr %3, align 8
  br label %36

36:
  %37 = phi i64 [ %35, %34 ], [ %11, %10 ]
  %38 = add nuw i64 %12, 1
  %39 = icmp ult i64 %38, %37
  br i1 %39, label %10, label %9
}

declare i64 @kernel(ptr, i64, i64, ptr, ptr, ptr)

declare void @exit(i64)

define ptr @memmove(ptr %0, ptr %1, i64 %2) nounwind {
  %4 = icmp ugt ptr %0, %1
  %5 = icmp eq i64 %2, 0
  br i1 %5, label %6, label %7

6:
  ret ptr %0

7:
  %8 = phi i64 [ %15, %7 ], [ 0, %3 ]
  %9 = xor i64 %8, -1
  %10 = add i64 %2, %9
  %11 = select i1 %4, i64 %10, i64 %8
  %12 = getelementptr inbounds nuw i8, ptr %1, i64 %11
  %13 = load i8, ptr %12, align 1
  %14 = getelementptr inbounds nuw i8, ptr %0, i64 %11
  store i8 %13, ptr %14, align 1
  %15 = add nuw i64 %8, 1
  %16 = icmp eq i64 %15, %2
  br i1 %16, label %6, label %7
}

define ptr @memcpy(ptr %0, ptr %1, i64 %2) nounwind {
  %4 = icmp ugt ptr %0, %1
  %5 = icmp eq i64 %2, 0
  br i1 %5, label %16, label %6

6:
  %7 = phi i64 [ %14, %6 ], [ 0, %3 ]
  %8 = xor i64 %7, -1
  %9 = add i64 %2, %8
  %10 = select i1 %4, i64 %9, i64 %7
  %11 = getelementptr inbounds nuw i8, ptr %1, i64 %10
  %12 = load i8, ptr %11, align 1
  %13 = getelementptr inbounds nuw i8, ptr %0, i64 %10
  store i8 %12, ptr %13, align 1
  %14 = add nuw i64 %7, 1
  %15 = icmp eq i64 %14, %2
  br i1 %15, label %16, label %6

16:
  ret ptr %0
}

define ptr @memset(ptr %0, i32 %1, i64 %2) nounwind {
  %4 = icmp eq i64 %2, 0
  br i1 %4, label %7, label %5

5:
  %6 = trunc i32 %1 to i8
  br label %8

7:
  ret ptr %0

8:
  %9 = phi i64 [ 0, %5 ], [ %11, %8 ]
  %10 = getelementptr inbounds nuw i8, ptr %0, i64 %9
  store volatile i8 %6, ptr %10, align 1
  %11 = add nuw i64 %9, 1
  %12 = icmp eq i64 %11, %2
  br i1 %12, label %7, label %8
}

define double @fmod(double %0, double %1) nounwind {
  %3 = call double @llvm.fabs.f64(double %0)
  %4 = call double @llvm.fabs.f64(double %1)
  %5 = fcmp one double %3, 0x7FF0000000000000
  %6 = fcmp one double %1, 0.000000e+00
  %7 = and i1 %5, %6
  br i1 %7, label %8, label %32

8:
  %9 = fcmp olt double %3, %4
  br i1 %9, label %32, label %10

10:
  %11 = fsub double %3, %4
  %12 = fcmp ugt double %4, %11
  br i1 %12, label %13, label %16

13:
  %14 = phi double [ %4, %10 ], [ %18, %16 ]
  %15 = fcmp ult double %14, %4
  br i1 %15, label %29, label %21

16:
  %17 = phi double [ %18, %16 ], [ %4, %10 ]
  %18 = fadd double %17, %17
  %19 = fsub double %3, %18
  %20 = fcmp ugt double %18, %19
  br i1 %20, label %13, label %16

21:
  %22 = phi double [ %27, %21 ], [ %14, %13 ]
  %23 = phi double [ %26, %21 ], [ %3, %13 ]
  %24 = fcmp ult double %23, %22
  %25 = fsub double %23, %22
  %26 = select i1 %24, double %23, double %25
  %27 = fmul double %22, 5.000000e-01
  %28 = fcmp ult double %27, %4
  br i1 %28, label %29, label %21

29:
  %30 = phi double [ %3, %13 ], [ %26, %21 ]
  %31 = call double @llvm.copysign.f64(double %30, double %0)
  br label %32

32:
  %33 = phi double [ 0x7FF8000000000000, %2 ], [ %31, %29 ], [ %0, %8 ]
  ret double %33
}

declare double @llvm.fabs.f64(double)

declare double @llvm.copysign.f64(double, double)

define float @fmodf(float %0, float %1) nounwind {
  %3 = fpext float %0 to double
  %4 = call double @llvm.fabs.f64(double %3)
  %5 = call float @llvm.fabs.f32(float %1)
  %6 = fpext float %5 to double
  %7 = fcmp one double %4, 0x7FF0000000000000
  %8 = fcmp one float %1, 0.000000e+00
  %9 = and i1 %8, %7
  br i1 %9, label %10, label %35

10:
  %11 = fcmp olt double %4, %6
  br i1 %11, label %35, label %12

12:
  %13 = fsub double %4, %6
  %14 = fcmp ult double %13, %6
  br i1 %14, label %15, label %18

15:
  %16 = phi double [ %6, %12 ], [ %20, %18 ]
  %17 = fcmp ult double %16, %6
  br i1 %17, label %31, label %23

18:
  %19 = phi double [ %20, %18 ], [ %6, %12 ]
  %20 = fadd double %19, %19
  %21 = fsub double %4, %20
  %22 = fcmp ugt double %20, %21
  br i1 %22, label %15, label %18

23:
  %24 = phi double [ %29, %23 ], [ %16, %15 ]
  %25 = phi double [ %28, %23 ], [ %4, %15 ]
  %26 = fcmp ult double %25, %24
  %27 = fsub double %25, %24
  %28 = select i1 %26, double %25, double %27
  %29 = fmul double %24, 5.000000e-01
  %30 = fcmp ult double %29, %6
  br i1 %30, label %31, label %23

31:
  %32 = phi double [ %4, %15 ], [ %28, %23 ]
  %33 = call double @llvm.copysign.f64(double %32, double %3)
  %34 = fptrunc double %33 to float
  br label %35

35:
  %36 = phi float [ 0x7FF8000000000000, %2 ], [ %34, %31 ], [ %0, %10 ]
  ret float %36
}

declare i64 @write(i64, ptr, i64)

declare i64 @read(i64, ptr, i64)

declare float @llvm.fabs.f32(float)
