; The grid of a launch: three Python ints, given as a tuple, as one int, or by a callable.

; Whether an object is an int that can be an extent: 0 to 2**31 - 1.
define internal i1 @is_extent(ptr %known, ptr %object) nounwind {
  %overflow = alloca i32
  %type = call ptr @PyObject.type(ptr %object)
  %int = call ptr @KnownObjects.int(ptr %known)
  %is_int = icmp eq ptr %type, %int
  br i1 %is_int, label %range, label %no
range:
  %v = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow)   ; -1 on overflow
  %fine = icmp ule i64 %v, 2147483647
  ret i1 %fine
no:
  ret i1 false
}

; Writes the three extents of a tuple of 1 to 3 ints, or of an int, to %out as borrowed references;
; false: the grid is neither.
define internal i1 @extents(ptr %known, ptr %grid, ptr %out) nounwind {
  %one = call ptr @KnownObjects.one(ptr %known)
  %second = getelementptr ptr, ptr %out, i64 1
  %third = getelementptr ptr, ptr %out, i64 2
  store ptr %one, ptr %second
  store ptr %one, ptr %third
  %type = call ptr @PyObject.type(ptr %grid)
  %tuple = call ptr @KnownObjects.tuple(ptr %known)
  %is_tuple = icmp eq ptr %type, %tuple
  br i1 %is_tuple, label %items, label %number
number:
  store ptr %grid, ptr %out
  %fine = call i1 @is_extent(ptr %known, ptr %grid)
  ret i1 %fine
items:
  %count = call i64 @PyTuple_Size(ptr %grid)
  %less = sub i64 %count, 1
  %few = icmp ult i64 %less, 3
  br i1 %few, label %item, label %no
item:
  %i = phi i64 [ 0, %items ], [ %next, %good ]
  %object = call ptr @PyTuple_GetItem(ptr %grid, i64 %i)
  %at = getelementptr ptr, ptr %out, i64 %i
  store ptr %object, ptr %at
  %is = call i1 @is_extent(ptr %known, ptr %object)
  br i1 %is, label %good, label %no
good:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %item, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; What a callable grid returns for a dict of all arguments by name; null: it raised.
define internal ptr @call_grid(ptr %call, ptr %entry, ptr %grid) nounwind {
  %slot = alloca ptr
  %args = call ptr @DispatchCall.args(ptr %call)
  %total = call i64 @DispatchCall.total(ptr %call)
  %defaults = call ptr @CacheEntry.defaults(ptr %entry)
  %named = call ptr @PyDict_Copy(ptr %defaults)
  store ptr %named, ptr %slot
  %names = call ptr @CacheEntry.names(ptr %entry)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %body ]
  %more = icmp ult i64 %i, %total
  br i1 %more, label %body, label %ask
body:
  %name_at = getelementptr ptr, ptr %names, i64 %i
  %name = load ptr, ptr %name_at
  %next = add i64 %i, 1
  %arg_at = getelementptr ptr, ptr %args, i64 %next
  %arg = load ptr, ptr %arg_at
  %set = call i32 @PyDict_SetItem(ptr %named, ptr %name, ptr %arg)
  br label %test
ask:
  %result = call ptr @PyObject_Vectorcall(ptr %grid, ptr %slot, i64 1, ptr null)
  call void @Py_DecRef(ptr %named)
  ret ptr %result
}
