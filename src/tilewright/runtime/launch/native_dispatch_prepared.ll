; Launches that the layouts of some arrays decide: all that is passed but addresses is known of them.
;
;   describe the objects: of an array its type, dtype, device, alignment, shape and strides
;   find the launch that was prepared for such
;   hooks, options, globals: as they were?
;   arrays that overlap?
;   call with the words of the launch, the addresses of these arrays in their places
;
; Where anything is otherwise nothing is launched, and the caller does it as if none were prepared.

; launch(*objects), called by CPython (METH_FASTCALL): True if it was prepared, and is done.
;   %self  Python int: address of a PreparedRecord
; Null with an error set if the launch has raised one.
define ptr @tw_launch_prepared(ptr %self, ptr %args, i64 %count) nounwind {
  %layouts = alloca %ObjectLayouts
  %record = call ptr @PyLong_AsVoidPtr(ptr %self)
  %described = call i1 @describe_layouts(ptr %record, ptr %args, i64 %count, ptr %layouts)
  br i1 %described, label %find, label %no
find:
  %table = call ptr @PreparedRecord.table(ptr %record)
  %words = call ptr @ObjectLayouts.at_words(ptr %layouts)
  %size = call i64 @ObjectLayouts.size(ptr %layouts)
  %slot = call i64 @slot_of_words(ptr %words, i64 %size)
  %prepared = call ptr @find_in_table(ptr %table, i64 %slot, ptr %words, i64 %size)
  %unknown = icmp eq ptr %prepared, null
  br i1 %unknown, label %no, label %hold
hold:   ; another thread may drop it meanwhile
  %entry = call ptr @PreparedLaunch.at_entry(ptr %prepared)
  %owner = call ptr @CacheEntry.owner(ptr %entry)
  call void @Py_IncRef(ptr %owner)
  %result = call ptr @launch_prepared(ptr %record, ptr %prepared, ptr %layouts)
  call void @Py_DecRef(ptr %owner)
  ret ptr %result
no:
  %false = call ptr @PyBool_FromLong(i64 0)
  ret ptr %false
}

; describe(*objects): the words that a launch is found by, and their slot, as bytes; False if they
; cannot be described.
define ptr @tw_describe_layouts(ptr %self, ptr %args, i64 %count) nounwind {
  %layouts = alloca %ObjectLayouts
  %record = call ptr @PyLong_AsVoidPtr(ptr %self)
  %described = call i1 @describe_layouts(ptr %record, ptr %args, i64 %count, ptr %layouts)
  br i1 %described, label %yes, label %no
yes:
  %words = call ptr @ObjectLayouts.at_words(ptr %layouts)
  %size = call i64 @ObjectLayouts.size(ptr %layouts)
  %slot = call i64 @slot_of_words(ptr %words, i64 %size)
  call void @add_word(ptr %layouts, i64 %slot)
  %size_now = call i64 @ObjectLayouts.size(ptr %layouts)
  %bytes = mul i64 %size_now, 8
  %text = call ptr @PyBytes_FromStringAndSize(ptr %words, i64 %bytes)
  ret ptr %text
no:
  %false = call ptr @PyBool_FromLong(i64 0)
  ret ptr %false
}

define internal i64 @slot_of_words(ptr %words, i64 %count) nounwind {
  %hash = call i64 @hash_words(ptr %words, i64 %count)
  %shift = call i64 @SLOT_SHIFT()
  %slot = lshr i64 %hash, %shift
  ret i64 %slot
}

