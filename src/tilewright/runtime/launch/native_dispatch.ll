; The entry of native dispatch: describes the arguments of a launch, finds the cache entry that has
; the same descriptors, and runs it.
;
; Python's calls of the C API that return an object return a new reference, or null with an error
; set, unless a comment says otherwise.

declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)   ; borrowed
declare i64 @PyList_Size(ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyDict_Copy(ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)   ; borrowed
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare i32 @PyCallable_Check(ptr)
declare i64 @PySequence_Size(ptr)
declare ptr @PySequence_GetItem(ptr, i64)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_NormalizeException(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare i32 @PyException_SetTraceback(ptr, ptr)
declare ptr @PyException_GetTraceback(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)   ; of null too
declare i32 @memcmp(ptr, ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; dispatch(grid, *arguments, **named), called by CPython (METH_FASTCALL | METH_KEYWORDS).
;   %self      Python int: address of a DispatchRecord
;   %args      the grid, positional arguments, keyword arguments
;   %count     of the grid and the positional ones
;   %keywords  tuple of the keywords, or null
; Returns the kernel, or null with an error set.
define ptr @tw_dispatch(ptr %self, ptr %args, i64 %count, ptr %keywords) nounwind {
  %call = alloca %DispatchCall
  %begun = call i1 @begin_call(ptr %call, ptr %self, ptr %args, i64 %count, ptr %keywords)
  br i1 %begun, label %describe, label %python
describe:
  %described = call { i64, i1 } @describe_arguments(ptr %call)
  %hash = extractvalue { i64, i1 } %described, 0
  %all = extractvalue { i64, i1 } %described, 1
  br i1 %all, label %find, label %python
find:
  %shift = call i64 @SLOT_SHIFT()
  %slot = lshr i64 %hash, %shift
  %entry = call ptr @find_entry(ptr %call, i64 %slot)
  %hit = icmp ne ptr %entry, null
  br i1 %hit, label %run, label %new
run:
  %launched = call ptr @launch_entry(ptr %call, ptr %entry)
  br label %release
new:
  %added = call ptr @launch_new(ptr %call, i64 %slot)
  br label %release
release:
  %result = phi ptr [ %launched, %run ], [ %added, %new ]
  call void @release_values(ptr %call)
  ret ptr %result
python:
  %slow = call ptr @launch_by_python(ptr %call)
  ret ptr %slow
}

; Fills in a DispatchCall; false for a call with too many arguments to describe.
define internal i1 @begin_call(ptr %call, ptr %self, ptr %args, i64 %count, ptr %keywords)
    nounwind alwaysinline {
  %record = call ptr @PyLong_AsVoidPtr(ptr %self)
  %known = call ptr @DispatchRecord.known(ptr %record)
  call void @DispatchCall.set_record(ptr %call, ptr %record)
  call void @DispatchCall.set_known(ptr %call, ptr %known)
  call void @DispatchCall.set_args(ptr %call, ptr %args)
  call void @DispatchCall.set_count(ptr %call, i64 %count)
  call void @DispatchCall.set_keywords(ptr %call, ptr %keywords)
  %positional = sub i64 %count, 1
  %no_keywords = icmp eq ptr %keywords, null
  br i1 %no_keywords, label %check, label %named
named:
  %keyword_count = call i64 @PyTuple_Size(ptr %keywords)
  br label %check
check:
  %extra = phi i64 [ 0, %0 ], [ %keyword_count, %named ]
  %total = add i64 %positional, %extra
  call void @DispatchCall.set_total(ptr %call, i64 %total)
  %parameters = call i64 @DispatchRecord.count(ptr %record)
  %valid = icmp ule i64 %positional, %parameters
  %most = call i64 @MAX_ARGUMENTS()
  %few = icmp ule i64 %total, %most
  %normal = and i1 %valid, %few
  ret i1 %normal
}

; Describes every argument: the hash of the descriptors, and true; false, with what was made
; released, if one is for Python.
define internal { i64, i1 } @describe_arguments(ptr %call) nounwind alwaysinline {
  %total = call i64 @DispatchCall.total(ptr %call)
  call void @DispatchCall.set_described(ptr %call, i64 0)
  call void @DispatchCall.set_held(ptr %call, i64 0)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %argument ]
  %more = icmp ult i64 %i, %total
  br i1 %more, label %argument, label %done
argument:
  %next = add i64 %i, 1
  %fine = call i1 @describe_argument(ptr %call, i64 %i)
  br i1 %fine, label %test, label %give_up
give_up:
  call void @release_values(ptr %call)
  ret { i64, i1 } zeroinitializer
done:
  %hash = call i64 @hash_descriptors(ptr %call)
  %result = insertvalue { i64, i1 } { i64 0, i1 true }, i64 %hash, 0
  ret { i64, i1 } %result
}

; Describes argument %i, positional or by keyword; false: for Python.
define internal i1 @describe_argument(ptr %call, i64 %i) nounwind alwaysinline {
  %record = call ptr @DispatchCall.record(ptr %call)
  %args = call ptr @DispatchCall.args(ptr %call)
  %count = call i64 @DispatchCall.count(ptr %call)
  %positional = sub i64 %count, 1
  %arg_index = add i64 %i, 1
  %arg_at = getelementptr ptr, ptr %args, i64 %arg_index
  %arg = load ptr, ptr %arg_at
  %is_positional = icmp ult i64 %i, %positional
  br i1 %is_positional, label %by_position, label %by_name
by_position:
  %flag_list = call ptr @DispatchRecord.flags(ptr %record)
  %flag_at = getelementptr i64, ptr %flag_list, i64 %i
  %flag = load i64, ptr %flag_at
  br label %describe
by_name:
  %keywords = call ptr @DispatchCall.keywords(ptr %call)
  %name_index = sub i64 %i, %positional
  %name = call ptr @PyTuple_GetItem(ptr %keywords, i64 %name_index)
  %name_flag = call i64 @flags_of(ptr %record, ptr %name, i64 %i)
  br label %describe
describe:
  %flags = phi i64 [ %flag, %by_position ], [ %name_flag, %by_name ]
  %keyword = phi ptr [ null, %by_position ], [ %name, %by_name ]
  %fine = call i1 @describe_given(ptr %call, ptr %arg, i64 %flags, ptr %keyword)
  ret i1 %fine
}

; Describes an argument, of which a tensor descriptor is several; false: for Python.
define internal i1 @describe_given(ptr %call, ptr %arg, i64 %flags, ptr %keyword)
    nounwind alwaysinline {
  %known = call ptr @DispatchCall.known(ptr %call)
  %type = call ptr @PyObject.type(ptr %arg)
  %descriptor_type = call ptr @KnownObjects.descriptor(ptr %known)
  %is_descriptor = icmp eq ptr %type, %descriptor_type
  %constexpr = call i64 @CONSTEXPR()
  %is_constant = call i1 @has_any(i64 %flags, i64 %constexpr)
  %is_passed = xor i1 %is_constant, true
  %is_described = and i1 %is_descriptor, %is_passed
  br i1 %is_described, label %several, label %one
several:
  %all = call i1 @describe_tensor_descriptor(ptr %call, ptr %arg, ptr %keyword)
  ret i1 %all
one:
  %item = call ptr @new_item(ptr %call, ptr %arg, ptr %keyword)
  %full = icmp eq ptr %item, null
  br i1 %full, label %no, label %describe
describe:
  %value = call ptr @value_at(ptr %call)
  %number = call ptr @number_at(ptr %call)
  %fine = call i1 @describe(ptr %known, ptr %arg, i64 %flags, ptr %item, ptr %value, ptr %number)
  br i1 %fine, label %add, label %no
add:
  call void @add_item(ptr %call, ptr %arg)
  %layout = call i64 @LAYOUT()
  %is_laid_out = call i1 @has_any(i64 %flags, i64 %layout)
  br i1 %is_laid_out, label %dimensions, label %yes
dimensions:
  %laid_out = call i1 @describe_layout(ptr %call, ptr %arg)
  ret i1 %laid_out
yes:
  ret i1 true
no:
  ret i1 false
}

; The ArgumentDescriptor of the next item of a call, its keyword filled in; null: there are too many.
define internal ptr @new_item(ptr %call, ptr %object, ptr %keyword) nounwind alwaysinline {
  %position = call i64 @DispatchCall.described(ptr %call)
  %most = call i64 @MAX_ARGUMENTS()
  %few = icmp ult i64 %position, %most
  br i1 %few, label %fill, label %none
fill:
  %descriptors = call ptr @DispatchCall.at_descriptors(ptr %call)
  %descriptor = getelementptr %ArgumentDescriptor, ptr %descriptors, i64 %position
  call void @ArgumentDescriptor.set_keyword(ptr %descriptor, ptr %keyword)
  ret ptr %descriptor
none:
  ret ptr null
}

; Where what is passed for the next item stands.
define internal ptr @value_at(ptr %call) nounwind alwaysinline {
  %position = call i64 @DispatchCall.described(ptr %call)
  %values = call ptr @DispatchCall.at_values(ptr %call)
  %value = getelementptr ptr, ptr %values, i64 %position
  ret ptr %value
}

; Where the number or address of the next item stands.
define internal ptr @number_at(ptr %call) nounwind alwaysinline {
  %position = call i64 @DispatchCall.described(ptr %call)
  %numbers = call ptr @DispatchCall.at_numbers(ptr %call)
  %number = getelementptr i64, ptr %numbers, i64 %position
  ret ptr %number
}

; The next item has been described: it is %object, which stays, since the caller has it.
define internal void @add_item(ptr %call, ptr %object) nounwind alwaysinline {
  %position = call i64 @DispatchCall.described(ptr %call)
  %objects = call ptr @DispatchCall.at_objects(ptr %call)
  %at = getelementptr ptr, ptr %objects, i64 %position
  store ptr %object, ptr %at
  %more = add i64 %position, 1
  call void @DispatchCall.set_described(ptr %call, i64 %more)
  ret void
}

; The hash of all descriptors of a call.
define internal i64 @hash_descriptors(ptr %call) nounwind alwaysinline {
  %words = call i64 @descriptor_words(ptr %call)
  %descriptors = call ptr @DispatchCall.at_descriptors(ptr %call)
  %hash = call i64 @hash_words(ptr %descriptors, i64 %words)
  ret i64 %hash
}

; The hash of %count words, which takes them by three.
define internal i64 @hash_words(ptr %words, i64 %count) nounwind {
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %mix ]
  %hash = phi i64 [ 0, %0 ], [ %hash_next, %mix ]
  %next = add i64 %i, 3
  %more = icmp ule i64 %next, %count
  br i1 %more, label %mix, label %rest
mix:
  %at = getelementptr i64, ptr %words, i64 %i
  %second_at = getelementptr i64, ptr %at, i64 1
  %third_at = getelementptr i64, ptr %at, i64 2
  %first = load i64, ptr %at
  %second = load i64, ptr %second_at
  %third = load i64, ptr %third_at
  %turned = call i64 @llvm.fshl.i64(i64 %second, i64 %second, i64 21)
  %further = call i64 @llvm.fshl.i64(i64 %third, i64 %third, i64 42)
  %two = add i64 %first, %turned
  %three = add i64 %two, %further
  %hash_next = call i64 @mixed(i64 %hash, i64 %three)
  br label %test
rest:
  %n = phi i64 [ %i, %test ], [ %n_next, %word ]
  %total = phi i64 [ %hash, %test ], [ %total_next, %word ]
  %left = icmp ult i64 %n, %count
  br i1 %left, label %word, label %done
word:
  %n_next = add i64 %n, 1
  %word_at = getelementptr i64, ptr %words, i64 %n
  %one = load i64, ptr %word_at
  %total_next = call i64 @mixed(i64 %total, i64 %one)
  br label %rest
done:
  ret i64 %total
}

declare i64 @llvm.fshl.i64(i64, i64, i64)

; The flags of the parameter called %name, which is probably the one at %likely; CONSTEXPR if there is
; none: a launch option.
define internal i64 @flags_of(ptr %record, ptr %name, i64 %likely) nounwind {
  %count = call i64 @DispatchRecord.count(ptr %record)
  %names = call ptr @DispatchRecord.names(ptr %record)
  %flags = call ptr @DispatchRecord.flags(ptr %record)
  br label %test
test:   ; from there on, then from the first one on
  %i = phi i64 [ %likely, %0 ], [ %next, %body ], [ 0, %around ]
  %tried = phi i64 [ 0, %0 ], [ %tried_next, %body ], [ %tried, %around ]
  %inside = icmp ult i64 %i, %count
  br i1 %inside, label %body, label %around
around:
  %all = icmp uge i64 %tried, %count
  br i1 %all, label %none, label %test
body:
  %candidate_at = getelementptr ptr, ptr %names, i64 %i
  %candidate = load ptr, ptr %candidate_at
  %next = add i64 %i, 1
  %tried_next = add i64 %tried, 1
  %same = icmp eq ptr %candidate, %name   ; names are interned
  br i1 %same, label %match, label %test
match:
  %at = getelementptr i64, ptr %flags, i64 %i
  %result = load i64, ptr %at
  ret i64 %result
none:
  %constexpr = call i64 @CONSTEXPR()
  ret i64 %constexpr
}

; One step of Fibonacci hashing: the factor is 2**64 divided by the golden ratio. The high bits of
; the result depend on all bits of the word.
define internal i64 @mixed(i64 %hash, i64 %word) nounwind alwaysinline {
  %mixed = xor i64 %hash, %word
  %result = mul i64 %mixed, -7046029254386353131
  ret i64 %result
}

; The cache entry of a call, searched from %slot on; null if there is none.
define internal ptr @find_entry(ptr %call, i64 %slot) nounwind alwaysinline {
  %record = call ptr @DispatchCall.record(ptr %call)
  %table = call ptr @DispatchRecord.table(ptr %record)
  %descriptors = call ptr @DispatchCall.at_descriptors(ptr %call)
  %size = call i64 @descriptor_words(ptr %call)
  %entry = call ptr @find_in_table(ptr %table, i64 %slot, ptr %descriptors, i64 %size)
  ret ptr %entry
}

; The entry of a table that is for these descriptors, %size words of them.
define internal ptr @find_in_table(ptr %table, i64 %slot, ptr %descriptors, i64 %size)
    nounwind alwaysinline {
  %probes = call i64 @PROBES()
  %last = add i64 %slot, %probes
  br label %probe
probe:
  %position = phi i64 [ %slot, %0 ], [ %further, %compare ]
  %entry_at = getelementptr ptr, ptr %table, i64 %position
  %entry = load ptr, ptr %entry_at
  %empty = icmp eq ptr %entry, null
  %searched = icmp uge i64 %position, %last
  %unknown = or i1 %empty, %searched
  br i1 %unknown, label %none, label %compare
compare:
  %further = add i64 %position, 1
  %hit = call i1 @has_descriptors(ptr %entry, ptr %descriptors, i64 %size)
  br i1 %hit, label %match, label %probe
match:
  ret ptr %entry
none:
  ret ptr null
}

; How many 64-bit words the descriptors of a call take.
define internal i64 @descriptor_words(ptr %call) nounwind alwaysinline {
  %described = call i64 @DispatchCall.described(ptr %call)
  %words = mul i64 %described, 3
  ret i64 %words
}

; Whether an entry is for these descriptors, %size words of them.
define internal i1 @has_descriptors(ptr %entry, ptr %descriptors, i64 %size) nounwind {
  %entry_size = call i64 @CacheEntry.size(ptr %entry)
  %entry_words = call ptr @CacheEntry.descriptors(ptr %entry)
  %sized = icmp eq i64 %entry_size, %size
  br i1 %sized, label %compare, label %no
compare:
  %bytes = mul i64 %size, 8
  %difference = call i32 @memcmp(ptr %entry_words, ptr %descriptors, i64 %bytes)
  %same = icmp eq i32 %difference, 0
  ret i1 %same
no:
  ret i1 false
}

; A launch that has no entry: by the record's `add_entry`, or by Python without adding one.
define internal ptr @launch_new(ptr %call, i64 %slot) nounwind alwaysinline {
  %record = call ptr @DispatchCall.record(ptr %call)
  %add_entry = call ptr @DispatchRecord.add_entry(ptr %record)
  %adds = icmp ne ptr %add_entry, null
  br i1 %adds, label %add, label %leave
leave:
  %left = call ptr @launch_by_python(ptr %call)
  ret ptr %left
add:
  %text = call ptr @descriptor_bytes(ptr %call, i64 %slot)
  %passed = call ptr @DispatchCall.at_passed(ptr %call)
  store ptr %text, ptr %passed
  %rest = getelementptr ptr, ptr %passed, i64 1
  call void @copy_arguments(ptr %call, ptr %rest)
  %count = call i64 @DispatchCall.count(ptr %call)
  %one_more = add i64 %count, 1
  %keywords = call ptr @DispatchCall.keywords(ptr %call)
  %added = call ptr @PyObject_Vectorcall(ptr %add_entry, ptr %passed, i64 %one_more, ptr %keywords)
  call void @Py_DecRef(ptr %text)
  ret ptr %added
}

; The descriptors and, behind them, the slot of the table, as Python bytes.
define internal ptr @descriptor_bytes(ptr %call, i64 %slot) nounwind alwaysinline {
  %descriptors = call ptr @DispatchCall.at_descriptors(ptr %call)
  %size = call i64 @descriptor_words(ptr %call)
  %slot_at = getelementptr i64, ptr %descriptors, i64 %size
  store i64 %slot, ptr %slot_at
  %words = add i64 %size, 1
  %bytes = mul i64 %words, 8
  %text = call ptr @PyBytes_FromStringAndSize(ptr %descriptors, i64 %bytes)
  ret ptr %text
}

; Copies the addresses of the grid and all arguments to %to.
define internal void @copy_arguments(ptr %call, ptr %to) nounwind alwaysinline {
  %args = call ptr @DispatchCall.args(ptr %call)
  %total = call i64 @DispatchCall.total(ptr %call)
  %all = add i64 %total, 1
  %bytes = mul i64 %all, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %args, i64 %bytes, i1 false)
  ret void
}

