; Generated from library_launcher.c by scripts/compile_native.py.

%struct.anon = type { i32, ptr, [6 x i32] }
%struct.LibraryJob = type { ptr, ptr, i64, [3 x i32], i32 }

@.str = private constant [16 x i8] c"libtorch_cpu.so\00", align 1
@loaded_already = external constant i32, align 4
@.str.1 = private constant [14 x i8] c"GOMP_parallel\00", align 1
@omp_parallel = internal global ptr null, align 8
@.str.2 = private constant [20 x i8] c"omp_get_max_threads\00", align 1
@omp_max_threads = internal global ptr null, align 8
@.str.3 = private constant [19 x i8] c"omp_get_thread_num\00", align 1
@omp_thread = internal global ptr null, align 8
@.str.4 = private constant [20 x i8] c"omp_get_num_threads\00", align 1
@omp_team = internal global ptr null, align 8
@.str.5 = private constant [42 x i8] c"_ZN3c106detail14torchCheckFailEPKcS2_jS2_\00", align 1
@torch_error = internal global ptr null, align 8
@slot_count = external constant i64, align 8
@console = internal constant [2 x ptr] [ptr @fail, ptr @print], align 16
@failure = internal global %struct.anon zeroinitializer, align 8
@.str.6 = private constant [58 x i8] c"device_print needs Python, which a shared library has not\00", align 1
@alone = external constant i64, align 8
@together = external constant i64, align 8
@scratch_bytes = external constant i64, align 8
@.str.7 = private constant [26 x i8] c"no memory for the scratch\00", align 1
@.str.8 = private constant [55 x i8] c"programs wait for each other, and have too few threads\00", align 1
@.str.9 = private constant [55 x i8] c"%s failed in program (%d, %d, %d), at (%d, %d, %d): %s\00", align 1
@kernel_title = external constant [0 x i8], align 1
@.str.10 = private constant [11 x i8] c"Tilewright\00", align 1
@.str.11 = private constant [4 x i8] c"%s\0A\00", align 1
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @resolve, ptr null }]

define internal void @resolve() uwtable(sync) {
  %1 = load i32, ptr @loaded_already, align 4
  %2 = call ptr @dlopen(ptr @.str, i32 %1)
  %3 = icmp eq ptr %2, null
  br i1 %3, label %10, label %4

4:
  %5 = call ptr @dlsym(ptr %2, ptr @.str.1)
  store ptr %5, ptr @omp_parallel, align 8
  %6 = call ptr @dlsym(ptr %2, ptr @.str.2)
  store ptr %6, ptr @omp_max_threads, align 8
  %7 = call ptr @dlsym(ptr %2, ptr @.str.3)
  store ptr %7, ptr @omp_thread, align 8
  %8 = call ptr @dlsym(ptr %2, ptr @.str.4)
  store ptr %8, ptr @omp_team, align 8
  %9 = call ptr @dlsym(ptr %2, ptr @.str.5)
  store ptr %9, ptr @torch_error, align 8
  br label %10

10:
  ret void
}

declare ptr @dlopen(ptr, i32)

declare ptr @dlsym(ptr, ptr)

