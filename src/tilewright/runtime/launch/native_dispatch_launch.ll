; Launches by a cache entry:
;
;   hold the entry's memory, note the time of its use
;   hooks, options, the device: as they were?             else Python launches
;   globals: as they were?                                else as a launch without an entry
;   the grid: the entry's, the given one, or what the given callable returns
;   arguments that may overlap?                           Python launches
;   the stream, then the call with the values of the entry's sources
;   errors lose the frames of the library

; Launches by an entry, which another thread may drop meanwhile. Returns as @tw_dispatch.
define internal ptr @launch_entry(ptr %call, ptr %entry) nounwind {
  %owner = call ptr @CacheEntry.owner(ptr %entry)
  call void @Py_IncRef(ptr %owner)
  %record = call ptr @DispatchCall.record(ptr %call)
  %clock = call ptr @DispatchRecord.clock(ptr %record)
  %before = load i64, ptr %clock
  %now = add i64 %before, 1
  store i64 %now, ptr %clock
  call void @CacheEntry.set_stamp(ptr %entry, i64 %now)
  %result = call ptr @launch_held_entry(ptr %call, ptr %entry)
  call void @Py_DecRef(ptr %owner)
  ret ptr %result
}

; The same for an entry that stays, if it still decides what is launched.
define internal ptr @launch_held_entry(ptr %call, ptr %entry) nounwind {
  %usual = call i1 @is_usual(ptr %call, ptr %entry)
  br i1 %usual, label %globals, label %python
globals:
  %same_globals = call i1 @are_globals_unchanged(ptr %entry)
  br i1 %same_globals, label %launch, label %relearn
launch:
  %launched = call ptr @launch_valid_entry(ptr %call, ptr %entry)
  ret ptr %launched
relearn:
  %slot = call i64 @CacheEntry.slot(ptr %entry)
  %learned = call ptr @launch_new(ptr %call, i64 %slot)
  ret ptr %learned
python:
  %result = call ptr @launch_by_python(ptr %call)
  ret ptr %result
}

; Launches what an entry says; %asked is the grid that a callable has returned.
define internal ptr @launch_valid_entry(ptr %call, ptr %entry) nounwind {
  %known = call ptr @DispatchCall.known(ptr %call)
  %passed = call ptr @DispatchCall.at_passed(ptr %call)
  %args = call ptr @DispatchCall.args(ptr %call)
  %given_grid = load ptr, ptr %args
  %own_grid = call ptr @CacheEntry.grid(ptr %entry)
  %has_grid = icmp ne ptr %own_grid, null
  %grid = select i1 %has_grid, ptr %own_grid, ptr %given_grid
  %sized = call i1 @extents(ptr %known, ptr %grid, ptr %passed)
  br i1 %sized, label %watch, label %is_callable
is_callable:
  %can = call i32 @PyCallable_Check(ptr %grid)
  %callable = icmp ne i32 %can, 0
  br i1 %callable, label %ask, label %python
ask:
  %answer = call ptr @call_grid(ptr %call, ptr %entry, ptr %grid)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %no_answer, label %answered
no_answer:
  %ran = call i1 @raised_in_a_frame()
  br i1 %ran, label %fail, label %uncallable
uncallable:
  call void @PyErr_Clear()
  br label %python
answered:
  %answer_sized = call i1 @extents(ptr %known, ptr %answer, ptr %passed)
  br i1 %answer_sized, label %watch, label %with_answer
watch:
  %owned = phi ptr [ null, %0 ], [ %answer, %answered ]
  %suspect = call i1 @may_overlap(ptr %call, ptr %entry)
  br i1 %suspect, label %suspected, label %start
suspected:
  %asked = icmp ne ptr %owned, null
  br i1 %asked, label %with_answer, label %python
with_answer:   ; a callable grid is not called twice
  %python_grid = phi ptr [ %answer, %answered ], [ %owned, %suspected ]
  %slow = call ptr @launch_grid_by_python(ptr %call, ptr %python_grid)
  ret ptr %slow
start:
  %outcome = call ptr @call_entry(ptr %call, ptr %entry)
  call void @Py_DecRef(ptr %owned)
  %bad = icmp eq ptr %outcome, null
  br i1 %bad, label %fail, label %succeed
succeed:
  call void @Py_DecRef(ptr %outcome)
  %kernel = call ptr @CacheEntry.kernel(ptr %entry)
  call void @Py_IncRef(ptr %kernel)
  ret ptr %kernel
python:
  %plain = call ptr @launch_by_python(ptr %call)
  ret ptr %plain
fail:
  call void @strip_traceback(ptr %known)
  ret ptr null
}