; Passes the call on to Python as it came.
define internal ptr @launch_by_python(ptr %call) nounwind {
  %args = call ptr @DispatchCall.args(ptr %call)
  %result = call ptr @launch_arguments_by_python(ptr %call, ptr %args)
  ret ptr %result
}

; The same with another array of the grid and the arguments.
define internal ptr @launch_arguments_by_python(ptr %call, ptr %args) nounwind alwaysinline {
  %record = call ptr @DispatchCall.record(ptr %call)
  %python = call ptr @DispatchRecord.python(ptr %record)
  %count = call i64 @DispatchCall.count(ptr %call)
  %keywords = call ptr @DispatchCall.keywords(ptr %call)
  %result = call ptr @PyObject_Vectorcall(ptr %python, ptr %args, i64 %count, ptr %keywords)
  ret ptr %result
}

; Gives up the references to the values of a call, and to the arrays of its tensor descriptors.
define internal void @release_values(ptr %call) nounwind alwaysinline {
  %count = call i64 @DispatchCall.described(ptr %call)
  %values = call ptr @DispatchCall.at_values(ptr %call)
  call void @release_objects(ptr %values, i64 %count)
  %held_count = call i64 @DispatchCall.held(ptr %call)
  %held = call ptr @DispatchCall.at_held_objects(ptr %call)
  call void @release_objects(ptr %held, i64 %held_count)
  ret void
}

; Gives up references, some of which may be null.
define internal void @release_objects(ptr %objects, i64 %count) nounwind {
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %body ], [ %next, %release ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %at
  %next = add i64 %i, 1
  %none = icmp eq ptr %object, null
  br i1 %none, label %test, label %release
release:
  call void @Py_DecRef(ptr %object)
  br label %test
done:
  ret void
}
