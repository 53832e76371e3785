; Describes one argument of a launch: its type, what else of it decides the variant, what is passed
; for it, and its number or address.

; Describes %object.
;   %known       KnownObjects
;   %flags       of its parameter
;   %descriptor  ArgumentDescriptor: `type` and `value` are written
;   %value       where a new reference to what is passed is written; null: it is the object itself,
;                or the address of an array
;   %number      where its number or address is written; 0 if it has none
; Returns false, having written no reference, for what Python has to do.
define internal i1 @describe(ptr %known, ptr %object, i64 %flags, ptr %descriptor, ptr %value,
    ptr %number) nounwind {
  %type = call ptr @PyObject.type(ptr %object)
  call void @ArgumentDescriptor.set_type(ptr %descriptor, ptr %type)
  call void @ArgumentDescriptor.set_value(ptr %descriptor, i64 0)
  store i64 0, ptr %number
  store ptr null, ptr %value
  %int = call ptr @KnownObjects.int(ptr %known)
  %is_int = icmp eq ptr %type, %int
  br i1 %is_int, label %integer, label %no_int
integer:
  %taken = call i1 @describe_integer(ptr %object, i64 %flags, ptr %descriptor, ptr %value,
      ptr %number)
  ret i1 %taken
no_int:
  %float = call ptr @KnownObjects.float(ptr %known)
  %is_float = icmp eq ptr %type, %float
  br i1 %is_float, label %real, label %no_float
real:
  call void @describe_float(ptr %object, i64 %flags, ptr %descriptor)
  br label %itself
no_float:
  %constexpr = call i64 @CONSTEXPR()
  %constant = call i1 @has_any(i64 %flags, i64 %constexpr)
  br i1 %constant, label %identity, label %run_time
identity:
  %identity_word = ptrtoint ptr %object to i64
  call void @ArgumentDescriptor.set_value(ptr %descriptor, i64 %identity_word)
  br label %itself
run_time:
  %bool = call ptr @KnownObjects.bool(ptr %known)
  %is_bool = icmp eq ptr %type, %bool
  %none = call ptr @KnownObjects.none(ptr %known)
  %is_none = icmp eq ptr %object, %none
  %plain = or i1 %is_bool, %is_none
  br i1 %plain, label %identity, label %other
other:
  %is_array = call i1 @describe_array(ptr %known, ptr %object, i64 %flags, ptr %descriptor,
      ptr %value, ptr %number)
  ret i1 %is_array
itself:
  ret i1 true
}

define internal i1 @has_any(i64 %flags, i64 %mask) nounwind alwaysinline {
  %bits = and i64 %flags, %mask
  %any = icmp ne i64 %bits, 0
  ret i1 %any
}

; Whether the low bits %mask of an address or integer are 0, as far as that matters: 15 for one that
; is divisible by 16.
define internal i1 @has_divisibility(i64 %number, i64 %mask, i64 %flags) nounwind alwaysinline {
  %low = and i64 %number, %mask
  %divisible = icmp eq i64 %low, 0
  %off = call i64 @DIVISIBILITY_OFF()
  %ignored = call i1 @has_any(i64 %flags, i64 %off)
  %matters = xor i1 %ignored, true
  %result = and i1 %divisible, %matters
  ret i1 %result
}

; Whether a number is a multiple of what its declaration says, if anything: to divide takes as long
; as all else.
define internal i1 @is_declared_multiple(i64 %number, i64 %flags) nounwind alwaysinline {
  %shift = call i64 @MULTIPLE()
  %multiple = lshr i64 %flags, %shift
  %free = icmp eq i64 %multiple, 0
  br i1 %free, label %yes, label %divide
divide:
  %remainder = srem i64 %number, %multiple
  %result = icmp eq i64 %remainder, 0
  ret i1 %result
yes:
  ret i1 true
}

; An int: see @describe. False if it does not fit its declaration, or 64 bits.
define internal i1 @describe_integer(ptr %object, i64 %flags, ptr %descriptor, ptr %value,
    ptr %number) nounwind alwaysinline {
  %overflow = alloca i32
  %v = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow)
  %over = load i32, ptr %overflow
  %fits = icmp eq i32 %over, 0
  br i1 %fits, label %declared, label %no