; Whether a launch is one of those that entries are for: no hooks or options, the current context as it was.
define internal i1 @is_usual(ptr %call, ptr %entry) nounwind alwaysinline {
  %record = call ptr @DispatchCall.record(ptr %call)
  %none = call i1 @is_nothing_assigned(ptr %record)
  br i1 %none, label %context, label %no
context:
  %same_context = call i1 @is_context_current(ptr %entry)
  ret i1 %same_context
no:
  ret i1 false
}

; Whether there are no hooks around launches, and no options that the program has set.
define internal i1 @is_nothing_assigned(ptr %record) nounwind alwaysinline {
  %assigned = call ptr @DispatchRecord.assigned(ptr %record)
  %options = call i64 @PyDict_Size(ptr %assigned)
  %enter = call ptr @DispatchRecord.enter(ptr %record)
  %before_all = call i64 @PyList_Size(ptr %enter)
  %exit = call ptr @DispatchRecord.exit(ptr %record)
  %after = call i64 @PyList_Size(ptr %exit)
  %own = call ptr @DispatchRecord.before(ptr %record)
  %before_own = call i64 @PyList_Size(ptr %own)
  %around = or i64 %before_all, %after
  %hooks = or i64 %around, %before_own
  %any = or i64 %hooks, %options
  %none = icmp eq i64 %any, 0
  ret i1 %none
}

; Whether each global that the kernel has read is the object that it was.
define internal i1 @are_globals_unchanged(ptr %entry) nounwind alwaysinline {
  %checks = call i64 @CacheEntry.checks(ptr %entry)
  %globals = call ptr @CacheEntry.globals(ptr %entry)
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %compare ], [ %next, %found ]
  %more = icmp ult i64 %i, %checks
  br i1 %more, label %check, label %yes
check:
  %next = add i64 %i, 1
  %offset = mul i64 %i, 4
  %holder_at = getelementptr ptr, ptr %globals, i64 %offset
  %holder = load ptr, ptr %holder_at
  %get_at = getelementptr ptr, ptr %holder_at, i64 1
  %name_at = getelementptr ptr, ptr %holder_at, i64 2
  %value_at = getelementptr ptr, ptr %holder_at, i64 3
  %value = load ptr, ptr %value_at
  %in_dict = icmp ne ptr %holder, null
  br i1 %in_dict, label %found, label %ask
found:
  %name = load ptr, ptr %name_at
  %held = call ptr @PyDict_GetItemWithError(ptr %holder, ptr %name)
  %same_held = icmp eq ptr %held, %value
  br i1 %same_held, label %test, label %error
ask:
  %getter = load ptr, ptr %get_at
  %current = call ptr @PyObject_Vectorcall(ptr %getter, ptr %name_at, i64 1, ptr null)
  %raised = icmp eq ptr %current, null
  br i1 %raised, label %error, label %compare
compare:
  call void @Py_DecRef(ptr %current)
  %same = icmp eq ptr %current, %value
  br i1 %same, label %test, label %no
yes:
  ret i1 true
error:
  call void @PyErr_Clear()
  br label %no
no:
  ret i1 false
}

; Whether the thread's current context is the entry's; true for backends that have none.
define internal i1 @is_context_current(ptr %entry) nounwind alwaysinline {
  %slot = alloca ptr
  %context_of = call ptr @CacheEntry.context_of(ptr %entry)
  %anywhere = icmp eq ptr %context_of, null
  br i1 %anywhere, label %yes, label %ask
ask:
  store ptr null, ptr %slot
  %status = call i32 %context_of(ptr %slot)
  %current = load ptr, ptr %slot
  %context = call ptr @CacheEntry.context(ptr %entry)
  %here = icmp eq ptr %current, %context
  ret i1 %here
yes:
  ret i1 true
}

