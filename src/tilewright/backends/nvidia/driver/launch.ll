; The launch of a kernel: fills the slots of its arguments, checks the grid, calls the driver.

@PyExc_TypeError = external global ptr
declare i64 @llvm.umin.i64(i64, i64)
@miscounted_text = internal constant [33 x i8] c"wrong number of launch arguments\00"

; launch(x, y, z, stream, *arguments), called by CPython (METH_FASTCALL).
;   %self   Python int: address of a LaunchRecord
;   %args   the grid, the stream and the kernel's arguments
;   %count  of all of them
; Returns None, or null with an error set.
define ptr @tw_launch(ptr %self, ptr %args, i64 %count) nounwind {
  %record = call ptr @PyLong_AsVoidPtr(ptr %self)
  %expected = call i64 @LaunchRecord.count(ptr %record)
  %counted = icmp eq i64 %count, %expected
  br i1 %counted, label %begin, label %miscounted
begin:
  %number = call i64 @LaunchRecord.slots(ptr %record)
  %parameters = call ptr @LaunchRecord.parameters(ptr %record)
  %leading = call i64 @LEADING()
  %arguments = getelementptr ptr, ptr %args, i64 %leading
  %slots = alloca i64, i64 %number
  %map_count = call i64 @LaunchRecord.maps(ptr %record)
  %passed_count = add i64 %number, %map_count
  %params = alloca ptr, i64 %passed_count
  %map_bytes = call i64 @MAP_BYTES()
  %all_map_bytes = mul i64 %map_count, %map_bytes
  %maps = alloca i8, i64 %all_map_bytes, align 64
  br label %test
test:
  %i = phi i64 [ 0, %begin ], [ %next, %filled ]
  %more = icmp ult i64 %i, %number
  br i1 %more, label %fill, label %test_maps
fill:
  %parameter = getelementptr %Parameter, ptr %parameters, i64 %i
  %slot = getelementptr i64, ptr %slots, i64 %i
  %param_at = getelementptr ptr, ptr %params, i64 %i
  %index = call i64 @Parameter.index(ptr %parameter)
  %argument = getelementptr ptr, ptr %arguments, i64 %index
  %done = call i1 @fill(ptr %record, ptr %parameter, ptr %argument, ptr %slot)
  br i1 %done, label %filled, label %raise
filled:
  store ptr %slot, ptr %param_at
  %next = add i64 %i, 1
  br label %test
test_maps:
  %no_maps = icmp eq i64 %map_count, 0
  br i1 %no_maps, label %send, label %pass_maps
pass_maps:
  %map_params = getelementptr ptr, ptr %params, i64 %number
  %made = call i1 @pass_maps(ptr %record, ptr %slots, ptr %maps, ptr %map_params)
  br i1 %made, label %send, label %raise
send:
  %result = call ptr @send(ptr %record, ptr %args, ptr %params)
  ret ptr %result
miscounted:
  %type = load ptr, ptr @PyExc_TypeError
  call void @PyErr_SetString(ptr %type, ptr @miscounted_text)
  br label %raise
raise:
  ret ptr null
}