declared:
  %within = call i1 @is_in_declared_range(i64 %v, i64 %flags)
  br i1 %within, label %factor, label %no
factor:
  %is_multiple = call i1 @is_declared_multiple(i64 %v, i64 %flags)
  br i1 %is_multiple, label %take, label %no
take:
  %by_value_flags = call i64 @DECIDED_BY_VALUE()
  %by_value = call i1 @has_any(i64 %flags, i64 %by_value_flags)
  %class = call i64 @integer_class(i64 %v, i64 %flags)
  %word = select i1 %by_value, i64 %v, i64 %class
  call void @ArgumentDescriptor.set_value(ptr %descriptor, i64 %word)
  store i64 %v, ptr %number
  %float_flag = call i64 @FLOAT()
  %as_float = call i1 @has_any(i64 %flags, i64 %float_flag)
  br i1 %as_float, label %to_float, label %itself
to_float:
  %converted = sitofp i64 %v to double
  %new_float = call ptr @PyFloat_FromDouble(double %converted)
  store ptr %new_float, ptr %value
  ret i1 true
itself:
  ret i1 true
no:
  ret i1 false
}

; Whether an integer is in the range of its declared type: 0 bits stand for 64.
define internal i1 @is_in_declared_range(i64 %v, i64 %flags) nounwind alwaysinline {
  %shift = call i64 @RANGE()
  %shifted = lshr i64 %flags, %shift
  %bits = and i64 %shifted, 63
  %any_range = icmp eq i64 %bits, 0
  br i1 %any_range, label %yes, label %range
range:
  %signed_flag = call i64 @SIGNED()
  %signed = call i1 @has_any(i64 %flags, i64 %signed_flag)
  %less_bits = sub i64 %bits, 1
  %half = shl i64 1, %less_bits
  ; a signed range moved to begin at 0, so that one shift compares both ends
  %bias = select i1 %signed, i64 %half, i64 0
  %biased = add i64 %v, %bias
  %beyond = lshr i64 %biased, %bits
  %within = icmp eq i64 %beyond, 0
  ret i1 %within
yes:
  ret i1 true
}

; The class of an integer: 1 for the number 1; 2 for an i32, 5 for a wider one, each 1 more if it is
; divisible by 8, another if by 16, and 8 more if it is negative.
define internal i64 @integer_class(i64 %v, i64 %flags) nounwind alwaysinline {
  %low_32 = trunc i64 %v to i32
  %wide = sext i32 %low_32 to i64
  %narrow = icmp eq i64 %wide, %v
  %base = select i1 %narrow, i64 2, i64 5
  %by_8 = call i1 @has_divisibility(i64 %v, i64 7, i64 %flags)
  %by_16 = call i1 @has_divisibility(i64 %v, i64 15, i64 %flags)
  %more_8 = zext i1 %by_8 to i64
  %more_16 = zext i1 %by_16 to i64
  %class_8 = add i64 %base, %more_8
  %size_class = add i64 %class_8, %more_16
  %sign = lshr i64 %v, 63
  %below = shl i64 %sign, 3
  %class = add i64 %size_class, %below
  %is_1 = icmp eq i64 %v, 1
  %unspecialized = call i64 @UNSPECIALIZED()
  %one_off = call i1 @has_any(i64 %flags, i64 %unspecialized)
  %one_on = xor i1 %one_off, true
  %one = and i1 %is_1, %one_on
  %result = select i1 %one, i64 1, i64 %class
  ret i64 %result
}

; A float: its bits decide if its value does.
define internal void @describe_float(ptr %object, i64 %flags, ptr %descriptor)
    nounwind alwaysinline {
  %x = call double @PyFloat_AsDouble(ptr %object)
  %bits = bitcast double %x to i64
  %by_value_flags = call i64 @DECIDED_BY_VALUE()
  %by_value = call i1 @has_any(i64 %flags, i64 %by_value_flags)
  %word = select i1 %by_value, i64 %bits, i64 0
  call void @ArgumentDescriptor.set_value(ptr %descriptor, i64 %word)
  ret void
}

