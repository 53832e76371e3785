; Whether arguments overlap that must not. An entry has an OverlapPair for each two of them. Where
; they may overlap Python launches, which looks closely, and warns once (`overlap_warning`).
;
;   two addresses differ by at least the extent of the lower array                        no
;   they are equal, and all sums of the pair are 0 in this launch                         no
;   addresses, integers and grid are those of the entry's latest launch by Python, which
;   has found no overlap since                                                            no
;   else                                                                                  perhaps
;
; A launch like the latest one touches the same memory, whatever the arrays say of their lengths.

; The extents of the grid stand in the call's `passed`.
define internal i1 @may_overlap(ptr %call, ptr %entry) nounwind alwaysinline {
  %pairs = call i64 @CacheEntry.pairs(ptr %entry)
  %no_pairs = icmp eq i64 %pairs, 0
  br i1 %no_pairs, label %no, label %watch
watch:
  %record = call ptr @DispatchCall.record(ptr %call)
  %watching = call ptr @DispatchRecord.watching(ptr %record)
  %on = load i64, ptr %watching
  %off = icmp eq i64 %on, 0
  br i1 %off, label %no, label %compare
compare:
  %suspect = call i1 @any_pair_may_overlap(ptr %call, ptr %entry)
  br i1 %suspect, label %look, label %no
look:
  %changed = call i64 @note_launch(ptr %call, ptr %entry, i64 %on)
  %is_new = icmp ne i64 %changed, 0
  ret i1 %is_new
no:
  ret i1 false
}

; Notes a launch as the entry's latest; 0 if it is like the one before. `latest` holds the grid, the
; state of the watch, and for each item its number or address.
define internal i64 @note_launch(ptr %call, ptr %entry, i64 %state) nounwind {
  %grid = call ptr @DispatchCall.at_passed(ptr %call)
  %numbers = call ptr @DispatchCall.at_numbers(ptr %call)
  %described = call i64 @DispatchCall.described(ptr %call)
  %latest = call ptr @CacheEntry.latest(ptr %entry)
  br label %size
size:
  %i = phi i64 [ 0, %0 ], [ %i_next, %size ]
  %grid_changed = phi i64 [ 0, %0 ], [ %grid_changed_next, %size ]
  %extent_at = getelementptr ptr, ptr %grid, i64 %i
  %extent_object = load ptr, ptr %extent_at
  %extent = call i64 @PyLong_AsLongLong(ptr %extent_object)
  %size_at = getelementptr i64, ptr %latest, i64 %i
  %grid_changed_next = call i64 @note_word(ptr %size_at, i64 %extent, i64 %grid_changed)
  %i_next = add i64 %i, 1
  %more_sizes = icmp ult i64 %i_next, 3
  br i1 %more_sizes, label %size, label %numbers_begin
numbers_begin:
  %state_at = getelementptr i64, ptr %latest, i64 3
  %state_changed = call i64 @note_word(ptr %state_at, i64 %state, i64 %grid_changed_next)
  %latest_numbers = getelementptr i64, ptr %latest, i64 4
  br label %test
test:
  %n = phi i64 [ 0, %numbers_begin ], [ %n_next, %number ]
  %changed = phi i64 [ %state_changed, %numbers_begin ], [ %changed_next, %number ]
  %more = icmp ult i64 %n, %described
  br i1 %more, label %number, label %done
number:
  %number_at = getelementptr i64, ptr %numbers, i64 %n
  %word = load i64, ptr %number_at
  %word_at = getelementptr i64, ptr %latest_numbers, i64 %n
  %changed_next = call i64 @note_word(ptr %word_at, i64 %word, i64 %changed)
  %n_next = add i64 %n, 1
  br label %test
done:
  ret i64 %changed
}

; Stores a word; %changed with the bits set in which it differs from the one before.
define internal i64 @note_word(ptr %at, i64 %word, i64 %changed) nounwind alwaysinline {
  %before = load i64, ptr %at
  %differs = xor i64 %word, %before
  %result = or i64 %changed, %differs
  store i64 %word, ptr %at
  ret i64 %result
}

; Whether the arguments of any pair may overlap in this launch.
define internal i1 @any_pair_may_overlap(ptr %call, ptr %entry) nounwind {
  %count = call i64 @CacheEntry.pairs(ptr %entry)
  %list = call ptr @CacheEntry.pair_list(ptr %entry)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %pair ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %pair, label %no
pair:
  %next = add i64 %i, 1
  %pair_at = getelementptr %OverlapPair, ptr %list, i64 %i
  %suspect = call i1 @pair_may_overlap(ptr %call, ptr %pair_at)
  br i1 %suspect, label %yes, label %test
yes:
  ret i1 true
no:
  ret i1 false
}