define void @run_from_nativert(i32 %0, i32 %1, i32 %2, i32 %3, ptr %4, ptr %5) uwtable(sync) {
  %7 = alloca [1024 x i8], align 16
  %8 = alloca %struct.LibraryJob, align 8
  %9 = load i64, ptr @slot_count, align 8
  %10 = add i64 %9, 1
  %11 = alloca i64, i64 %10, align 16
  call void @pack(ptr %4, ptr %11)
  %12 = getelementptr inbounds i64, ptr %11, i64 %9
  store i64 ptrtoint (ptr @console to i64), ptr %12, align 8
  %13 = zext i32 %0 to i64
  %14 = zext i32 %1 to i64
  %15 = mul nuw i64 %14, %13
  %16 = zext i32 %2 to i64
  %17 = mul i64 %15, %16
  store ptr %5, ptr %8, align 8
  %18 = getelementptr inbounds nuw i8, ptr %8, i64 8
  store ptr %11, ptr %18, align 8
  %19 = getelementptr inbounds nuw i8, ptr %8, i64 16
  store i64 %17, ptr %19, align 8
  %20 = getelementptr inbounds nuw i8, ptr %8, i64 24
  store i32 %0, ptr %20, align 8
  %21 = getelementptr inbounds nuw i8, ptr %8, i64 28
  store i32 %1, ptr %21, align 4
  %22 = getelementptr inbounds nuw i8, ptr %8, i64 32
  store i32 %2, ptr %22, align 8
  %23 = getelementptr inbounds nuw i8, ptr %8, i64 36
  store i32 0, ptr %23, align 4
  %24 = load ptr, ptr @omp_parallel, align 8
  %25 = icmp eq ptr %24, null
  br i1 %25, label %43, label %26

26:
  %27 = load i64, ptr @alone, align 8
  %28 = icmp ule i64 %17, %27
  %29 = icmp ult i64 %17, 2
  %30 = or i1 %29, %28
  br i1 %30, label %43, label %31

31:
  %32 = load i64, ptr @together, align 8
  %33 = icmp eq i64 %32, 0
  br i1 %33, label %34, label %39

34:
  %35 = load ptr, ptr @omp_max_threads, align 8
  %36 = call i32 %35()
  %37 = zext i32 %36 to i64
  %38 = call i64 @llvm.umin.i64(i64 %17, i64 %37)
  br label %39

39:
  %40 = phi i64 [ %38, %34 ], [ %17, %31 ]
  %41 = trunc i64 %40 to i32
  %42 = icmp eq i32 %41, 1
  br i1 %42, label %45, label %59

43:
  %44 = icmp eq i64 %17, 0
  br i1 %44, label %61, label %45

45:
  %46 = load i64, ptr @scratch_bytes, align 8
  %47 = add i64 %46, 127
  %48 = and i64 %47, -64
  %49 = call ptr @aligned_alloc(i64 64, i64 %48)
  %50 = icmp eq ptr %49, null
  br i1 %50, label %51, label %55

51:
  %52 = cmpxchg ptr @failure, i32 0, i32 1 acq_rel monotonic, align 8
  %53 = extractvalue { i32, i1 } %52, 1
  br i1 %53, label %54, label %61

54:
  store ptr @.str.7, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 8), align 8
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 16), align 8
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 20), align 4
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 24), align 8
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 28), align 4
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 32), align 8
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 36), align 4
  store atomic i32 2, ptr @failure release, align 8
  br label %61

55:
  %56 = load ptr, ptr %8, align 8
  %57 = load ptr, ptr %18, align 8
  %58 = call i64 %56(ptr %57, i64 0, i64 %17, ptr %20, ptr %49, ptr %23)
  call void @free(ptr %49)
  br label %61

59:
  %60 = load ptr, ptr @omp_parallel, align 8
  call void %60(ptr @work, ptr %8, i32 %41, i32 0)
  br label %61

61:
  %62 = load atomic i32, ptr @failure acquire, align 8
  %63 = icmp eq i32 %62, 2
  br i1 %63, label %64, label %81

64:
  %65 = cmpxchg ptr @failure, i32 2, i32 3 acq_rel monotonic, align 8
  %66 = extractvalue { i32, i1 } %65, 1
  br i1 %66, label %67, label %81

67:
  %68 = load i32, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 16), align 8
  %69 = load i32, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 20), align 4
  %70 = load i32, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 24), align 8
  %71 = load i32, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 28), align 4
  %72 = load i32, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 32), align 8
  %73 = load i32, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 36), align 4
  %74 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 8), align 8
  %75 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %7, i64 1024, ptr @.str.9, ptr @kernel_title, i32 %68, i32 %69, i32 %70, i32 %71, i32 %72, i32 %73, ptr %74)
  store atomic i32 0, ptr @failure release, align 8
  %76 = load ptr, ptr @torch_error, align 8
  %77 = icmp eq ptr %76, null
  br i1 %77, label %79, label %78

78:
  call void %76(ptr @kernel_title, ptr @.str.10, i32 0, ptr %7)
  unreachable

79:
  %80 = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @.str.11, ptr %7)
  call void @abort()
  unreachable

81:
  ret void
}

declare void @pack(ptr, ptr)