; An array of NumPy, or a tensor: see @describe. Makes known the type of any other object.
define internal i1 @describe_array(ptr %known, ptr %object, i64 %flags, ptr %descriptor,
    ptr %value, ptr %number) nounwind {
  %type = call ptr @PyObject.type(ptr %object)
  %ndarray = call ptr @KnownObjects.ndarray(ptr %known)
  %is_ndarray = icmp eq ptr %type, %ndarray
  br i1 %is_ndarray, label %numpy, label %search
numpy:
  %numpy_address = call i64 @PyArray.data(ptr %object)
  %numpy_word = call i64 @numpy_word(ptr %object)
  br label %known_array
search:
  %is_tensor = call i1 @is_tensor_type(ptr %known, ptr %type)
  br i1 %is_tensor, label %tensor, label %stranger
stranger:
  call void @meet(ptr %known, ptr %object)
  ret i1 false
tensor:
  %is_plain = call i1 @is_plain_type(ptr %known, ptr %type)
  br i1 %is_plain, label %plain, label %asked
plain:
  %described = call { i64, i64, i1 } @plain_tensor(ptr %known, ptr %object, ptr %number)
  %plain_address = extractvalue { i64, i64, i1 } %described, 0
  %plain_word = extractvalue { i64, i64, i1 } %described, 1
  %is_described = extractvalue { i64, i64, i1 } %described, 2
  br i1 %is_described, label %known_array, label %error
asked:
  %read = call { i64, i1 } @tensor_word(ptr %known, ptr %object)
  %tensor_word = extractvalue { i64, i1 } %read, 0
  %is_read = extractvalue { i64, i1 } %read, 1
  br i1 %is_read, label %ask, label %error
ask:
  %data_ptr = call ptr @KnownObjects.data_ptr(ptr %known)
  %made = call ptr @call_method(ptr %data_ptr, ptr %object)
  %has_address = icmp ne ptr %made, null
  br i1 %has_address, label %address, label %error
address:
  %tensor_address = call i64 @PyLong_AsUnsignedLongLong(ptr %made)
  br label %known_array
known_array:
  %where = phi i64 [ %numpy_address, %numpy ], [ %plain_address, %plain ],
      [ %tensor_address, %address ]
  %what = phi i64 [ %numpy_word, %numpy ], [ %plain_word, %plain ], [ %tensor_word, %address ]
  %object_made = phi ptr [ null, %numpy ], [ null, %plain ], [ %made, %address ]
  %aligned = call i1 @has_divisibility(i64 %where, i64 15, i64 %flags)
  %bit = zext i1 %aligned to i64
  %word = add i64 %what, %bit
  call void @ArgumentDescriptor.set_value(ptr %descriptor, i64 %word)
  store i64 %where, ptr %number
  %usual = call i1 @is_usual_address(i64 %where, i64 %flags)
  br i1 %usual, label %pass, label %unusual
pass:
  store ptr %object_made, ptr %value
  ret i1 true
unusual:
  call void @Py_DecRef(ptr %object_made)
  br label %error
error:
  call void @PyErr_Clear()
  ret i1 false
}

; What decides of an array of NumPy but its alignment: the address of its dtype, which is a multiple
; of 8, and 2 if it is read-only.
define internal i64 @numpy_word(ptr %array) nounwind alwaysinline {
  %descr = call ptr @PyArray.descr(ptr %array)
  %descr_word = ptrtoint ptr %descr to i64
  %state = call i32 @PyArray.flags(ptr %array)
  %writable_bit = and i32 %state, 1024   ; NPY_ARRAY_WRITEABLE
  %read_only = icmp eq i32 %writable_bit, 0
  %mark = select i1 %read_only, i64 2, i64 0
  %word = add i64 %descr_word, %mark
  ret i64 %word
}

; Whether a type is one of the tensors' that are known.
define internal i1 @is_tensor_type(ptr %known, ptr %type) nounwind alwaysinline {
  %types = call ptr @KnownObjects.at_tensors(ptr %known)
  %listed = call i1 @is_listed(ptr %types, ptr %type)
  ret i1 %listed
}

; Whether it is one of those that one C function describes.
define internal i1 @is_plain_type(ptr %known, ptr %type) nounwind alwaysinline {
  %types = call ptr @KnownObjects.at_plain(ptr %known)
  %listed = call i1 @is_listed(ptr %types, ptr %type)
  ret i1 %listed
}