; Launches, if the grid is not empty.
;   %args    the grid and the stream as Python ints
;   %params  addresses of the slots
define internal ptr @send(ptr %record, ptr %args, ptr %params) nounwind alwaysinline {
  %grid = alloca %LaunchGrid
  %valid = call i1 @read_grid(ptr %args, ptr %grid)
  br i1 %valid, label %size, label %bad_grid
size:
  %empty = call i1 @is_empty(ptr %grid)
  br i1 %empty, label %none, label %multiply
multiply:
  %cluster = call i64 @LaunchRecord.cluster(ptr %record)
  %x = call i64 @LaunchGrid.x(ptr %grid)
  %across = mul i64 %x, %cluster
  %resident = call i64 @LaunchRecord.resident(ptr %record)
  %limited = icmp ne i64 %resident, 0
  br i1 %limited, label %limit, label %count
limit:
  %programs = call i64 @programs(ptr %grid)
  br label %count
count:
  %counted = phi i64 [ %across, %multiply ], [ %programs, %limit ]
  %few = icmp ule i64 %counted, 2147483647
  br i1 %few, label %stream, label %bad_grid
stream:
  ; of pairs the last one may have a block without a program
  %pairs = call i64 @LaunchRecord.pairs(ptr %record)
  %odd = and i64 %counted, %pairs
  %paired = add i64 %counted, %odd
  %fewest = call i64 @llvm.umin.i64(i64 %paired, i64 %resident)
  %blocks = select i1 %limited, i64 %fewest, i64 %counted
  %has_stream = call i1 @read_stream(ptr %args, ptr %grid)
  br i1 %has_stream, label %launch, label %raise
launch:
  %sent = call i1 @launch_on_stream(ptr %record, ptr %grid, i64 %blocks, ptr %params)
  br i1 %sent, label %after, label %raise
after:
  %fine = call i1 @call_after(ptr %record, ptr %grid)
  br i1 %fine, label %none, label %raise
bad_grid:
  call void @refuse_grid(ptr %record, ptr %args)
  br label %raise
none:
  %none_object = call ptr @LaunchRecord.none(ptr %record)
  call void @Py_IncRef(ptr %none_object)
  ret ptr %none_object
raise:
  ret ptr null
}

; Reads three Python ints; false, perhaps with an error set, if one is not from 0 to 2**31 - 1.
define internal i1 @read_grid(ptr %args, ptr %grid) nounwind alwaysinline {
  %x_object = load ptr, ptr %args
  %x = call i64 @PyLong_AsLongLong(ptr %x_object)
  %y_at = getelementptr ptr, ptr %args, i64 1
  %y_object = load ptr, ptr %y_at
  %y = call i64 @PyLong_AsLongLong(ptr %y_object)
  %z_at = getelementptr ptr, ptr %args, i64 2
  %z_object = load ptr, ptr %z_at
  %z = call i64 @PyLong_AsLongLong(ptr %z_object)
  call void @LaunchGrid.set_x(ptr %grid, i64 %x)
  call void @LaunchGrid.set_y(ptr %grid, i64 %y)
  call void @LaunchGrid.set_z(ptr %grid, i64 %z)
  %xy = or i64 %x, %y
  %xyz = or i64 %xy, %z
  %valid = icmp ule i64 %xyz, 2147483647
  ret i1 %valid
}

; How many programs there are; where they are more than 2**31, only that they are.
define internal i64 @programs(ptr %grid) nounwind alwaysinline {
  %x = call i64 @LaunchGrid.x(ptr %grid)
  %y = call i64 @LaunchGrid.y(ptr %grid)
  %z = call i64 @LaunchGrid.z(ptr %grid)
  %xy = mul i64 %x, %y
  %xy_least = call i64 @llvm.umin.i64(i64 %xy, i64 2147483648)
  %xyz = mul i64 %xy_least, %z
  ret i64 %xyz
}

define internal i1 @is_empty(ptr %grid) nounwind alwaysinline {
  %x = call i64 @LaunchGrid.x(ptr %grid)
  %y = call i64 @LaunchGrid.y(ptr %grid)
  %z = call i64 @LaunchGrid.z(ptr %grid)
  %no_x = icmp eq i64 %x, 0
  %no_y = icmp eq i64 %y, 0
  %no_z = icmp eq i64 %z, 0
  %no_xy = or i1 %no_x, %no_y
  %empty = or i1 %no_xy, %no_z
  ret i1 %empty
}

; Reads the stream, the fourth argument; false, with an error set, if it is no int.
define internal i1 @read_stream(ptr %args, ptr %grid) nounwind alwaysinline {
  %at = getelementptr ptr, ptr %args, i64 3
  %object = load ptr, ptr %at
  %stream = call ptr @PyLong_AsVoidPtr(ptr %object)
  call void @LaunchGrid.set_stream(ptr %grid, ptr %stream)
  %default = icmp eq ptr %stream, null
  br i1 %default, label %check, label %yes
check:
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  ret i1 %fine
yes:
  ret i1 true
}

