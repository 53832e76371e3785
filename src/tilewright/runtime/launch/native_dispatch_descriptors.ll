; Describes a tensor descriptor: as several items, of which those that a kernel takes are passed.
;
;   itself        its padding and rank
;   base          as any array
;   extents       of the last one, how many powers of two up to 16 divide it
;   strides       the same of each; of the last one, its value
;   block shape   their values
;
; All fields are read at each launch, since they may be assigned. What is out of range goes to
; Python, which raises the error; so does a descriptor whose base is no array that is known here.

; Describes %descriptor, an argument; false: for Python.
define internal i1 @describe_tensor_descriptor(ptr %call, ptr %descriptor, ptr %keyword) nounwind {
  %known = call ptr @DispatchCall.known(ptr %call)
  %shape_name = call ptr @KnownObjects.shape(ptr %known)
  %shape = call ptr @PyObject_GetAttr(ptr %descriptor, ptr %shape_name)
  %strides_name = call ptr @KnownObjects.strides(ptr %known)
  %strides = call ptr @PyObject_GetAttr(ptr %descriptor, ptr %strides_name)
  %block_name = call ptr @KnownObjects.block_shape(ptr %known)
  %block = call ptr @PyObject_GetAttr(ptr %descriptor, ptr %block_name)
  %rank = call i64 @common_rank(ptr %shape, ptr %strides, ptr %block)
  %none = icmp eq i64 %rank, 0
  br i1 %none, label %release, label %head
head:
  %headed = call i1 @describe_head(ptr %call, ptr %descriptor, ptr %keyword, i64 %rank)
  br i1 %headed, label %base, label %release
base:
  %based = call i1 @describe_base(ptr %call, ptr %descriptor)
  br i1 %based, label %extents, label %release
extents:
  %last = sub i64 %rank, 1
  %sized = call i1 @describe_numbers(ptr %call, ptr %shape, i64 0, i64 %last, i64 0)
  br i1 %sized, label %row, label %release
row:
  %rowed = call i1 @describe_numbers(ptr %call, ptr %shape, i64 %last, i64 %rank, i64 1)
  br i1 %rowed, label %steps, label %release
steps:
  %stepped = call i1 @describe_numbers(ptr %call, ptr %strides, i64 0, i64 %last, i64 2)
  br i1 %stepped, label %unit, label %release
unit:
  %adjacent = call i1 @describe_numbers(ptr %call, ptr %strides, i64 %last, i64 %rank, i64 3)
  br i1 %adjacent, label %blocks, label %release
blocks:
  %blocked = call i1 @describe_numbers(ptr %call, ptr %block, i64 0, i64 %rank, i64 3)
  br label %release
release:
  %fine = phi i1 [ false, %0 ], [ false, %head ], [ false, %base ], [ false, %extents ],
      [ false, %row ], [ false, %steps ], [ false, %unit ], [ %blocked, %blocks ]
  call void @Py_DecRef(ptr %shape)
  call void @Py_DecRef(ptr %strides)
  call void @Py_DecRef(ptr %block)
  br i1 %fine, label %yes, label %no
yes:
  ret i1 true
no:
  call void @PyErr_Clear()
  ret i1 false
}

; The length of three sequences, if it is the same and 1 to 5; else 0, perhaps with an error set. Any
; may be null.
define internal i64 @common_rank(ptr %shape, ptr %strides, ptr %block) nounwind {
  %no_shape = icmp eq ptr %shape, null
  %no_strides = icmp eq ptr %strides, null
  %no_block = icmp eq ptr %block, null
  %some = or i1 %no_shape, %no_strides
  %any = or i1 %some, %no_block
  br i1 %any, label %no, label %measure
measure:
  %rank = call i64 @PySequence_Size(ptr %shape)
  %steps = call i64 @PySequence_Size(ptr %strides)
  %blocks = call i64 @PySequence_Size(ptr %block)
  %same_steps = icmp eq i64 %rank, %steps
  %same_blocks = icmp eq i64 %rank, %blocks
  %same = and i1 %same_steps, %same_blocks
  %less = sub i64 %rank, 1
  %usual = icmp ult i64 %less, 5
  %fine = and i1 %same, %usual
  %result = select i1 %fine, i64 %rank, i64 0
  ret i64 %result
no:
  ret i64 0
}

; The descriptor itself: its type, and the identity of its padding, whose lowest bits are 0, with the
; rank. Its value is the padding.
define internal i1 @describe_head(ptr %call, ptr %descriptor, ptr %keyword, i64 %rank)
    nounwind alwaysinline {
  %known = call ptr @DispatchCall.known(ptr %call)
  %item = call ptr @new_item(ptr %call, ptr %descriptor, ptr %keyword)
  %full = icmp eq ptr %item, null
  br i1 %full, label %no, label %read
read:
  %padding_name = call ptr @KnownObjects.padding(ptr %known)
  %padding = call ptr @PyObject_GetAttr(ptr %descriptor, ptr %padding_name)
  %failed = icmp eq ptr %padding, null
  br i1 %failed, label %no, label %fill
fill:
  %type = call ptr @PyObject.type(ptr %descriptor)
  call void @ArgumentDescriptor.set_type(ptr %item, ptr %type)
  %padding_word = ptrtoint ptr %padding to i64
  %word = or i64 %padding_word, %rank
  call void @ArgumentDescriptor.set_value(ptr %item, i64 %word)
  %value = call ptr @value_at(ptr %call)
  store ptr %padding, ptr %value
  %number = call ptr @number_at(ptr %call)
  store i64 0, ptr %number
  call void @add_item(ptr %call, ptr %descriptor)
  ret i1 true
no:
  ret i1 false
}

