"""How the machine code of `dispatch_ir` sees arguments and grids, as text that it completes."""

__all__ = ["DESCRIBE", "DESCRIBE_ARRAY", "GRID"]

DESCRIBE = """
define internal ptr @type_of(ptr %object) nounwind alwaysinline {
  %at = getelementptr i8, ptr %object, i64 TYPE_OFFSET
  %type = load ptr, ptr %at
  ret ptr %type
}

; the second and third word of an argument, a new reference to what is passed for it, and its number
; or address, else 0; false: for Python
define internal i1 @describe(ptr %shared, ptr %object, i64 %flags, ptr %a, ptr %b, ptr %value,
    ptr %raw) nounwind {
  %overflow = alloca i32
  %type = call ptr @type_of(ptr %object)
  store ptr %type, ptr %a
  store i64 0, ptr %b
  store i64 0, ptr %raw
  %const_bit = and i64 %flags, 1
  %constant = icmp ne i64 %const_bit, 0
  %value_bits = and i64 %flags, 9
  %by_value = icmp ne i64 %value_bits, 0
  %int = get ptr %shared SHARED.int
  %is_int = icmp eq ptr %type, %int
  br i1 %is_int, label %integer, label %no_int
integer:
  %v = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow)
  %over = load i32, ptr %overflow
  %fits = icmp eq i32 %over, 0
  br i1 %fits, label %declared, label %no
declared:
  %shifted_bits = lshr i64 %flags, 8
  %bits = and i64 %shifted_bits, 63
  %any_range = icmp eq i64 %bits, 0
  br i1 %any_range, label %factor, label %range
range:
  %signed_bit = and i64 %flags, 32
  %signed = icmp ne i64 %signed_bit, 0
  %less_bits = sub i64 %bits, 1
  %half = shl i64 1, %less_bits
  %bias = select i1 %signed, i64 %half, i64 0
  %biased = add i64 %v, %bias
  %beyond = lshr i64 %biased, %bits
  %within = icmp eq i64 %beyond, 0
  br i1 %within, label %factor, label %no
factor:
  %multiple = lshr i64 %flags, 32
  %has_multiple = icmp ne i64 %multiple, 0
  %divisor = select i1 %has_multiple, i64 %multiple, i64 1
  %remainder = srem i64 %v, %divisor
  %is_multiple = icmp eq i64 %remainder, 0
  br i1 %is_multiple, label %ranged, label %no
ranged:
  %low32 = trunc i64 %v to i32
  %wide = sext i32 %low32 to i64
  %narrow = icmp eq i64 %wide, %v
  %base = select i1 %narrow, i64 2, i64 4
  %low4 = and i64 %v, 15
  %divisible = icmp eq i64 %low4, 0
  %facts_off = and i64 %flags, 6
  %facts = icmp eq i64 %facts_off, 0
  %fact = and i1 %divisible, %facts
  %more = zext i1 %fact to i64
  %class = add i64 %base, %more
  %is_1 = icmp eq i64 %v, 1
  %one_off = and i64 %flags, 2
  %one_on = icmp eq i64 %one_off, 0
  %one = and i1 %is_1, %one_on
  %kind = select i1 %one, i64 1, i64 %class
  %word = select i1 %by_value, i64 %v, i64 %kind
  store i64 %word, ptr %b
  store i64 %v, ptr %raw
  %float_bit = and i64 %flags, 16
  %no_float_wanted = icmp eq i64 %float_bit, 0
  br i1 %no_float_wanted, label %itself, label %to_float
to_float:
  %converted = sitofp i64 %v to double
  %new_float = call ptr @PyFloat_FromDouble(double %converted)
  store ptr %new_float, ptr %value
  ret i1 true
no_int:
  %float = get ptr %shared SHARED.float
  %is_float = icmp eq ptr %type, %float
  br i1 %is_float, label %real, label %no_float
real:
  %x = call double @PyFloat_AsDouble(ptr %object)
  %pattern = bitcast double %x to i64
  %seen = select i1 %by_value, i64 %pattern, i64 0
  store i64 %seen, ptr %b
  br label %itself
no_float:
  br i1 %constant, label %identity, label %run_time
identity:
  store ptr %object, ptr %b
  br label %itself
run_time:
  %bool = get ptr %shared SHARED.bool
  %is_bool = icmp eq ptr %type, %bool
  %none = get ptr %shared SHARED.none
  %is_none = icmp eq ptr %object, %none
  %plain = or i1 %is_bool, %is_none
  br i1 %plain, label %identity, label %other
other:
  %is_array = call i1 @describe_array(ptr %shared, ptr %object, i64 %flags, ptr %b, ptr %value,
      ptr %raw)
  ret i1 %is_array
itself:
  call void @Py_IncRef(ptr %object)
  store ptr %object, ptr %value
  ret i1 true
no:
  ret i1 false
}
"""

