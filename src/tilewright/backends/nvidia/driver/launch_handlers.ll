; What the machine code of launches shares: CPython's functions, and calls of the record's handlers.

declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyBytes_AsString(ptr)   ; the bytes themselves
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Calls a Python function with %count (1 or more) arguments, and gives up the references to them.
; Returns a new reference, or null with an error set.
define internal ptr @call_handler(ptr %handler, ptr %args, i64 %count) nounwind {
  %result = call ptr @PyObject_Vectorcall(ptr %handler, ptr %args, i64 %count, ptr null)
  br label %release
release:
  %i = phi i64 [ 0, %0 ], [ %next, %release ]
  %at = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %at
  call void @Py_DecRef(ptr %arg)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %release, label %done
done:
  ret ptr %result
}

; Fills a slot by the handler `convert`; false, with an error set, if that raised.
;   %index   of the argument among the kernel's
define internal i1 @convert(ptr %record, i64 %index, ptr %object, ptr %slot) nounwind {
  %args = alloca [2 x ptr]
  call void @PyErr_Clear()
  %index_object = call ptr @PyLong_FromLongLong(i64 %index)
  store ptr %index_object, ptr %args
  %second = getelementptr ptr, ptr %args, i64 1
  store ptr %object, ptr %second
  call void @Py_IncRef(ptr %object)
  %handler = call ptr @LaunchRecord.convert(ptr %record)
  %result = call ptr @call_handler(ptr %handler, ptr %args, i64 2)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %fail, label %take
take:
  %bits = call i64 @PyLong_AsUnsignedLongLong(ptr %result)
  call void @Py_DecRef(ptr %result)
  store i64 %bits, ptr %slot
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  ret i1 %fine
fail:
  ret i1 false
}

; Ends the filling of a slot by -1, by which CPython's functions report errors too: an error leaves
; the argument to `convert`.
define internal i1 @finish_suspect(ptr %record, i64 %index, ptr %object, ptr %slot) nounwind {
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %filled, label %slow
slow:
  %converted = call i1 @convert(ptr %record, i64 %index, ptr %object, ptr %slot)
  ret i1 %converted
filled:
  ret i1 true
}