; Whether a type is in a list, which ends with null.
define internal i1 @is_listed(ptr %types, ptr %type) nounwind alwaysinline {
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %following, %compare ]
  %candidate_at = getelementptr ptr, ptr %types, i64 %i
  %candidate = load ptr, ptr %candidate_at
  %ended = icmp eq ptr %candidate, null
  br i1 %ended, label %no, label %compare
compare:
  %same = icmp eq ptr %candidate, %type
  %following = add i64 %i, 1
  br i1 %same, label %yes, label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; Shows Python an object of a type that is not known, which may become known so.
define internal void @meet(ptr %known, ptr %object) nounwind {
  %args = alloca ptr
  store ptr %object, ptr %args
  %meet = call ptr @KnownObjects.meet(ptr %known)
  %met = call ptr @PyObject_Vectorcall(ptr %meet, ptr %args, i64 1, ptr null)
  call void @Py_DecRef(ptr %met)
  call void @PyErr_Clear()
  ret void
}

; The result of a method without arguments.
define internal ptr @call_method(ptr %name, ptr %object) nounwind alwaysinline {
  %self = alloca ptr
  store ptr %object, ptr %self
  %result = call ptr @PyObject_VectorcallMethod(ptr %name, ptr %self, i64 1, ptr null)
  ret ptr %result
}

; The layout of an array, after its own item: an item with the rank as its type, then one with the
; size as its type and the stride as its value for each dimension. None has no such items; false for
; any other object.
define internal i1 @describe_layout(ptr %call, ptr %array) nounwind {
  %tensor = alloca %DLTensor
  %known = call ptr @DispatchCall.known(ptr %call)
  %type = call ptr @PyObject.type(ptr %array)
  %ndarray = call ptr @KnownObjects.ndarray(ptr %known)
  %is_ndarray = icmp eq ptr %type, %ndarray
  br i1 %is_ndarray, label %numpy, label %no_ndarray
numpy:
  %numpy_rank = call i32 @PyArray.rank(ptr %array)
  %numpy_shape = call ptr @PyArray.shape(ptr %array)
  %numpy_strides = call ptr @PyArray.strides(ptr %array)
  br label %count
no_ndarray:
  %is_plain = call i1 @is_plain_type(ptr %known, ptr %type)
  br i1 %is_plain, label %plain, label %no_array
plain:
  %read = call i1 @read_tensor(ptr %known, ptr %array, ptr %tensor)
  br i1 %read, label %described, label %error
described:
  %tensor_rank = call i32 @DLTensor.rank(ptr %tensor)
  %tensor_shape = call ptr @DLTensor.shape(ptr %tensor)
  %tensor_strides = call ptr @DLTensor.strides(ptr %tensor)
  %has_strides = icmp ne ptr %tensor_strides, null
  br i1 %has_strides, label %count, label %no
count:
  %rank_32 = phi i32 [ %numpy_rank, %numpy ], [ %tensor_rank, %described ]
  %shape = phi ptr [ %numpy_shape, %numpy ], [ %tensor_shape, %described ]
  %strides = phi ptr [ %numpy_strides, %numpy ], [ %tensor_strides, %described ]
  %rank = zext i32 %rank_32 to i64
  %counted = call i1 @add_words(ptr %call, ptr %array, i64 %rank, i64 0)
  br i1 %counted, label %test, label %no
test:
  %i = phi i64 [ 0, %count ], [ %next, %dimension ]
  %more = icmp ult i64 %i, %rank
  br i1 %more, label %dimension, label %yes
dimension:
  %next = add i64 %i, 1
  %size_at = getelementptr i64, ptr %shape, i64 %i
  %size = load i64, ptr %size_at
  %stride_at = getelementptr i64, ptr %strides, i64 %i
  %stride = load i64, ptr %stride_at
  %added = call i1 @add_words(ptr %call, ptr %array, i64 %size, i64 %stride)
  br i1 %added, label %test, label %no
no_array:
  %none = call ptr @KnownObjects.none(ptr %known)
  %is_none = icmp eq ptr %array, %none
  ret i1 %is_none
yes:
  ret i1 true
error:
  call void @PyErr_Clear()
  br label %no
no:
  ret i1 false
}

