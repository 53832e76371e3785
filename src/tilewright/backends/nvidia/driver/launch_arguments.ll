; How an argument becomes the 64 bits of its slot.
;   %record     LaunchRecord
;   %parameter  Parameter
;   %argument   address of the PyObject *
;   %slot       where the 64 bits are written
; The functions that fill a slot return false, with an error set, if the launch must not be made.

; Python's PARAMETER_KINDS numbers the kinds.
define internal i1 @fill(ptr %record, ptr %parameter, ptr %argument, ptr %slot)
    nounwind alwaysinline {
  %object = load ptr, ptr %argument
  %kind = call i64 @Parameter.kind(ptr %parameter)
  %index = call i64 @Parameter.index(ptr %parameter)
  switch i64 %kind, label %half [
    i64 0, label %pointer
    i64 1, label %integer
    i64 2, label %wide
    i64 3, label %single
    i64 4, label %double
  ]
pointer:
  %pointed = call i1 @fill_pointer(ptr %record, i64 %index, ptr %argument, ptr %slot)
  ret i1 %pointed
integer:
  %v = call i64 @PyLong_AsLongLong(ptr %object)
  %narrowed = call i64 @narrowed(ptr %parameter, i64 %v)
  %fits = icmp eq i64 %v, %narrowed
  br i1 %fits, label %integer_fits, label %slow
wide:
  %u = call i64 @PyLong_AsUnsignedLongLong(ptr %object)
  br label %integer_fits
integer_fits:
  %word = phi i64 [ %v, %integer ], [ %u, %wide ]
  store i64 %word, ptr %slot
  %minus = icmp eq i64 %word, -1
  br i1 %minus, label %suspect, label %filled
single:
  %s = call double @PyFloat_AsDouble(ptr %object)
  %rounded = fptrunc double %s to float
  %single_bits = bitcast float %rounded to i32
  %single_word = zext i32 %single_bits to i64
  store i64 %single_word, ptr %slot
  %single_minus = fcmp oeq double %s, -1.0
  br i1 %single_minus, label %suspect, label %filled
double:
  %d = call double @PyFloat_AsDouble(ptr %object)
  store double %d, ptr %slot
  %double_minus = fcmp oeq double %d, -1.0
  br i1 %double_minus, label %suspect, label %filled
suspect:
  %checked = call i1 @finish_suspect(ptr %record, i64 %index, ptr %object, ptr %slot)
  ret i1 %checked
half:
  %function = call ptr @Parameter.fill_half(ptr %parameter)
  %half_filled = call i1 %function(ptr %record, i64 %index, ptr %object, ptr %slot)
  ret i1 %half_filled
slow:
  %converted = call i1 @convert(ptr %record, i64 %index, ptr %object, ptr %slot)
  ret i1 %converted
filled:
  ret i1 true
}

; An integer as its type would hold it: the bits that it has not are replaced by its sign.
define internal i64 @narrowed(ptr %parameter, i64 %v) nounwind alwaysinline {
  %spare = call i64 @Parameter.spare_bits(ptr %parameter)
  %signed = call i64 @Parameter.signed(ptr %parameter)
  %is_signed = icmp ne i64 %signed, 0
  %high = shl i64 %v, %spare
  %with_sign = ashr i64 %high, %spare
  %without = lshr i64 %high, %spare
  %result = select i1 %is_signed, i64 %with_sign, i64 %without
  ret i64 %result
}