; Launches by Python with a grid of its own, whose reference it gives up.
define internal ptr @launch_grid_by_python(ptr %call, ptr %grid) nounwind alwaysinline {
  %passed = call ptr @DispatchCall.at_passed(ptr %call)
  call void @copy_arguments(ptr %call, ptr %passed)
  store ptr %grid, ptr %passed
  %result = call ptr @launch_arguments_by_python(ptr %call, ptr %passed)
  call void @Py_DecRef(ptr %grid)
  ret ptr %result
}

; Calls what the entry calls: its `words`, or its target.
define internal ptr @call_entry(ptr %call, ptr %entry) nounwind alwaysinline {
  %words = call ptr @CacheEntry.words(ptr %entry)
  %by_words = icmp ne ptr %words, null
  br i1 %by_words, label %pass_words, label %pass_objects
pass_words:
  %with_words = call ptr @call_with_words(ptr %call, ptr %entry, ptr %words)
  ret ptr %with_words
pass_objects:
  %with_objects = call ptr @call_target(ptr %call, ptr %entry)
  ret ptr %with_objects
}

; Calls the entry's target: call(x, y, z, [stream,] *values); the grid stands in `passed`. Returns
; its result.
define internal ptr @call_target(ptr %call, ptr %entry) nounwind alwaysinline {
  %passed = call ptr @DispatchCall.at_passed(ptr %call)
  %stream_of = call ptr @CacheEntry.stream_of(ptr %entry)
  %no_stream = icmp eq ptr %stream_of, null
  br i1 %no_stream, label %gather, label %ask
ask:
  %device_at = call ptr @CacheEntry.at_device(ptr %entry)
  %asked = call ptr @PyObject_Vectorcall(ptr %stream_of, ptr %device_at, i64 1, ptr null)
  %stream_at = getelementptr ptr, ptr %passed, i64 3
  store ptr %asked, ptr %stream_at
  %lost = icmp eq ptr %asked, null
  br i1 %lost, label %fail, label %gather
gather:
  %stream = phi ptr [ null, %0 ], [ %asked, %ask ]
  %leading = phi i64 [ 3, %0 ], [ 4, %ask ]
  %values_at = getelementptr ptr, ptr %passed, i64 %leading
  call void @gather_values(ptr %call, ptr %entry, ptr %values_at)
  %number = call i64 @CacheEntry.values(ptr %entry)
  %all = add i64 %leading, %number
  %target = call ptr @CacheEntry.call(ptr %entry)
  %result = call ptr @PyObject_Vectorcall(ptr %target, ptr %passed, i64 %all, ptr null)
  br i1 %no_stream, label %done, label %release
release:
  call void @Py_DecRef(ptr %stream)
  br label %done
done:
  ret ptr %result
fail:
  ret ptr null
}

; Writes the run-time values to %to. A source is the position of an argument, or, for a default, the
; address of the object: no object lies below MAX_ARGUMENTS.
define internal void @gather_values(ptr %call, ptr %entry, ptr %to) nounwind alwaysinline {
  %number = call i64 @CacheEntry.values(ptr %entry)
  %sources = call ptr @CacheEntry.sources(ptr %entry)
  %positions = call i64 @MAX_ARGUMENTS()
  br label %test
test:
  %i = phi i64 [ 0, %0 ], [ %next, %pass ]
  %more = icmp ult i64 %i, %number
  br i1 %more, label %pick, label %done
pick:
  %source_at = getelementptr i64, ptr %sources, i64 %i
  %source = load i64, ptr %source_at
  %is_position = icmp ult i64 %source, %positions
  br i1 %is_position, label %given, label %default
given:
  %value = call ptr @passed_object(ptr %call, i64 %source)
  br label %pass
default:
  %constant = inttoptr i64 %source to ptr
  br label %pass
pass:
  %argument = phi ptr [ %value, %given ], [ %constant, %default ]
  %at = getelementptr ptr, ptr %to, i64 %i
  store ptr %argument, ptr %at
  %next = add i64 %i, 1
  br label %test
done:
  ret void
}