define internal void @work(ptr %0) uwtable(sync) {
  %2 = load ptr, ptr @omp_thread, align 8
  %3 = call i32 %2()
  %4 = load ptr, ptr @omp_team, align 8
  %5 = call i32 %4()
  %6 = zext i32 %5 to i64
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %8 = load i64, ptr %7, align 8
  %9 = load i64, ptr @together, align 8
  %10 = icmp ne i64 %9, 0
  %11 = icmp ugt i64 %8, %6
  %12 = select i1 %10, i1 %11, i1 false
  br i1 %12, label %13, label %17

13:
  %14 = cmpxchg ptr @failure, i32 0, i32 1 acq_rel monotonic, align 8
  %15 = extractvalue { i32, i1 } %14, 1
  br i1 %15, label %16, label %42

16:
  store ptr @.str.8, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 8), align 8
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 16), align 8
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 20), align 4
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 24), align 8
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 28), align 4
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 32), align 8
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 36), align 4
  store atomic i32 2, ptr @failure release, align 8
  br label %42

17:
  %18 = zext i32 %3 to i64
  %19 = mul i64 %8, %18
  %20 = udiv i64 %19, %6
  %21 = add nuw nsw i64 %18, 1
  %22 = mul i64 %8, %21
  %23 = udiv i64 %22, %6
  %24 = icmp ult i64 %20, %23
  br i1 %24, label %25, label %42

25:
  %26 = load i64, ptr @scratch_bytes, align 8
  %27 = add i64 %26, 127
  %28 = and i64 %27, -64
  %29 = call ptr @aligned_alloc(i64 64, i64 %28)
  %30 = icmp eq ptr %29, null
  br i1 %30, label %31, label %35

31:
  %32 = cmpxchg ptr @failure, i32 0, i32 1 acq_rel monotonic, align 8
  %33 = extractvalue { i32, i1 } %32, 1
  br i1 %33, label %34, label %42

34:
  store ptr @.str.7, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 8), align 8
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 16), align 8
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 20), align 4
  store i32 0, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 24), align 8
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 28), align 4
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 32), align 8
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 36), align 4
  store atomic i32 2, ptr @failure release, align 8
  br label %42

35:
  %36 = load ptr, ptr %0, align 8
  %37 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %38 = load ptr, ptr %37, align 8
  %39 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %40 = getelementptr inbounds nuw i8, ptr %0, i64 36
  %41 = call i64 %36(ptr %38, i64 %20, i64 %23, ptr %39, ptr %29, ptr %40)
  call void @free(ptr %29)
  br label %42

42:
  ret void
}

define internal void @fail(ptr %0, i32 %1, i64 %2, i32 %3, i32 %4, i32 %5, i32 %6, i32 %7, i32 %8) nounwind uwtable(sync) {
  %10 = cmpxchg ptr @failure, i32 0, i32 1 acq_rel monotonic, align 8
  %11 = extractvalue { i32, i1 } %10, 1
  br i1 %11, label %12, label %13

12:
  store ptr %0, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 8), align 8
  store i32 %6, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 16), align 8
  store i32 %7, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 20), align 4
  store i32 %8, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 24), align 8
  store i32 %3, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 28), align 4
  store i32 %4, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 32), align 8
  store i32 %5, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 36), align 4
  store atomic i32 2, ptr @failure release, align 8
  br label %13

13:
  ret void
}

define internal void @print(ptr %0, i32 %1, i64 %2, i32 %3, i32 %4, i32 %5, i32 %6, i32 %7, i32 %8) nounwind uwtable(sync) {
  %10 = cmpxchg ptr @failure, i32 0, i32 1 acq_rel monotonic, align 8
  %11 = extractvalue { i32, i1 } %10, 1
  br i1 %11, label %12, label %13

12:
  store ptr @.str.6, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 8), align 8
  store i32 %6, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 16), align 8
  store i32 %7, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 20), align 4
  store i32 %8, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 24), align 8
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 28), align 4
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 32), align 8
  store i32 -1, ptr getelementptr inbounds nuw (i8, ptr @failure, i64 36), align 4
  store atomic i32 2, ptr @failure release, align 8
  br label %13

13:
  ret void
}

declare ptr @aligned_alloc(i64, i64)

declare void @free(ptr)

declare i32 @snprintf(ptr, i64, ptr, ...)

declare i32 @dprintf(i32, ptr, ...)

declare void @abort()

declare i64 @llvm.umin.i64(i64, i64)
