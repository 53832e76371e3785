; Generated from launch_half.c by scripts/compile_native.py.

define zeroext i1 @tw_fill_f16(ptr %0, i64 %1, ptr %2, ptr %3) nounwind {
  %5 = alloca half, align 2
  %6 = call double @PyFloat_AsDouble(ptr %2)
  %7 = fptrunc double %6 to half
  store half %7, ptr %5, align 2
  %8 = call fastcc zeroext i1 @fill_bits(ptr %0, i64 %1, ptr %2, ptr %3, double %6, ptr %5)
  ret i1 %8
}

declare double @PyFloat_AsDouble(ptr)

define internal fastcc zeroext i1 @fill_bits(ptr %0, i64 %1, ptr %2, ptr %3, double %4, ptr %5) nounwind {
  %7 = alloca [2 x ptr], align 16
  %8 = load i16, ptr %5, align 1
  %9 = zext i16 %8 to i64
  store i64 %9, ptr %3, align 8
  %10 = fcmp une double %4, -1.000000e+00
  br i1 %10, label %29, label %11

11:
  %12 = call ptr @PyErr_Occurred()
  %13 = icmp eq ptr %12, null
  br i1 %13, label %29, label %14

14:
  call void @PyErr_Clear()
  %15 = call ptr @PyLong_FromLongLong(i64 %1)
  store ptr %15, ptr %7, align 16
  %16 = getelementptr inbounds nuw i8, ptr %7, i64 8
  store ptr %2, ptr %16, align 8
  call void @Py_IncRef(ptr %2)
  %17 = getelementptr inbounds nuw i8, ptr %0, i64 112
  %18 = load ptr, ptr %17, align 8
  %19 = call ptr @PyObject_Vectorcall(ptr %18, ptr %7, i64 2, ptr null)
  %20 = load ptr, ptr %7, align 16
  call void @Py_DecRef(ptr %20)
  %21 = load ptr, ptr %16, align 8
  call void @Py_DecRef(ptr %21)
  %22 = icmp eq ptr %19, null
  br i1 %22, label %27, label %23

23:
  %24 = call i64 @PyLong_AsUnsignedLongLong(ptr %19)
  store i64 %24, ptr %3, align 8
  call void @Py_DecRef(ptr %19)
  %25 = call ptr @PyErr_Occurred()
  %26 = icmp eq ptr %25, null
  br label %27

27:
  %28 = phi i1 [ %26, %23 ], [ false, %14 ]
  br label %29

29:
  %30 = phi i1 [ true, %6 ], [ true, %11 ], [ %28, %27 ]
  ret i1 %30
}

define zeroext i1 @tw_fill_bf16(ptr %0, i64 %1, ptr %2, ptr %3) nounwind {
  %5 = alloca bfloat, align 2
  %6 = call double @PyFloat_AsDouble(ptr %2)
  %7 = fptrunc double %6 to bfloat
  store bfloat %7, ptr %5, align 2
  %8 = call fastcc zeroext i1 @fill_bits(ptr %0, i64 %1, ptr %2, ptr %3, double %6, ptr %5)
  ret i1 %8
}

declare ptr @PyErr_Occurred()

declare void @PyErr_Clear()

declare ptr @PyLong_FromLongLong(i64)

declare void @Py_IncRef(ptr)

declare i64 @PyLong_AsUnsignedLongLong(ptr)

declare void @Py_DecRef(ptr)

declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