; What an item passes: an object that was made for it, else the one that it is of.
define internal ptr @object_of(ptr %call, i64 %position) nounwind alwaysinline {
  %values = call ptr @DispatchCall.at_values(ptr %call)
  %value_at = getelementptr ptr, ptr %values, i64 %position
  %value = load ptr, ptr %value_at
  %objects = call ptr @DispatchCall.at_objects(ptr %call)
  %object_at = getelementptr ptr, ptr %objects, i64 %position
  %object = load ptr, ptr %object_at
  %is_made = icmp ne ptr %value, null
  %result = select i1 %is_made, ptr %value, ptr %object
  ret ptr %result
}

; The same for a callee in Python: of an array its address as an int, which the call keeps.
define internal ptr @passed_object(ptr %call, i64 %position) nounwind {
  %known = call ptr @DispatchCall.known(ptr %call)
  %object = call ptr @object_of(ptr %call, i64 %position)
  %type = call ptr @PyObject.type(ptr %object)
  %int = call ptr @KnownObjects.int(ptr %known)
  %numbers = call ptr @DispatchCall.at_numbers(ptr %call)
  %number_at = getelementptr i64, ptr %numbers, i64 %position
  %number = load i64, ptr %number_at
  %values = call ptr @DispatchCall.at_values(ptr %call)
  %value_at = getelementptr ptr, ptr %values, i64 %position
  %value = load ptr, ptr %value_at
  %is_made = icmp ne ptr %value, null
  %is_int = icmp eq ptr %type, %int
  %no_number = icmp eq i64 %number, 0
  %known_object = or i1 %is_made, %is_int
  %is_itself = or i1 %known_object, %no_number
  br i1 %is_itself, label %itself, label %address
itself:
  ret ptr %object
address:
  %made = call ptr @PyLong_FromUnsignedLongLong(i64 %number)
  store ptr %made, ptr %value_at
  ret ptr %made
}

; Fetches the current error into %error: type, value, traceback.
define internal void @fetch_error(ptr %error) nounwind alwaysinline {
  %type_at = call ptr @FetchedError.at_type(ptr %error)
  %value_at = call ptr @FetchedError.at_value(ptr %error)
  %traceback_at = call ptr @FetchedError.at_traceback(ptr %error)
  call void @PyErr_Fetch(ptr %type_at, ptr %value_at, ptr %traceback_at)
  ret void
}

; Makes a fetched error the current one again, with this traceback.
define internal void @restore_error(ptr %error, ptr %traceback) nounwind alwaysinline {
  %type = call ptr @FetchedError.type(ptr %error)
  %value = call ptr @FetchedError.value(ptr %error)
  call void @PyErr_Restore(ptr %type, ptr %value, ptr %traceback)
  ret void
}

; Takes the frames of the library off the current error, if it is one of its own.
define internal void @strip_traceback(ptr %known) nounwind {
  %error = alloca %FetchedError
  call void @fetch_error(ptr %error)
  %type_at = call ptr @FetchedError.at_type(ptr %error)
  %value_at = call ptr @FetchedError.at_value(ptr %error)
  %traceback_at = call ptr @FetchedError.at_traceback(ptr %error)
  call void @PyErr_NormalizeException(ptr %type_at, ptr %value_at, ptr %traceback_at)
  %value = call ptr @FetchedError.value(ptr %error)
  %traceback = call ptr @FetchedError.traceback(ptr %error)
  %no_traceback = icmp eq ptr %traceback, null
  br i1 %no_traceback, label %restore, label %leave
leave:
  %set = call i32 @PyException_SetTraceback(ptr %value, ptr %traceback)
  %boundary = call ptr @KnownObjects.boundary(ptr %known)
  %left = call ptr @PyObject_Vectorcall(ptr %boundary, ptr %error, i64 3, ptr null)
  call void @Py_DecRef(ptr %traceback)
  %rest = call ptr @PyException_GetTraceback(ptr %value)
  br label %restore
restore:
  %kept = phi ptr [ null, %0 ], [ %rest, %leave ]
  call void @restore_error(ptr %error, ptr %kept)
  ret void
}

; Whether the current error comes from Python code; else a call has failed before any ran, because
; of its arguments.
define internal i1 @raised_in_a_frame() nounwind {
  %error = alloca %FetchedError
  call void @fetch_error(ptr %error)
  %traceback = call ptr @FetchedError.traceback(ptr %error)
  call void @restore_error(ptr %error, ptr %traceback)
  %traced = icmp ne ptr %traceback, null
  ret i1 %traced
}