; Describes %count objects; false if there are others than the record's, or one cannot be described.
define internal i1 @describe_layouts(ptr %record, ptr %args, i64 %count, ptr %layouts) nounwind {
  %known = call ptr @PreparedRecord.known(ptr %record)
  %objects = call i64 @PreparedRecord.count(ptr %record)
  %addresses = call ptr @ObjectLayouts.at_addresses(ptr %layouts)
  call void @ObjectLayouts.set_size(ptr %layouts, i64 0)
  %all = icmp eq i64 %count, %objects
  br i1 %all, label %test, label %no
test:
  %i = phi i64 [ 0, %0 ], [ %next, %object ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %object, label %yes
object:
  %next = add i64 %i, 1
  %arg_at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg_at
  %address_at = getelementptr i64, ptr %addresses, i64 %i
  store i64 0, ptr %address_at
  %fine = call i1 @describe_layout(ptr %known, ptr %arg, ptr %layouts, ptr %address_at)
  br i1 %fine, label %test, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define internal void @add_word(ptr %layouts, i64 %word) nounwind alwaysinline {
  %size = call i64 @ObjectLayouts.size(ptr %layouts)
  %words = call ptr @ObjectLayouts.at_words(ptr %layouts)
  %at = getelementptr i64, ptr %words, i64 %size
  store i64 %word, ptr %at
  %more = add i64 %size, 1
  call void @ObjectLayouts.set_size(ptr %layouts, i64 %more)
  ret void
}

; Describes one: an array, and stores its address; a float by its value; None, a bool or a string by
; itself.
define internal i1 @describe_layout(ptr %known, ptr %object, ptr %layouts, ptr %address_at)
    nounwind {
  %type = call ptr @PyObject.type(ptr %object)
  %type_word = ptrtoint ptr %type to i64
  call void @add_word(ptr %layouts, i64 %type_word)
  %is_plain = call i1 @is_plain_type(ptr %known, ptr %type)
  br i1 %is_plain, label %plain, label %no_tensor
plain:
  %tensor = call i1 @describe_tensor_layout(ptr %known, ptr %object, ptr %layouts, ptr %address_at)
  ret i1 %tensor
no_tensor:
  %ndarray = call ptr @KnownObjects.ndarray(ptr %known)
  %is_ndarray = icmp eq ptr %type, %ndarray
  br i1 %is_ndarray, label %numpy, label %no_array
numpy:
  %array = call i1 @describe_numpy_layout(ptr %object, ptr %layouts, ptr %address_at)
  ret i1 %array
no_array:
  %float = call ptr @KnownObjects.float(ptr %known)
  %is_float = icmp eq ptr %type, %float
  br i1 %is_float, label %real, label %constant
real:
  %x = call double @PyFloat_AsDouble(ptr %object)
  %bits = bitcast double %x to i64
  call void @add_word(ptr %layouts, i64 %bits)
  ret i1 true
constant:
  %none = call ptr @KnownObjects.none(ptr %known)
  %is_none = icmp eq ptr %object, %none
  %text = call ptr @KnownObjects.text(ptr %known)
  %is_text = icmp eq ptr %type, %text
  %bool = call ptr @KnownObjects.bool(ptr %known)
  %is_bool = icmp eq ptr %type, %bool
  %plain_constant = or i1 %is_text, %is_bool
  %is_constant = or i1 %plain_constant, %is_none
  %identity = ptrtoint ptr %object to i64
  call void @add_word(ptr %layouts, i64 %identity)
  ret i1 %is_constant
}

; The same of a plain tensor.
define internal i1 @describe_tensor_layout(ptr %known, ptr %object, ptr %layouts, ptr %address_at)
    nounwind {
  %tensor = alloca %DLTensor
  %read = call i1 @read_tensor(ptr %known, ptr %object, ptr %tensor)
  br i1 %read, label %describe, label %error
describe:
  %address = call i64 @tensor_address(ptr %tensor)
  %word = call i64 @plain_tensor_word(ptr %tensor)
  %rank = call i32 @DLTensor.rank(ptr %tensor)
  %shape = call ptr @DLTensor.shape(ptr %tensor)
  %strides = call ptr @DLTensor.strides(ptr %tensor)
  store i64 %address, ptr %address_at
  %fine = call i1 @add_layout(ptr %layouts, i64 %address, i64 %word, i32 %rank, ptr %shape,
      ptr %strides)
  ret i1 %fine
error:
  call void @PyErr_Clear()
  ret i1 false
}

; The same of an array of NumPy.
define internal i1 @describe_numpy_layout(ptr %object, ptr %layouts, ptr %address_at) nounwind {
  %address = call i64 @PyArray.data(ptr %object)
  %word = call i64 @numpy_word(ptr %object)
  %rank = call i32 @PyArray.rank(ptr %object)
  %shape = call ptr @PyArray.shape(ptr %object)
  %strides = call ptr @PyArray.strides(ptr %object)
  store i64 %address, ptr %address_at
  %fine = call i1 @add_layout(ptr %layouts, i64 %address, i64 %word, i32 %rank, ptr %shape,
      ptr %strides)
  ret i1 %fine
}

; Adds what else decides of an array: its alignment, rank, shape and strides. False for too many
; dimensions, and for addresses that Python looks at.
define internal i1 @add_layout(ptr %layouts, i64 %address, i64 %word, i32 %rank, ptr %shape,
    ptr %strides) nounwind {
  %usual = call i1 @is_usual_address(i64 %address, i64 0)
  %most = call i64 @MAX_PREPARED_RANK()
  %dimensions = zext i32 %rank to i64
  %few = icmp ule i64 %dimensions, %most
  %has_strides = icmp ne ptr %strides, null
  %usual_and_few = and i1 %usual, %few
  %fine = and i1 %usual_and_few, %has_strides
  br i1 %fine, label %describe, label %no
describe:
  %aligned = call i1 @has_divisibility(i64 %address, i64 15, i64 0)
  %bit = zext i1 %aligned to i64
  %what = add i64 %word, %bit
  call void @add_word(ptr %layouts, i64 %what)
  call void @add_word(ptr %layouts, i64 %dimensions)
  br label %test
test:
  %i = phi i64 [ 0, %describe ], [ %next, %dimension ]
  %more = icmp ult i64 %i, %dimensions
  br i1 %more, label %dimension, label %yes
dimension:
  %next = add i64 %i, 1
  %size_at = getelementptr i64, ptr %shape, i64 %i
  %size = load i64, ptr %size_at
  %stride_at = getelementptr i64, ptr %strides, i64 %i
  %stride = load i64, ptr %stride_at
  call void @add_word(ptr %layouts, i64 %size)
  call void @add_word(ptr %layouts, i64 %stride)
  br label %test
yes:
  ret i1 true
no:
  ret i1 false
}

; Makes a prepared launch with arrays that are where %layouts says. Returns as @tw_launch_prepared.
define internal ptr @launch_prepared(ptr %record, ptr %prepared, ptr %layouts) nounwind {
  %entry = call ptr @PreparedLaunch.at_entry(ptr %prepared)
  %dispatch = call ptr @PreparedRecord.dispatch(ptr %record)
  %none = call i1 @is_nothing_assigned(ptr %dispatch)
  br i1 %none, label %hooks, label %no
hooks:
  %before = call ptr @PreparedRecord.before(ptr %record)
  %hook_count = call i64 @PyList_Size(ptr %before)
  %no_hooks = icmp eq i64 %hook_count, 0
  br i1 %no_hooks, label %globals, label %no
globals:
  %same = call i1 @are_globals_unchanged(ptr %entry)
  br i1 %same, label %watch, label %no
watch:
  %suspect = call i1 @arrays_may_overlap(ptr %dispatch, ptr %prepared, ptr %layouts)
  br i1 %suspect, label %no, label %launch
launch:
  %known = call ptr @PreparedRecord.known(ptr %record)
  %outcome = call ptr @call_prepared(ptr %known, ptr %prepared, ptr %layouts)
  %bad = icmp eq ptr %outcome, null
  br i1 %bad, label %fail, label %succeed
succeed:
  call void @Py_DecRef(ptr %outcome)
  %true = call ptr @PyBool_FromLong(i64 1)
  ret ptr %true
fail:
  call void @strip_traceback(ptr %known)
  ret ptr null
no:
  %false = call ptr @PyBool_FromLong(i64 0)
  ret ptr %false
}

; Whether two arrays of a pair share memory between their first and last elements and are not one
; array where that is fine, as far as anyone still watches.
define internal i1 @arrays_may_overlap(ptr %dispatch, ptr %prepared, ptr %layouts) nounwind {
  %watching = call ptr @DispatchRecord.watching(ptr %dispatch)
  %on = load i64, ptr %watching
  %count = call i64 @PreparedLaunch.pairs(ptr %prepared)
  %list = call ptr @PreparedLaunch.pair_list(ptr %prepared)
  %addresses = call ptr @ObjectLayouts.at_addresses(ptr %layouts)
  %off = icmp eq i64 %on, 0
  br i1 %off, label %no, label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %pair ], [ %next, %meet ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %pair, label %no
pair:
  %next = add i64 %i, 1
  %pair_at = getelementptr %ArrayPair, ptr %list, i64 %i
  %first = call i64 @ArrayPair.first(ptr %pair_at)
  %second = call i64 @ArrayPair.second(ptr %pair_at)
  %first_bytes = call i64 @ArrayPair.first_bytes(ptr %pair_at)
  %second_bytes = call i64 @ArrayPair.second_bytes(ptr %pair_at)
  %a_at = getelementptr i64, ptr %addresses, i64 %first
  %a = load i64, ptr %a_at
  %b_at = getelementptr i64, ptr %addresses, i64 %second
  %b = load i64, ptr %b_at
  %a_end = add i64 %a, %first_bytes
  %b_end = add i64 %b, %second_bytes
  %a_before = icmp ult i64 %a, %b_end
  %b_before = icmp ult i64 %b, %a_end
  %both = and i1 %a_before, %b_before
  br i1 %both, label %meet, label %test
meet:
  %may_be_one = call i64 @ArrayPair.may_be_one(ptr %pair_at)
  %may = icmp ne i64 %may_be_one, 0
  %equal = icmp eq i64 %a, %b
  %fine = and i1 %may, %equal
  br i1 %fine, label %test, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; Calls what a prepared launch calls. Returns a new reference to some object, or null with an error
; set.
define internal ptr @call_prepared(ptr %known, ptr %prepared, ptr %layouts) nounwind {
  %passed = alloca %PreparedWords
  %entry = call ptr @PreparedLaunch.at_entry(ptr %prepared)
  %words = call ptr @PreparedWords.at_words(ptr %passed)
  %template = call ptr @PreparedLaunch.words(ptr %prepared)
  %values = call i64 @CacheEntry.values(ptr %entry)
  %bytes = mul i64 %values, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %words, ptr %template, i64 %bytes, i1 false)
  %count = call i64 @PreparedLaunch.arrays(ptr %prepared)
  %places = call ptr @PreparedLaunch.places(ptr %prepared)
  %addresses = call ptr @ObjectLayouts.at_addresses(ptr %layouts)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %array ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %array, label %call
array:   ; where its address goes, and which object it is
  %next = add i64 %i, 1
  %offset = mul i64 %i, 2
  %place_at = getelementptr i64, ptr %places, i64 %offset
  %place = load i64, ptr %place_at
  %object_at = getelementptr i64, ptr %place_at, i64 1
  %object = load i64, ptr %object_at
  %address_at = getelementptr i64, ptr %addresses, i64 %object
  %address = load i64, ptr %address_at
  %word_at = getelementptr i64, ptr %words, i64 %place
  store i64 %address, ptr %word_at
  br label %test
call:
  %x = call i32 @PreparedLaunch.x(ptr %prepared)
  %y = call i32 @PreparedLaunch.y(ptr %prepared)
  %z = call i32 @PreparedLaunch.z(ptr %prepared)
  %function = call ptr @CacheEntry.words(ptr %entry)
  %launch_record = call ptr @CacheEntry.words_record(ptr %entry)
  %status = call i32 %function(ptr %launch_record, i32 %x, i32 %y, i32 %z, ptr %words)
  %result = call ptr @end_of_words(ptr %known, ptr %entry, i32 %status)
  ret ptr %result
}