DESCRIBE_ARRAY = """
define internal i1 @describe_array(ptr %shared, ptr %object, i64 %flags, ptr %b, ptr %value,
    ptr %raw) nounwind {
  %self = alloca ptr
  %args = alloca ptr
  store ptr %object, ptr %self
  %type = call ptr @type_of(ptr %object)
  %ndarray = get ptr %shared SHARED.ndarray
  %is_ndarray = icmp eq ptr %type, %ndarray
  br i1 %is_ndarray, label %numpy, label %search
numpy:
  %data_at = getelementptr i8, ptr %object, i64 DATA_OFFSET
  %data = load i64, ptr %data_at
  %descr_at = getelementptr i8, ptr %object, i64 DESCR_OFFSET
  %descr = load i64, ptr %descr_at
  %state_at = getelementptr i8, ptr %object, i64 FLAGS_OFFSET
  %state = load i32, ptr %state_at
  %writable_bit = and i32 %state, 1024
  %read_only = icmp eq i32 %writable_bit, 0
  %mark = select i1 %read_only, i64 2, i64 0
  %described = add i64 %descr, %mark
  br label %known
search:
  %tensors = getelementptr i8, ptr %shared, i64 TENSORS_OFFSET
  br label %next
next:
  %i = phi i64 [ 0, %search ], [ %following, %compare ]
  %candidate_at = getelementptr ptr, ptr %tensors, i64 %i
  %candidate = load ptr, ptr %candidate_at
  %ended = icmp eq ptr %candidate, null
  br i1 %ended, label %stranger, label %compare
compare:
  %same = icmp eq ptr %candidate, %type
  %following = add i64 %i, 1
  br i1 %same, label %tensor, label %next
stranger:
  store ptr %object, ptr %args
  %meet = get ptr %shared SHARED.meet
  %met = call ptr @PyObject_Vectorcall(ptr %meet, ptr %args, i64 1, ptr null)
  %met_well = icmp ne ptr %met, null
  br i1 %met_well, label %drop_met, label %error
drop_met:
  call void @Py_DecRef(ptr %met)
  ret i1 false
tensor:
  %neg_name = get ptr %shared SHARED.is_neg
  %neg_object = call ptr @PyObject_VectorcallMethod(ptr %neg_name, ptr %self, i64 1, ptr null)
  %has_neg = icmp ne ptr %neg_object, null
  br i1 %has_neg, label %sign, label %error
sign:
  %negated = call i32 @PyObject_IsTrue(ptr %neg_object)
  call void @Py_DecRef(ptr %neg_object)
  %as_stored = icmp eq i32 %negated, 0
  br i1 %as_stored, label %stored, label %error
stored:
  %get_name = get ptr %shared SHARED.get_device
  %device_object = call ptr @PyObject_VectorcallMethod(ptr %get_name, ptr %self, i64 1, ptr null)
  %has_device = icmp ne ptr %device_object, null
  br i1 %has_device, label %device, label %error
device:
  %device_number = call i64 @PyLong_AsLongLong(ptr %device_object)
  call void @Py_DecRef(ptr %device_object)
  %dtype_name = get ptr %shared SHARED.dtype
  %dtype_object = call ptr @PyObject_GetAttr(ptr %object, ptr %dtype_name)
  %has_dtype = icmp ne ptr %dtype_object, null
  br i1 %has_dtype, label %dtype, label %error
dtype:
  call void @Py_DecRef(ptr %dtype_object)
  %dtype_word = ptrtoint ptr %dtype_object to i64
  %from_1 = add i64 %device_number, 1
  %high = shl i64 %from_1, 48
  %tensor_word = xor i64 %dtype_word, %high
  %ptr_name = get ptr %shared SHARED.data_ptr
  %address_object = call ptr @PyObject_VectorcallMethod(ptr %ptr_name, ptr %self, i64 1, ptr null)
  %has_address = icmp ne ptr %address_object, null
  br i1 %has_address, label %address, label %error
address:
  %tensor_data = call i64 @PyLong_AsUnsignedLongLong(ptr %address_object)
  br label %known
known:
  %where = phi i64 [ %data, %numpy ], [ %tensor_data, %address ]
  %what = phi i64 [ %described, %numpy ], [ %tensor_word, %address ]
  %made = phi ptr [ null, %numpy ], [ %address_object, %address ]
  %low4 = and i64 %where, 15
  %aligned = icmp eq i64 %low4, 0
  %facts_off = and i64 %flags, 6
  %facts = icmp eq i64 %facts_off, 0
  %fact = and i1 %aligned, %facts
  %bit = zext i1 %fact to i64
  %word = add i64 %what, %bit
  store i64 %word, ptr %b
  store i64 %where, ptr %raw
  %odd = add i64 %where, 1
  %nowhere = icmp ule i64 %odd, 1
  %multiple = lshr i64 %flags, 32
  %has_multiple = icmp ne i64 %multiple, 0
  %divisor = select i1 %has_multiple, i64 %multiple, i64 1
  %remainder = urem i64 %where, %divisor
  %misaligned = icmp ne i64 %remainder, 0
  %rare = or i1 %nowhere, %misaligned
  %to_make = icmp eq ptr %made, null
  br i1 %rare, label %unusual, label %usual
unusual:
  br i1 %to_make, label %error, label %drop_address
drop_address:
  call void @Py_DecRef(ptr %made)
  br label %error
usual:
  br i1 %to_make, label %make, label %pass
make:
  %new = call ptr @PyLong_FromUnsignedLongLong(i64 %where)
  br label %pass
pass:
  %passed = phi ptr [ %made, %usual ], [ %new, %make ]
  store ptr %passed, ptr %value
  ret i1 true
error:
  call void @PyErr_Clear()
  ret i1 false
}
"""