; The same of one OverlapPair.
define internal i1 @pair_may_overlap(ptr %call, ptr %pair) nounwind alwaysinline {
  %numbers = call ptr @DispatchCall.at_numbers(ptr %call)
  %first = call i64 @OverlapPair.first(ptr %pair)
  %second = call i64 @OverlapPair.second(ptr %pair)
  %first_at = getelementptr i64, ptr %numbers, i64 %first
  %a = load i64, ptr %first_at
  %second_at = getelementptr i64, ptr %numbers, i64 %second
  %b = load i64, ptr %second_at
  %same = icmp eq i64 %a, %b
  br i1 %same, label %equal, label %different
equal:
  %count = call i64 @OverlapPair.sums(ptr %pair)
  %never = icmp eq i64 %count, 0
  br i1 %never, label %yes, label %sum
sum:
  %sums = call ptr @OverlapPair.sum_words(ptr %pair)
  %one_array = call i1 @all_sums_zero(i64 %count, ptr %sums, ptr %numbers)
  %not_one_array = xor i1 %one_array, true
  ret i1 %not_one_array
different:
  %first_lower = icmp ult i64 %a, %b
  %low = select i1 %first_lower, i64 %first, i64 %second
  %high = select i1 %first_lower, i64 %second, i64 %first
  %forwards = sub i64 %b, %a
  %backwards = sub i64 %a, %b
  %distance = select i1 %first_lower, i64 %forwards, i64 %backwards
  %first_bytes = call i64 @OverlapPair.first_bytes(ptr %pair)
  %second_bytes = call i64 @OverlapPair.second_bytes(ptr %pair)
  %bytes = select i1 %first_lower, i64 %first_bytes, i64 %second_bytes
  %extent = call i64 @extent(ptr %call, i64 %low, i64 %bytes)
  %reaches = icmp ult i64 %distance, %extent   ; an unknown extent is the largest number
  br i1 %reaches, label %yes, label %look_back
look_back:
  %reversed = call i1 @may_reach_down(ptr %call, i64 %high, i64 %bytes)
  ret i1 %reversed
yes:
  ret i1 true
}

; Whether an array may have elements below its address: one of NumPy, by a negative stride.
define internal i1 @may_reach_down(ptr %call, i64 %position, i64 %bytes) nounwind alwaysinline {
  %known = call ptr @DispatchCall.known(ptr %call)
  %array = call ptr @array_at(ptr %call, i64 %position)
  %type = call ptr @PyObject.type(ptr %array)
  %ndarray = call ptr @KnownObjects.ndarray(ptr %known)
  %is_ndarray = icmp eq ptr %type, %ndarray
  br i1 %is_ndarray, label %look, label %no
look:
  %extent = call i64 @numpy_extent(ptr %array, i64 %bytes)
  %unknown = icmp eq i64 %extent, -1
  ret i1 %unknown
no:
  ret i1 false
}

; The array at a position.
define internal ptr @array_at(ptr %call, i64 %position) nounwind alwaysinline {
  %objects = call ptr @DispatchCall.at_objects(ptr %call)
  %at = getelementptr ptr, ptr %objects, i64 %position
  %array = load ptr, ptr %at
  ret ptr %array
}

; Bytes from the first element of an array to the end of its last one; -1: not known.
;   %bytes  of an element
define internal i64 @extent(ptr %call, i64 %position, i64 %bytes) nounwind alwaysinline {
  %known = call ptr @DispatchCall.known(ptr %call)
  %array = call ptr @array_at(ptr %call, i64 %position)
  %type = call ptr @PyObject.type(ptr %array)
  %ndarray = call ptr @KnownObjects.ndarray(ptr %known)
  %is_ndarray = icmp eq ptr %type, %ndarray
  br i1 %is_ndarray, label %numpy, label %no_ndarray
numpy:
  %numpy_extent = call i64 @numpy_extent(ptr %array, i64 %bytes)
  ret i64 %numpy_extent
no_ndarray:
  %is_plain = call i1 @is_plain_type(ptr %known, ptr %type)
  br i1 %is_plain, label %plain, label %tensor
plain:
  %numbers = call ptr @DispatchCall.at_numbers(ptr %call)
  %number = getelementptr i64, ptr %numbers, i64 %position
  %reach_at = call ptr @reach_at(ptr %number)
  %reach = load i64, ptr %reach_at
  %plain_extent = mul i64 %reach, %bytes
  ret i64 %plain_extent
tensor:
  %tensor_extent = call i64 @tensor_extent(ptr %known, ptr %array, i64 %bytes)
  ret i64 %tensor_extent
}

