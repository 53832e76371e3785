; Launches by backends that take the arguments as 64-bit words: no Python object is made for them.

; Calls the entry's `words` with the grid, whose extents stand in `passed`, and a word for each
; run-time value. Returns a new reference to some object, or null with an error set.
define internal ptr @call_with_words(ptr %call, ptr %entry, ptr %words) nounwind {
  %passed = call ptr @DispatchCall.at_passed(ptr %call)
  %x = call i32 @extent_word(ptr %passed, i64 0)
  %y = call i32 @extent_word(ptr %passed, i64 1)
  %z = call i32 @extent_word(ptr %passed, i64 2)
  ; the extents are read: the words take their place
  call void @gather_words(ptr %call, ptr %entry, ptr %passed)
  %record = call ptr @CacheEntry.words_record(ptr %entry)
  %status = call i32 %words(ptr %record, i32 %x, i32 %y, i32 %z, ptr %passed)
  %known = call ptr @DispatchCall.known(ptr %call)
  %result = call ptr @end_of_words(ptr %known, ptr %entry, i32 %status)
  ret ptr %result
}

; What comes of a launch by words that has returned %status: a new reference to some object, or null
; with an error set.
define internal ptr @end_of_words(ptr %known, ptr %entry, i32 %status) nounwind alwaysinline {
  %slot = alloca ptr
  %failures = call ptr @CacheEntry.failures(ptr %entry)
  %failed = call i64 @PyList_Size(ptr %failures)
  %wide = zext i32 %status to i64
  %any = or i64 %failed, %wide
  %fine = icmp eq i64 %any, 0
  br i1 %fine, label %succeed, label %look
succeed:
  %one = call ptr @KnownObjects.one(ptr %known)
  call void @Py_IncRef(ptr %one)
  ret ptr %one
look:
  %object = call ptr @PyLong_FromUnsignedLongLong(i64 %wide)
  store ptr %object, ptr %slot
  %check = call ptr @CacheEntry.check(ptr %entry)
  %result = call ptr @PyObject_Vectorcall(ptr %check, ptr %slot, i64 1, ptr null)
  call void @Py_DecRef(ptr %object)
  ret ptr %result
}

define internal i32 @extent_word(ptr %passed, i64 %axis) nounwind alwaysinline {
  %at = getelementptr ptr, ptr %passed, i64 %axis
  %object = load ptr, ptr %at
  %wide = call i64 @PyLong_AsLongLong(ptr %object)
  %extent = trunc i64 %wide to i32
  ret i32 %extent
}

; Writes the run-time values to %to as words: of an item, or the entry's constant.
define internal void @gather_words(ptr %call, ptr %entry, ptr %to) nounwind alwaysinline {
  %numbers = call ptr @DispatchCall.at_numbers(ptr %call)
  %count = call i64 @CacheEntry.values(ptr %entry)
  %sources = call ptr @CacheEntry.sources(ptr %entry)
  %slots = call ptr @CacheEntry.slots(ptr %entry)
  %constants = call ptr @CacheEntry.constants(ptr %entry)
  %positions = call i64 @MAX_ARGUMENTS()
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %write ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %value, label %done
value:
  %source_at = getelementptr i64, ptr %sources, i64 %i
  %source = load i64, ptr %source_at
  %is_position = icmp ult i64 %source, %positions
  br i1 %is_position, label %given, label %constant
constant:
  %constant_at = getelementptr i64, ptr %constants, i64 %i
  %constant_word = load i64, ptr %constant_at
  br label %write
given:
  %object = call ptr @object_of(ptr %call, i64 %source)
  %kind_at = getelementptr i64, ptr %slots, i64 %i
  %kind = load i64, ptr %kind_at
  switch i64 %kind, label %word [
    i64 1, label %single
    i64 2, label %double
    i64 3, label %truth
  ]
word:
  %number_at = getelementptr i64, ptr %numbers, i64 %source
  %number = load i64, ptr %number_at
  br label %write
single:
  %s = call double @PyFloat_AsDouble(ptr %object)
  %rounded = fptrunc double %s to float
  %single_bits = bitcast float %rounded to i32
  %single_word = zext i32 %single_bits to i64
  br label %write
double:
  %d = call double @PyFloat_AsDouble(ptr %object)
  %double_word = bitcast double %d to i64
  br label %write
truth:
  %true = call i32 @PyObject_IsTrue(ptr %object)
  %true_word = zext i32 %true to i64
  br label %write
write:
  %result = phi i64 [ %number, %word ], [ %single_word, %single ], [ %double_word, %double ],
      [ %true_word, %truth ], [ %constant_word, %constant ]
  %at = getelementptr i64, ptr %to, i64 %i
  store i64 %result, ptr %at
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}