; Adds an item of two words, of which nothing is passed; false: there are too many.
define internal i1 @add_words(ptr %call, ptr %object, i64 %first, i64 %second)
    nounwind alwaysinline {
  %item = call ptr @new_item(ptr %call, ptr %object, ptr null)
  %full = icmp eq ptr %item, null
  br i1 %full, label %no, label %fill
fill:
  %type = inttoptr i64 %first to ptr
  call void @ArgumentDescriptor.set_type(ptr %item, ptr %type)
  call void @ArgumentDescriptor.set_value(ptr %item, i64 %second)
  %value = call ptr @value_at(ptr %call)
  store ptr null, ptr %value
  %number = call ptr @number_at(ptr %call)
  store i64 0, ptr %number
  call void @add_item(ptr %call, ptr %object)
  ret i1 true
no:
  ret i1 false
}

; The address of a plain tensor, and what else decides of it; false, perhaps with an error set, if it
; cannot be described. Stores its reach; %number: where its address will stand.
define internal { i64, i64, i1 } @plain_tensor(ptr %known, ptr %object, ptr %number)
    nounwind alwaysinline {
  %tensor = alloca %DLTensor
  %described = call i1 @read_tensor(ptr %known, ptr %object, ptr %tensor)
  br i1 %described, label %yes, label %no
yes:
  %address = call i64 @tensor_address(ptr %tensor)
  %word = call i64 @plain_tensor_word(ptr %tensor)
  %reach = call i64 @tensor_reach(ptr %tensor)
  %reach_at = call ptr @reach_at(ptr %number)
  store i64 %reach, ptr %reach_at
  %with_address = insertvalue { i64, i64, i1 } { i64 0, i64 0, i1 true }, i64 %address, 0
  %result = insertvalue { i64, i64, i1 } %with_address, i64 %word, 1
  ret { i64, i64, i1 } %result
no:
  ret { i64, i64, i1 } zeroinitializer
}

; Where the reach of an item stands, beside its number: how many elements lie from the first element
; of a plain tensor to the end of its last one.
define internal ptr @reach_at(ptr %number) nounwind alwaysinline {
  %arguments = call i64 @MAX_ARGUMENTS()
  %reach = getelementptr i64, ptr %number, i64 %arguments
  ret ptr %reach
}

; By its shape and strides, none of which is negative; 0 for a tensor without elements.
define internal i64 @tensor_reach(ptr %tensor) nounwind alwaysinline {
  %rank_32 = call i32 @DLTensor.rank(ptr %tensor)
  %rank = zext i32 %rank_32 to i64
  %shape = call ptr @DLTensor.shape(ptr %tensor)
  %strides = call ptr @DLTensor.strides(ptr %tensor)
  %dense = icmp eq ptr %strides, null
  br i1 %dense, label %unknown, label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %sized ]
  %reach = phi i64 [ 1, %0 ], [ %further, %sized ]
  %more = icmp ult i64 %i, %rank
  br i1 %more, label %dimension, label %done
dimension:
  %size_at = getelementptr i64, ptr %shape, i64 %i
  %size = load i64, ptr %size_at
  %stride_at = getelementptr i64, ptr %strides, i64 %i
  %stride = load i64, ptr %stride_at
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %none, label %sized
sized:
  %next = add i64 %i, 1
  %steps = sub i64 %size, 1
  %distance = mul i64 %steps, %stride
  %further = add i64 %reach, %distance
  br label %test
done:
  ret i64 %reach
none:
  ret i64 0
unknown:   ; farther than any memory, and no overflow when it is counted in bytes
  ret i64 1152921504606846976
}

; Describes a plain tensor by a DLTensor; false, perhaps with an error set, if it is a view that
; negates, or has no memory.
define internal i1 @read_tensor(ptr %known, ptr %object, ptr %tensor) nounwind alwaysinline {
  %implementation_offset = call i64 @KnownObjects.implementation_at(ptr %known)
  %implementation_at = getelementptr i8, ptr %object, i64 %implementation_offset
  %implementation = load ptr, ptr %implementation_at
  %keys_offset = call i64 @KnownObjects.keys_at(ptr %known)
  %keys_at = getelementptr i8, ptr %implementation, i64 %keys_offset
  %keys = load i64, ptr %keys_at
  %negative = call i64 @KnownObjects.negative_key(ptr %known)
  %negates = call i1 @has_any(i64 %keys, i64 %negative)
  br i1 %negates, label %no, label %ask
ask:
  %describe = call ptr @KnownObjects.describe_tensor(ptr %known)
  %status = call i32 %describe(ptr %object, ptr %tensor)
  %has_memory = icmp eq i32 %status, 0
  ret i1 %has_memory
no:
  ret i1 false
}