; An address: of an int, None (null), or an object with a method `data_ptr`.
define internal i1 @fill_pointer(ptr %record, i64 %index, ptr %argument, ptr %slot)
    nounwind alwaysinline {
  %object = load ptr, ptr %argument
  %type = call ptr @PyObject.type(ptr %object)
  %int = call ptr @LaunchRecord.int(ptr %record)
  %is_int = icmp eq ptr %type, %int
  br i1 %is_int, label %number, label %other
other:
  %none = call ptr @LaunchRecord.none(ptr %record)
  %is_none = icmp eq ptr %object, %none
  br i1 %is_none, label %null, label %array
array:
  %data_ptr = call ptr @LaunchRecord.data_ptr(ptr %record)
  %result = call ptr @PyObject_VectorcallMethod(ptr %data_ptr, ptr %argument, i64 1, ptr null)
  %returned = icmp ne ptr %result, null
  br i1 %returned, label %address, label %slow
address:
  %array_address = call i64 @PyLong_AsUnsignedLongLong(ptr %result)
  call void @Py_DecRef(ptr %result)
  br label %check
number:
  %int_address = call i64 @PyLong_AsUnsignedLongLong(ptr %object)
  br label %check
null:
  store i64 0, ptr %slot
  ret i1 true
check:
  %v = phi i64 [ %array_address, %address ], [ %int_address, %number ]
  store i64 %v, ptr %slot
  %next = add i64 %v, 1
  %rare = icmp ule i64 %next, 1   ; null, or -1: perhaps an error
  br i1 %rare, label %special, label %look
special:
  %is_null = icmp eq i64 %v, 0
  br i1 %is_null, label %pass, label %slow
look:
  %usable = call i1 @is_usable(ptr %record, i64 %index, i64 %v)
  ret i1 %usable
slow:
  %converted = call i1 @convert(ptr %record, i64 %index, ptr %object, ptr %slot)
  ret i1 %converted
pass:
  ret i1 true
}

; Whether the kernel may use an address. One in a page that the driver has confirmed may: those are
; remembered in a table of the device.
define internal i1 @is_usable(ptr %record, i64 %index, i64 %address) nounwind alwaysinline {
  %page_bits = call i64 @PAGE_BITS()
  %page = lshr i64 %address, %page_bits
  %high = lshr i64 %page, 9   ; arrays that lie a power of two apart must not share an entry
  %mixed = xor i64 %page, %high
  %mask = call i64 @PAGE_MASK()
  %hash = and i64 %mixed, %mask
  %pages = call ptr @LaunchRecord.pages(ptr %record)
  %entry = getelementptr i64, ptr %pages, i64 %hash
  %confirmed = load i64, ptr %entry
  %hit = icmp eq i64 %confirmed, %page
  br i1 %hit, label %yes, label %ask
ask:
  %usable = call i1 @confirm(ptr %record, i64 %index, i64 %address, ptr %entry)
  ret i1 %usable
yes:
  ret i1 true
}

; Asks the driver about an address; remembers its page in %entry if it is of the record's device, and
; asks the handler `refuse` otherwise.
define internal i1 @confirm(ptr %record, i64 %index, i64 %address, ptr %entry) nounwind {
  %args = alloca [2 x ptr]
  %ordinal = alloca i32
  %query = call ptr @LaunchRecord.pointer_attribute(ptr %record)
  ; 9: CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
  %status = call i32 %query(ptr %ordinal, i32 9, i64 %address)
  %is_known = icmp eq i32 %status, 0
  br i1 %is_known, label %compare, label %python
compare:
  %its_device = load i32, ptr %ordinal
  %device = call i32 @LaunchRecord.device(ptr %record)
  %same = icmp eq i32 %its_device, %device
  br i1 %same, label %remember, label %python
remember:
  %page_bits = call i64 @PAGE_BITS()
  %page = lshr i64 %address, %page_bits
  store i64 %page, ptr %entry
  ret i1 true
python:
  %index_object = call ptr @PyLong_FromLongLong(i64 %index)
  store ptr %index_object, ptr %args
  %second = getelementptr ptr, ptr %args, i64 1
  %address_object = call ptr @PyLong_FromUnsignedLongLong(i64 %address)
  store ptr %address_object, ptr %second
  %handler = call ptr @LaunchRecord.refuse(ptr %record)
  %result = call ptr @call_handler(ptr %handler, ptr %args, i64 2)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %fail, label %allowed
allowed:
  call void @Py_DecRef(ptr %result)
  ret i1 true
fail:
  ret i1 false
}
