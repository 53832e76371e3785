"""How the machine code of `dispatch_ir` runs a line that it has found, as text it completes.

hold the line's memory, stamp it
hooks, settings, globals, the device: as they were?        else for Python
the grid: given, or asked for
arguments that may overlap?                                for Python
the stream, then the call with the values of the line's sources
errors lose the frames of the library
"""

__all__ = ["FIRE"]

FIRE = """
; takes the frames of the library off the current error, if it is one of its own
define internal void @strip(ptr %shared) nounwind {
  %parts = alloca [3 x ptr]
  %second = getelementptr ptr, ptr %parts, i64 1
  %third = getelementptr ptr, ptr %parts, i64 2
  call void @PyErr_Fetch(ptr %parts, ptr %second, ptr %third)
  call void @PyErr_NormalizeException(ptr %parts, ptr %second, ptr %third)
  %type = load ptr, ptr %parts
  %error = load ptr, ptr %second
  %trace = load ptr, ptr %third
  %no_trace = icmp eq ptr %trace, null
  br i1 %no_trace, label %restore, label %leave
leave:
  %set = call i32 @PyException_SetTraceback(ptr %error, ptr %trace)
  %exit = get ptr %shared SHARED.boundary
  %left = call ptr @PyObject_Vectorcall(ptr %exit, ptr %parts, i64 3, ptr null)
  call void @Py_DecRef(ptr %trace)
  %rest = call ptr @PyException_GetTraceback(ptr %error)
  br label %restore
restore:
  %kept = phi ptr [ null, %0 ], [ %rest, %leave ]
  call void @PyErr_Restore(ptr %type, ptr %error, ptr %kept)
  ret void
}

; whether the current error comes from Python code; else a call has failed before any ran, because
; of its arguments
define internal i1 @raised_in_a_frame() nounwind {
  %parts = alloca [3 x ptr]
  %second = getelementptr ptr, ptr %parts, i64 1
  %third = getelementptr ptr, ptr %parts, i64 2
  call void @PyErr_Fetch(ptr %parts, ptr %second, ptr %third)
  %type = load ptr, ptr %parts
  %error = load ptr, ptr %second
  %trace = load ptr, ptr %third
  call void @PyErr_Restore(ptr %type, ptr %error, ptr %trace)
  %traced = icmp ne ptr %trace, null
  ret i1 %traced
}

; whether nothing asks for Python: no hooks or settings, all globals and the context as they were
define internal i1 @usual(ptr %record, ptr %line) nounwind {
  %slot = alloca ptr
  %assigned = get ptr %record RECORD.assigned
  %settings = call i64 @PyDict_Size(ptr %assigned)
  %enter = get ptr %record RECORD.enter
  %before = call i64 @PyList_Size(ptr %enter)
  %exit = get ptr %record RECORD.exit
  %behind = call i64 @PyList_Size(ptr %exit)
  %hooks = or i64 %before, %behind
  %any = or i64 %hooks, %settings
  %none = icmp eq i64 %any, 0
  br i1 %none, label %start, label %no
start:
  %checks = get i64 %line LINE.checks
  %globals = get ptr %line LINE.globals
  br label %test
test:
  %i = phi i64 [ 0, %start ], [ %next, %compare ]
  %more = icmp ult i64 %i, %checks
  br i1 %more, label %check, label %place
check:
  %offset = mul i64 %i, 3
  %get_at = getelementptr ptr, ptr %globals, i64 %offset
  %getter = load ptr, ptr %get_at
  %name_at = getelementptr ptr, ptr %get_at, i64 1
  %value_at = getelementptr ptr, ptr %get_at, i64 2
  %value = load ptr, ptr %value_at
  %found = call ptr @PyObject_Vectorcall(ptr %getter, ptr %name_at, i64 1, ptr null)
  %raised = icmp eq ptr %found, null
  br i1 %raised, label %error, label %compare
compare:
  call void @Py_DecRef(ptr %found)
  %next = add i64 %i, 1
  %same = icmp eq ptr %found, %value
  br i1 %same, label %test, label %no
place:
  %context_of = get ptr %line LINE.context_of
  %anywhere = icmp eq ptr %context_of, null
  br i1 %anywhere, label %yes, label %ask
ask:
  store ptr null, ptr %slot
  %status = call i32 %context_of(ptr %slot)
  %current = load ptr, ptr %slot
  %context = get ptr %line LINE.context
  %here = icmp eq ptr %current, %context
  br i1 %here, label %yes, label %no
yes:
  ret i1 true
error:
  call void @PyErr_Clear()
  br label %no
no:
  ret i1 false
}

; runs a line, which another thread may drop meanwhile
define internal ptr @fire(ptr %record, ptr %line, ptr %args, i64 %count, ptr %names, i64 %total,
    ptr %values, ptr %raws) nounwind {
  %owner = get ptr %line LINE.owner
  call void @Py_IncRef(ptr %owner)
  %clock = get ptr %record RECORD.clock
  %before = load i64, ptr %clock
  %now = add i64 %before, 1
  store i64 %now, ptr %clock
  %stamp_at = getelementptr i8, ptr %line, i64 STAMP_FIELD
  store i64 %now, ptr %stamp_at
  %result = call ptr @fire_held(ptr %record, ptr %line, ptr %args, i64 %count, ptr %names,
      i64 %total, ptr %values, ptr %raws)
  call void @Py_DecRef(ptr %owner)
  ret ptr %result
}

; values: for each argument what is passed; raws: their numbers and addresses
define internal ptr @fire_held(ptr %record, ptr %line, ptr %args, i64 %count, ptr %names,
    i64 %total, ptr %values, ptr %raws) nounwind {
  %passed = alloca [MAX_PASSED x ptr]
  %shared = get ptr %record RECORD.shared
  %is_usual = call i1 @usual(ptr %record, ptr %line)
  br i1 %is_usual, label %size, label %unusual
size:
  %grid = load ptr, ptr %args
  %sized = call i1 @extents(ptr %shared, ptr %grid, ptr %passed)
  br i1 %sized, label %watch, label %is_callable
is_callable:
  %can = call i32 @PyCallable_Check(ptr %grid)
  %callable = icmp ne i32 %can, 0
  br i1 %callable, label %ask, label %unusual
ask:
  %answer = call ptr @call_grid(ptr %line, ptr %grid, ptr %args, i64 %total)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %not_answered, label %answered
not_answered:
  %began = call i1 @raised_in_a_frame()
  br i1 %began, label %fail, label %uncallable
uncallable:
  call void @PyErr_Clear()
  br label %unusual
answered:
  %answer_sized = call i1 @extents(ptr %shared, ptr %answer, ptr %passed)
  br i1 %answer_sized, label %watch, label %strange
watch:
  %owned = phi ptr [ null, %size ], [ %answer, %answered ]
  %pairs = get i64 %line LINE.pairs
  %any_pairs = icmp ne i64 %pairs, 0
  br i1 %any_pairs, label %look, label %prepare
look:
  %suspect = call i1 @may_overlap(ptr %record, ptr %line, ptr %args, i64 %total, ptr %raws,
      ptr %passed)
  br i1 %suspect, label %suspected, label %prepare
suspected:
  %asked = icmp ne ptr %owned, null
  br i1 %asked, label %strange, label %unusual
strange:
  %asked_grid = phi ptr [ %answer, %answered ], [ %owned, %suspected ]
  %all = add i64 %total, 1
  %bytes = mul i64 %all, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %passed, ptr %args, i64 %bytes, i1 false)
  store ptr %asked_grid, ptr %passed
  %strange_python = get ptr %record RECORD.python
  %strange_result = call ptr @PyObject_Vectorcall(ptr %strange_python, ptr %passed, i64 %count,
      ptr %names)
  call void @Py_DecRef(ptr %asked_grid)
  ret ptr %strange_result
prepare:
  %stream_of = get ptr %line LINE.stream_of
  %no_stream = icmp eq ptr %stream_of, null
  br i1 %no_stream, label %gather, label %ask_stream
ask_stream:
  %device_at = getelementptr i8, ptr %line, i64 DEVICE_FIELD
  %found_stream = call ptr @PyObject_Vectorcall(ptr %stream_of, ptr %device_at, i64 1, ptr null)
  %stream_at = getelementptr ptr, ptr %passed, i64 3
  store ptr %found_stream, ptr %stream_at
  %lost = icmp eq ptr %found_stream, null
  br i1 %lost, label %finish, label %gather
gather:
  %stream = phi ptr [ null, %prepare ], [ %found_stream, %ask_stream ]
  %leading = phi i64 [ 3, %prepare ], [ 4, %ask_stream ]
  %number = get i64 %line LINE.values
  %sources = get ptr %line LINE.sources
  br label %test
test:
  %i = phi i64 [ 0, %gather ], [ %next, %place ]
  %more = icmp ult i64 %i, %number
  br i1 %more, label %pick, label %call
pick:
  %source_at = getelementptr i64, ptr %sources, i64 %i
  %source = load i64, ptr %source_at
  %is_position = icmp ult i64 %source, MAX_ARGUMENTS
  br i1 %is_position, label %given, label %default
given:
  %value_at = getelementptr ptr, ptr %values, i64 %source
  %value = load ptr, ptr %value_at
  br label %place
default:
  %constant = inttoptr i64 %source to ptr
  br label %place
place:
  %argument = phi ptr [ %value, %given ], [ %constant, %default ]
  %position = add i64 %leading, %i
  %place_at = getelementptr ptr, ptr %passed, i64 %position
  store ptr %argument, ptr %place_at
  %next = add i64 %i, 1
  br label %test
call:
  %whole = add i64 %leading, %number
  %callee = get ptr %line LINE.call
  %result = call ptr @PyObject_Vectorcall(ptr %callee, ptr %passed, i64 %whole, ptr null)
  br i1 %no_stream, label %finish, label %drop_stream
drop_stream:
  call void @Py_DecRef(ptr %stream)
  br label %finish
finish:
  %outcome = phi ptr [ null, %ask_stream ], [ %result, %call ], [ %result, %drop_stream ]
  call void @Py_DecRef(ptr %owned)
  %bad = icmp eq ptr %outcome, null
  br i1 %bad, label %fail, label %succeed
succeed:
  call void @Py_DecRef(ptr %outcome)
  %kernel = get ptr %line LINE.kernel
  call void @Py_IncRef(ptr %kernel)
  ret ptr %kernel
unusual:
  %python = get ptr %record RECORD.python
  %slow = call ptr @PyObject_Vectorcall(ptr %python, ptr %args, i64 %count, ptr %names)
  ret ptr %slow
fail:
  call void @strip(ptr %shared)
  ret ptr null
}
"""