; By the header of an array of NumPy; -1 if a stride is negative.
define internal i64 @numpy_extent(ptr %array, i64 %bytes) nounwind {
  %rank_32 = call i32 @PyArray.rank(ptr %array)
  %rank = zext i32 %rank_32 to i64
  %shape = call ptr @PyArray.shape(ptr %array)
  %strides = call ptr @PyArray.strides(ptr %array)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %sized ]
  %total = phi i64 [ %bytes, %0 ], [ %longer, %sized ]
  %more = icmp ult i64 %i, %rank
  br i1 %more, label %dimension, label %done
dimension:
  %size_at = getelementptr i64, ptr %shape, i64 %i
  %size = load i64, ptr %size_at
  %stride_at = getelementptr i64, ptr %strides, i64 %i
  %stride = load i64, ptr %stride_at
  %next = add i64 %i, 1
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %none, label %counted
counted:
  %backwards = icmp slt i64 %stride, 0
  br i1 %backwards, label %unknown, label %sized
sized:
  %steps = sub i64 %size, 1
  %reach = mul i64 %steps, %stride
  %longer = add i64 %total, %reach
  br label %test
done:
  ret i64 %total
none:
  ret i64 0
unknown:
  ret i64 -1
}

; By `numel()`, which is the extent of a contiguous tensor; Python has looked at the entry's first.
define internal i64 @tensor_extent(ptr %known, ptr %tensor, i64 %bytes) nounwind {
  %numel = call ptr @KnownObjects.numel(ptr %known)
  %count_object = call ptr @call_method(ptr %numel, ptr %tensor)
  %failed = icmp eq ptr %count_object, null
  br i1 %failed, label %error, label %answer
answer:
  %count = call i64 @PyLong_AsLongLong(ptr %count_object)
  call void @Py_DecRef(ptr %count_object)
  %length = mul i64 %count, %bytes
  ret i64 %length
error:
  call void @PyErr_Clear()
  ret i64 -1
}

; Whether %count sums are all 0; %sums: their words (see OverlapPair), one after another.
define internal i1 @all_sums_zero(i64 %count, ptr %sums, ptr %numbers) nounwind {
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %sum ]
  %at = phi ptr [ %sums, %0 ], [ %at_next, %sum ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %sum, label %yes
sum:
  %next = add i64 %i, 1
  %evaluated = call { i64, ptr } @sum_value(ptr %at, ptr %numbers)
  %value = extractvalue { i64, ptr } %evaluated, 0
  %at_next = extractvalue { i64, ptr } %evaluated, 1
  %is_zero = icmp eq i64 %value, 0
  br i1 %is_zero, label %test, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; The value of the sum at %sum, and the address behind it.
define internal { i64, ptr } @sum_value(ptr %sum, ptr %numbers) nounwind alwaysinline {
  %terms = load i64, ptr %sum
  %first = getelementptr i64, ptr %sum, i64 1
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %term ]
  %total = phi i64 [ 0, %0 ], [ %grown, %term ]
  %at = phi ptr [ %first, %0 ], [ %at_next, %term ]
  %more = icmp ult i64 %i, %terms
  br i1 %more, label %term, label %done
term:
  %next = add i64 %i, 1
  %product = call i64 @term_value(ptr %at, ptr %numbers)
  %grown = add i64 %total, %product
  %count_at = getelementptr i64, ptr %at, i64 1
  %count = load i64, ptr %count_at
  %positions = getelementptr i64, ptr %at, i64 2
  %at_next = getelementptr i64, ptr %positions, i64 %count
  br label %test
done:
  %value = insertvalue { i64, ptr } zeroinitializer, i64 %total, 0
  %result = insertvalue { i64, ptr } %value, ptr %at, 1
  ret { i64, ptr } %result
}

; The product of a term: its factor times the numbers of its arguments.
define internal i64 @term_value(ptr %term, ptr %numbers) nounwind alwaysinline {
  %factor = load i64, ptr %term
  %count_at = getelementptr i64, ptr %term, i64 1
  %count = load i64, ptr %count_at
  %positions = getelementptr i64, ptr %term, i64 2
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %argument ]
  %product = phi i64 [ %factor, %0 ], [ %multiplied, %argument ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %argument, label %done
argument:
  %next = add i64 %i, 1
  %position_at = getelementptr i64, ptr %positions, i64 %i
  %position = load i64, ptr %position_at
  %number_at = getelementptr i64, ptr %numbers, i64 %position
  %number = load i64, ptr %number_at
  %multiplied = mul i64 %product, %number
  br label %test
done:
  ret i64 %product
}
