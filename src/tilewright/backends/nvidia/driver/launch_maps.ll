; The tensor maps of a launch, from tables; the handler `encode` makes those that are not there.

; Copies each map of a kernel behind the one before, from %maps on, and their addresses to %params.
;   %slots  the 64 bits of each argument
; False, with an error set: the driver takes no such map.
define internal i1 @pass_maps(ptr %record, ptr %slots, ptr %maps, ptr %params) nounwind {
  %count = call i64 @LaunchRecord.maps(ptr %record)
  %tables = call ptr @LaunchRecord.map_tables(ptr %record)
  %bytes = call i64 @MAP_BYTES()
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %passed ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %pass, label %yes
pass:
  %table = getelementptr %MapTable, ptr %tables, i64 %i
  %offset = mul i64 %i, %bytes
  %map = getelementptr i8, ptr %maps, i64 %offset
  %found = call i1 @copy_map(ptr %record, i64 %i, ptr %table, ptr %slots, ptr %map)
  br i1 %found, label %passed, label %no
passed:
  %param_at = getelementptr ptr, ptr %params, i64 %i
  store ptr %map, ptr %param_at
  %next = add i64 %i, 1
  br label %test
yes:
  ret i1 true
no:
  ret i1 false
}

; Copies map %number of a kernel to %to; false, with an error set: there is none.
define internal i1 @copy_map(ptr %record, i64 %number, ptr %table, ptr %slots, ptr %to)
    nounwind alwaysinline {
  %word_count = call i64 @MAP_WORDS()
  %words = alloca i64, i64 %word_count
  %hash = call i64 @gather_words(ptr %table, ptr %slots, ptr %words)
  %shift = call i64 @MAP_SHIFT()
  %position = lshr i64 %hash, %shift
  %entries = call ptr @MapTable.entries(ptr %table)
  %first = getelementptr %MapEntry, ptr %entries, i64 %position
  %count = call i64 @MapTable.count(ptr %table)
  %probes = call i64 @MAP_PROBES()
  br label %probe
probe:
  %p = phi i64 [ 0, %0 ], [ %further, %compare ]
  %entry = getelementptr %MapEntry, ptr %first, i64 %p
  %searched = icmp eq i64 %p, %probes
  br i1 %searched, label %replace, label %look
look:
  %filled = call i64 @MapEntry.filled(ptr %entry)
  %empty = icmp eq i64 %filled, 0
  br i1 %empty, label %make, label %compare
compare:
  %further = add i64 %p, 1
  %kept_words = call ptr @MapEntry.at_words(ptr %entry)
  %same = call i1 @are_words_equal(ptr %kept_words, ptr %words, i64 %count)
  br i1 %same, label %copy, label %probe
copy:
  %kept = call ptr @MapEntry.at_map(ptr %entry)
  %bytes = call i64 @MAP_BYTES()
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %kept, i64 %bytes, i1 false)
  ret i1 true
replace:   ; the places take turns
  %turn = call i64 @MapTable.turn(ptr %table)
  %turned = add i64 %turn, 1
  call void @MapTable.set_turn(ptr %table, i64 %turned)
  %victim = urem i64 %turn, %probes
  %replaced = getelementptr %MapEntry, ptr %first, i64 %victim
  br label %make
make:
  %place = phi ptr [ %entry, %look ], [ %replaced, %replace ]
  %made = call i1 @make_map(ptr %record, i64 %number, ptr %words, ptr %place, ptr %to)
  ret i1 %made
}

; Writes the words that decide a map; their hash, whose high bits depend on all of them.
define internal i64 @gather_words(ptr %table, ptr %slots, ptr %words) nounwind alwaysinline {
  %count = call i64 @MapTable.count(ptr %table)
  %numbers = call ptr @MapTable.slots(ptr %table)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %word ]
  %hash = phi i64 [ 0, %0 ], [ %hash_next, %word ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %word, label %done
word:
  %number_at = getelementptr i64, ptr %numbers, i64 %i
  %number = load i64, ptr %number_at
  %slot = getelementptr i64, ptr %slots, i64 %number
  %value = load i64, ptr %slot
  %at = getelementptr i64, ptr %words, i64 %i
  store i64 %value, ptr %at
  %mixed = xor i64 %hash, %value
  %hash_next = mul i64 %mixed, -7046029254386353131   ; 2**64 divided by the golden ratio
  %next = add i64 %i, 1
  br label %test
done:
  ret i64 %hash
}

; Whether the first %count words are the same.
define internal i1 @are_words_equal(ptr %some, ptr %others, i64 %count) nounwind alwaysinline {
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %word ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %word, label %yes
word:
  %x_at = getelementptr i64, ptr %some, i64 %i
  %y_at = getelementptr i64, ptr %others, i64 %i
  %x = load i64, ptr %x_at
  %y = load i64, ptr %y_at
  %next = add i64 %i, 1
  %same = icmp eq i64 %x, %y
  br i1 %same, label %test, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Asks the handler `encode` for the map of %words; copies it to %to and, with the words, to %entry,
; at once for other threads, which wait for the GIL.
define internal i1 @make_map(ptr %record, i64 %number, ptr %words, ptr %entry, ptr %to) nounwind {
  %args = alloca [2 x ptr]
  %number_object = call ptr @PyLong_FromLongLong(i64 %number)
  store ptr %number_object, ptr %args
  %address = ptrtoint ptr %words to i64
  %address_object = call ptr @PyLong_FromUnsignedLongLong(i64 %address)
  %second = getelementptr ptr, ptr %args, i64 1
  store ptr %address_object, ptr %second
  %handler = call ptr @LaunchRecord.encode(ptr %record)
  %result = call ptr @call_handler(ptr %handler, ptr %args, i64 2)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %fail, label %keep
keep:
  %encoded = call ptr @PyBytes_AsString(ptr %result)
  %bytes = call i64 @MAP_BYTES()
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %encoded, i64 %bytes, i1 false)
  %kept = call ptr @MapEntry.at_map(ptr %entry)
  call void @llvm.memcpy.p0.p0.i64(ptr %kept, ptr %encoded, i64 %bytes, i1 false)
  call void @Py_DecRef(ptr %result)
  %word_count = call i64 @MAP_WORDS()
  %word_bytes = mul i64 %word_count, 8
  %kept_words = call ptr @MapEntry.at_words(ptr %entry)
  call void @llvm.memcpy.p0.p0.i64(ptr %kept_words, ptr %words, i64 %word_bytes, i1 false)
  call void @MapEntry.set_filled(ptr %entry, i64 1)
  ret i1 true
fail:
  ret i1 false
}