; Calls the driver, without the GIL, until it takes the launch; false, with an error set, if the
; handler `failed` raised. %blocks: along x.
define internal i1 @launch_on_stream(ptr %record, ptr %grid, i64 %blocks, ptr %params)
    nounwind alwaysinline {
  %config = alloca %LaunchConfig
  call void @configure(ptr %config, ptr %record, ptr %grid, i64 %blocks)
  call void @log_launch(ptr %record, ptr %grid)
  %function = call ptr @LaunchRecord.function(ptr %record)
  %launch = call ptr @LaunchRecord.launch(ptr %record)
  br label %go
go:
  %attempt = phi i64 [ 0, %0 ], [ 1, %refused ]
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 %launch(ptr %config, ptr %function, ptr %params, ptr null)
  call void @PyEval_RestoreThread(ptr %thread)
  %sent = icmp eq i32 %status, 0
  br i1 %sent, label %yes, label %refused
refused:
  %again = call i1 @call_failed(ptr %record, ptr %grid, i32 %status, i64 %attempt)
  br i1 %again, label %go, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; The record's configuration, with the grid and the stream of this launch.
define internal void @configure(ptr %config, ptr %record, ptr %grid, i64 %blocks)
    nounwind alwaysinline {
  %shared = call ptr @LaunchRecord.at_config(ptr %record)
  %bytes = call i64 @CONFIG_BYTES()
  call void @llvm.memcpy.p0.p0.i64(ptr %config, ptr %shared, i64 %bytes, i1 false)
  %resident = call i64 @LaunchRecord.resident(ptr %record)
  %limited = icmp ne i64 %resident, 0
  %y = call i64 @LaunchGrid.y(ptr %grid)
  %z = call i64 @LaunchGrid.z(ptr %grid)
  ; of all programs in a row the blocks lie along x
  %y_blocks = select i1 %limited, i64 1, i64 %y
  %z_blocks = select i1 %limited, i64 1, i64 %z
  %stream = call ptr @LaunchGrid.stream(ptr %grid)
  %blocks_32 = trunc i64 %blocks to i32
  %y_32 = trunc i64 %y_blocks to i32
  %z_32 = trunc i64 %z_blocks to i32
  call void @LaunchConfig.set_grid_x(ptr %config, i32 %blocks_32)
  call void @LaunchConfig.set_grid_y(ptr %config, i32 %y_32)
  call void @LaunchConfig.set_grid_z(ptr %config, i32 %z_32)
  call void @LaunchConfig.set_stream(ptr %config, ptr %stream)
  ret void
}

; Writes the launch over the oldest entry of the device's log.
define internal void @log_launch(ptr %record, ptr %grid) nounwind alwaysinline {
  %log = call ptr @LaunchRecord.log(ptr %record)
  %number = call i64 @LogMemory.count(ptr %log)
  %numbered = add i64 %number, 1
  call void @LogMemory.set_count(ptr %log, i64 %numbered)
  %mask = call i64 @LOG_MASK()
  %index = and i64 %number, %mask
  %entries = call ptr @LogMemory.at_entries(ptr %log)
  %entry = getelementptr %LogEntry, ptr %entries, i64 %index
  %x = call i64 @LaunchGrid.x(ptr %grid)
  %y = call i64 @LaunchGrid.y(ptr %grid)
  %z = call i64 @LaunchGrid.z(ptr %grid)
  %stream = call ptr @LaunchGrid.stream(ptr %grid)
  %function = call ptr @LaunchRecord.function(ptr %record)
  %function_word = ptrtoint ptr %function to i64
  %x_32 = trunc i64 %x to i32
  %y_32 = trunc i64 %y to i32
  %z_32 = trunc i64 %z to i32
  %stream_word = ptrtoint ptr %stream to i64
  call void @LogEntry.set_function(ptr %entry, i64 %function_word)
  call void @LogEntry.set_x(ptr %entry, i32 %x_32)
  call void @LogEntry.set_y(ptr %entry, i32 %y_32)
  call void @LogEntry.set_z(ptr %entry, i32 %z_32)
  call void @LogEntry.set_stream(ptr %entry, i64 %stream_word)
  ret void
}

; Calls the handler `failed`; true: launch again; false, with an error set: it raised.
define internal i1 @call_failed(ptr %record, ptr %grid, i32 %status, i64 %attempt) nounwind {
  %args = alloca [6 x ptr]
  %code = sext i32 %status to i64
  %code_object = call ptr @PyLong_FromLongLong(i64 %code)
  store ptr %code_object, ptr %args
  %attempt_object = call ptr @PyLong_FromLongLong(i64 %attempt)
  %attempt_at = getelementptr ptr, ptr %args, i64 1
  store ptr %attempt_object, ptr %attempt_at
  %rest = getelementptr ptr, ptr %args, i64 2
  call void @grid_objects(ptr %grid, ptr %rest)
  %handler = call ptr @LaunchRecord.failed(ptr %record)
  %result = call ptr @call_handler(ptr %handler, ptr %args, i64 6)
  %again = call i1 @has_returned(ptr %result)
  ret i1 %again
}

; Calls the handler `after`, if there is one; false, with an error set: it raised.
define internal i1 @call_after(ptr %record, ptr %grid) nounwind alwaysinline {
  %handler = call ptr @LaunchRecord.after(ptr %record)
  %is_none = icmp eq ptr %handler, null
  br i1 %is_none, label %yes, label %call
call:
  %fine = call i1 @call_after_handler(ptr %handler, ptr %grid)
  ret i1 %fine
yes:
  ret i1 true
}

define internal i1 @call_after_handler(ptr %handler, ptr %grid) nounwind {
  %args = alloca [4 x ptr]
  call void @grid_objects(ptr %grid, ptr %args)
  %result = call ptr @call_handler(ptr %handler, ptr %args, i64 4)
  %fine = call i1 @has_returned(ptr %result)
  ret i1 %fine
}

; Calls the handler `regrid`, which raises.
define internal void @refuse_grid(ptr %record, ptr %args) nounwind {
  %sizes = alloca [3 x ptr]
  call void @PyErr_Clear()
  call void @llvm.memcpy.p0.p0.i64(ptr %sizes, ptr %args, i64 24, i1 false)
  br label %hold
hold:   ; @call_handler gives up a reference to each
  %i = phi i64 [ 0, %0 ], [ %next, %hold ]
  %at = getelementptr ptr, ptr %sizes, i64 %i
  %size = load ptr, ptr %at
  call void @Py_IncRef(ptr %size)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 3
  br i1 %more, label %hold, label %call
call:
  %handler = call ptr @LaunchRecord.regrid(ptr %record)
  %never = call ptr @call_handler(ptr %handler, ptr %sizes, i64 3)
  ret void
}

; Gives up the result of a handler; false if it is null: the handler raised.
define internal i1 @has_returned(ptr %result) nounwind alwaysinline {
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %no, label %yes
yes:
  call void @Py_DecRef(ptr %result)
  ret i1 true
no:
  ret i1 false
}

; Writes four new Python ints to %to: x, y, z and the stream.
define internal void @grid_objects(ptr %grid, ptr %to) nounwind {
  %x = call i64 @LaunchGrid.x(ptr %grid)
  %y = call i64 @LaunchGrid.y(ptr %grid)
  %z = call i64 @LaunchGrid.z(ptr %grid)
  %stream = call ptr @LaunchGrid.stream(ptr %grid)
  %x_object = call ptr @PyLong_FromLongLong(i64 %x)
  %y_object = call ptr @PyLong_FromLongLong(i64 %y)
  %z_object = call ptr @PyLong_FromLongLong(i64 %z)
  %address = ptrtoint ptr %stream to i64
  %stream_object = call ptr @PyLong_FromUnsignedLongLong(i64 %address)
  %second = getelementptr ptr, ptr %to, i64 1
  %third = getelementptr ptr, ptr %to, i64 2
  %fourth = getelementptr ptr, ptr %to, i64 3
  store ptr %x_object, ptr %to
  store ptr %y_object, ptr %second
  store ptr %z_object, ptr %third
  store ptr %stream_object, ptr %fourth
  ret void
}
