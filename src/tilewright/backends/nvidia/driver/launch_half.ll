; The 16-bit floats of launch_arguments.ll. Rounding them needs further functions, and few kernels
; have such parameters: so this is a program apart, and called by address (Parameter.fill_half).
;   %index   of the argument among the kernel's
;   %object  the argument
;   %slot    where the 64 bits are written
; Returns false, with an error set, if the launch must not be made.

define i1 @tw_fill_f16(ptr %record, i64 %index, ptr %object, ptr %slot) nounwind {
  %v = call double @PyFloat_AsDouble(ptr %object)
  %rounded = fptrunc double %v to half
  %bits = bitcast half %rounded to i16
  %filled = call i1 @fill_half(ptr %record, i64 %index, ptr %object, ptr %slot, double %v, i16 %bits)
  ret i1 %filled
}

define i1 @tw_fill_bf16(ptr %record, i64 %index, ptr %object, ptr %slot) nounwind {
  %v = call double @PyFloat_AsDouble(ptr %object)
  %rounded = fptrunc double %v to bfloat
  %bits = bitcast bfloat %rounded to i16
  %filled = call i1 @fill_half(ptr %record, i64 %index, ptr %object, ptr %slot, double %v, i16 %bits)
  ret i1 %filled
}

; Fills in the bits of a number that was %v before it was rounded.
define internal i1 @fill_half(ptr %record, i64 %index, ptr %object, ptr %slot, double %v, i16 %bits)
    nounwind alwaysinline {
  %word = zext i16 %bits to i64
  store i64 %word, ptr %slot
  %minus = fcmp oeq double %v, -1.0
  br i1 %minus, label %suspect, label %filled
suspect:
  %checked = call i1 @finish_suspect(ptr %record, i64 %index, ptr %object, ptr %slot)
  ret i1 %checked
filled:
  ret i1 true
}