GRID = """
; whether an object is an int that can be an extent
define internal i1 @is_extent(ptr %shared, ptr %object) nounwind {
  %overflow = alloca i32
  %type = call ptr @type_of(ptr %object)
  %int = get ptr %shared SHARED.int
  %is_int = icmp eq ptr %type, %int
  br i1 %is_int, label %range, label %no
range:
  %v = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow)
  %fine = icmp ule i64 %v, 2147483647
  ret i1 %fine
no:
  ret i1 false
}

; the three extents of a tuple of ints, or of an int; false: for Python
define internal i1 @extents(ptr %shared, ptr %grid, ptr %out) nounwind {
  %one = get ptr %shared SHARED.one
  %second = getelementptr ptr, ptr %out, i64 1
  %third = getelementptr ptr, ptr %out, i64 2
  store ptr %one, ptr %second
  store ptr %one, ptr %third
  %type = call ptr @type_of(ptr %grid)
  %tuple = get ptr %shared SHARED.tuple
  %is_tuple = icmp eq ptr %type, %tuple
  br i1 %is_tuple, label %items, label %number
number:
  store ptr %grid, ptr %out
  %fine = call i1 @is_extent(ptr %shared, ptr %grid)
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
  %is = call i1 @is_extent(ptr %shared, ptr %object)
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

; what a callable grid returns for the arguments by name; null: it raised
define internal ptr @call_grid(ptr %line, ptr %grid, ptr %args, i64 %total) nounwind {
  %slot = alloca ptr
  %defaults = get ptr %line LINE.defaults
  %named = call ptr @PyDict_Copy(ptr %defaults)
  store ptr %named, ptr %slot
  %names = get ptr %line LINE.names
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
"""