; The array of a descriptor.
define internal i1 @describe_base(ptr %call, ptr %descriptor) nounwind alwaysinline {
  %known = call ptr @DispatchCall.known(ptr %call)
  %base_name = call ptr @KnownObjects.base(ptr %known)
  %base = call ptr @PyObject_GetAttr(ptr %descriptor, ptr %base_name)
  %failed = icmp eq ptr %base, null
  br i1 %failed, label %no, label %describe
describe:
  %item = call ptr @new_item(ptr %call, ptr %base, ptr null)
  %full = icmp eq ptr %item, null
  br i1 %full, label %release, label %fill
fill:
  %type = call ptr @PyObject.type(ptr %base)
  call void @ArgumentDescriptor.set_type(ptr %item, ptr %type)
  %value = call ptr @value_at(ptr %call)
  %number = call ptr @number_at(ptr %call)
  %is_array = call i1 @describe_array(ptr %known, ptr %base, i64 0, ptr %item, ptr %value,
      ptr %number)
  br i1 %is_array, label %add, label %release
add:
  call void @add_item(ptr %call, ptr %base)
  call void @hold(ptr %call, ptr %base)
  ret i1 true
release:
  call void @Py_DecRef(ptr %base)
  ret i1 false
no:
  ret i1 false
}

; Keeps a reference until the launch is done.
define internal void @hold(ptr %call, ptr %object) nounwind alwaysinline {
  %position = call i64 @DispatchCall.held(ptr %call)
  %objects = call ptr @DispatchCall.at_held_objects(ptr %call)
  %at = getelementptr ptr, ptr %objects, i64 %position
  store ptr %object, ptr %at
  %more = add i64 %position, 1
  call void @DispatchCall.set_held(ptr %call, i64 %more)
  ret void
}

; The numbers %first to %end of a sequence, as items; %role: see @number_word.
define internal i1 @describe_numbers(ptr %call, ptr %sequence, i64 %first, i64 %end, i64 %role)
    nounwind {
  br label %test
test:
  %i = phi i64 [ %first, %0 ], [ %next, %describe ]
  %more = icmp ult i64 %i, %end
  br i1 %more, label %read, label %yes
read:
  %next = add i64 %i, 1
  %object = call ptr @PySequence_GetItem(ptr %sequence, i64 %i)
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %no, label %describe
describe:
  %fine = call i1 @describe_number(ptr %call, ptr %object, i64 %role)
  call void @Py_DecRef(ptr %object)
  br i1 %fine, label %test, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; One number of a descriptor as an item; false: it is no int, or out of range.
define internal i1 @describe_number(ptr %call, ptr %object, i64 %role) nounwind alwaysinline {
  %overflow = alloca i32
  %known = call ptr @DispatchCall.known(ptr %call)
  %type = call ptr @PyObject.type(ptr %object)
  %int = call ptr @KnownObjects.int(ptr %known)
  %is_int = icmp eq ptr %type, %int
  br i1 %is_int, label %read, label %no
read:
  %v = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %overflow)   ; -1 on overflow
  %is_stride = icmp eq i64 %role, 2
  %range = select i1 %is_stride, i64 36, i64 31   ; 2**40 bytes, if elements have 16 at most
  %beyond = lshr i64 %v, %range
  %within = icmp eq i64 %beyond, 0
  br i1 %within, label %make, label %no
make:
  %item = call ptr @new_item(ptr %call, ptr %object, ptr null)
  %full = icmp eq ptr %item, null
  br i1 %full, label %no, label %fill
fill:
  call void @ArgumentDescriptor.set_type(ptr %item, ptr %type)
  %word = call i64 @number_word(i64 %v, i64 %role)
  call void @ArgumentDescriptor.set_value(ptr %item, i64 %word)
  %number = call ptr @number_at(ptr %call)
  store i64 %v, ptr %number
  call void @Py_IncRef(ptr %object)
  %value = call ptr @value_at(ptr %call)
  store ptr %object, ptr %value
  call void @add_item(ptr %call, ptr %object)
  ret i1 true
no:
  ret i1 false
}

; What of a number decides the variant, by its role: 0 nothing; 1, 2 how many of the lowest 4 bits are
; 0, below the lowest that is not; 3 its value.
define internal i64 @number_word(i64 %v, i64 %role) nounwind alwaysinline {
  %limited = or i64 %v, 16
  %zeros = call i64 @llvm.cttz.i64(i64 %limited, i1 true)
  %is_value = icmp eq i64 %role, 3
  %of_value = select i1 %is_value, i64 %v, i64 %zeros
  %is_extent = icmp eq i64 %role, 0
  %word = select i1 %is_extent, i64 0, i64 %of_value
  ret i64 %word
}

declare i64 @llvm.cttz.i64(i64, i1)