define internal i64 @tensor_address(ptr %tensor) nounwind alwaysinline {
  %data = call i64 @DLTensor.data(ptr %tensor)
  %offset = call i64 @DLTensor.offset(ptr %tensor)
  %address = add i64 %data, %offset
  ret i64 %address
}

; What decides of a plain tensor but its alignment: the dtype by DLPack from bit 3 on, the kind of its
; device from bit 40 on, its number from bit 46.
define internal i64 @plain_tensor_word(ptr %tensor) nounwind alwaysinline {
  %dtype = call i32 @DLTensor.dtype(ptr %tensor)
  %device = call i32 @DLTensor.device(ptr %tensor)
  %ordinal = call i32 @DLTensor.ordinal(ptr %tensor)
  %dtype_64 = zext i32 %dtype to i64
  %device_64 = zext i32 %device to i64
  %ordinal_64 = zext i32 %ordinal to i64
  %dtype_bits = shl i64 %dtype_64, 3
  %device_bits = shl i64 %device_64, 40
  %ordinal_bits = shl i64 %ordinal_64, 46
  %where_bits = xor i64 %device_bits, %ordinal_bits
  %word = xor i64 %dtype_bits, %where_bits
  ret i64 %word
}

; What decides of a tensor but its alignment: the address of its dtype, and 1 + its device from bit
; 48 on. False, perhaps with an error set, if it is a view that negates, or something failed.
define internal { i64, i1 } @tensor_word(ptr %known, ptr %object) nounwind alwaysinline {
  %is_neg = call ptr @KnownObjects.is_neg(ptr %known)
  %neg_object = call ptr @call_method(ptr %is_neg, ptr %object)
  %has_neg = icmp ne ptr %neg_object, null
  br i1 %has_neg, label %sign, label %no
sign:
  %negated = call i32 @PyObject_IsTrue(ptr %neg_object)
  call void @Py_DecRef(ptr %neg_object)
  %as_stored = icmp eq i32 %negated, 0
  br i1 %as_stored, label %stored, label %no
stored:
  %get_device = call ptr @KnownObjects.get_device(ptr %known)
  %only_host = icmp eq ptr %get_device, null
  br i1 %only_host, label %type, label %ask
ask:
  %device_object = call ptr @call_method(ptr %get_device, ptr %object)
  %has_device = icmp ne ptr %device_object, null
  br i1 %has_device, label %device, label %no
device:
  %asked = call i64 @PyLong_AsLongLong(ptr %device_object)   ; -1 on CPUs
  call void @Py_DecRef(ptr %device_object)
  br label %type
type:
  %ordinal = phi i64 [ -1, %stored ], [ %asked, %device ]
  %dtype_name = call ptr @KnownObjects.dtype(ptr %known)
  %dtype = call ptr @PyObject_GetAttr(ptr %object, ptr %dtype_name)
  %has_dtype = icmp ne ptr %dtype, null
  br i1 %has_dtype, label %yes, label %no
yes:
  call void @Py_DecRef(ptr %dtype)   ; dtypes live as long as the process
  %dtype_word = ptrtoint ptr %dtype to i64
  %from_1 = add i64 %ordinal, 1
  %high = shl i64 %from_1, 48
  %word = xor i64 %dtype_word, %high
  %result = insertvalue { i64, i1 } { i64 0, i1 true }, i64 %word, 0
  ret { i64, i1 } %result
no:
  ret { i64, i1 } zeroinitializer
}

; False for addresses that Python looks at: null, -1 (an error, perhaps), misaligned ones.
define internal i1 @is_usual_address(i64 %where, i64 %flags) nounwind alwaysinline {
  %odd = add i64 %where, 1
  %somewhere = icmp ugt i64 %odd, 1
  %is_multiple = call i1 @is_declared_multiple(i64 %where, i64 %flags)
  %usual = and i1 %somewhere, %is_multiple
  ret i1 %usual
}
