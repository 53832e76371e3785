// The launch of a kernel: fills the slots of its arguments, checks the grid, calls the driver.

#include "launch_maps.h"
#include "launch_pointers.h"

// Grid and stream of a launch.
typedef struct {
    int64_t x, y, z;
    void *stream;
} Grid;

typedef int32_t LaunchFunction(const LaunchConfig *config, void *function, void **params,
                               void **extra); // cuLaunchKernelEx
typedef bool FillFunction(const LaunchRecord *record, int64_t index, PyObject *object,
                          uint64_t *slot);

// A word as the parameter's type holds it: the bits that the type lacks are copies of its sign.
static int64_t narrowed(const Parameter *parameter, int64_t value) {
    uint64_t high = (uint64_t)value << parameter->spare_bits;
    return parameter->is_signed ? (int64_t)high >> parameter->spare_bits
                                : (int64_t)(high >> parameter->spare_bits);
}

// Fill the slot of a parameter from its argument.
static bool fill(const LaunchRecord *record, const Parameter *parameter, PyObject *const *argument,
                 uint64_t *slot) {
    PyObject *object = *argument;
    int64_t index = parameter->index;
    double wide;
    float single;
    uint32_t bits;
    bool minus_one;
    switch (parameter->kind) {
    case KIND_POINTER:
        return fill_pointer(record, index, argument, slot);
    case KIND_INTEGER:
        *slot = PyLong_AsLongLong(object);
        if ((int64_t)*slot != narrowed(parameter, *slot))
            return convert(record, index, object, slot);
        minus_one = *slot == UINT64_MAX;
        break;
    case KIND_U64:
        *slot = PyLong_AsUnsignedLongLong(object);
        minus_one = *slot == UINT64_MAX;
        break;
    case KIND_F32:
        wide = PyFloat_AsDouble(object);
        single = (float)wide;
        __builtin_memcpy(&bits, &single, sizeof bits);
        *slot = bits;
        minus_one = wide == -1.0;
        break;
    case KIND_F64:
        wide = PyFloat_AsDouble(object);
        __builtin_memcpy(slot, &wide, sizeof wide);
        minus_one = wide == -1.0;
        break;
    default:
        return ((FillFunction *)parameter->fill_half)(record, index, object, slot);
    }
    return !minus_one || confirm_minus_one(record, index, object, slot);
}

// Read three Python ints; false, perhaps with an error set, if one is not from 0 to 2**31 - 1.
static bool read_grid(PyObject *const *args, Grid *grid) {
    grid->x = PyLong_AsLongLong(args[0]);
    grid->y = PyLong_AsLongLong(args[1]);
    grid->z = PyLong_AsLongLong(args[2]);
    return (uint64_t)(grid->x | grid->y | grid->z) <= INT32_MAX;
}

// The number of programs: any number over 2**31 where there are more.
static uint64_t program_count(const Grid *grid) {
    uint64_t xy = grid->x * grid->y;
    return (xy < 1ull << 31 ? xy : 1ull << 31) * grid->z;
}

// Read the stream, the fourth argument; false, with an error set, if it is no int.
static bool read_stream(PyObject *const *args, Grid *grid) {
    grid->stream = PyLong_AsVoidPtr(args[3]);
    return grid->stream || !PyErr_Occurred();
}

// Write four new Python ints: x, y, z and the stream.
static void grid_objects(const Grid *grid, PyObject **to) {
    to[0] = PyLong_FromLongLong(grid->x);
    to[1] = PyLong_FromLongLong(grid->y);
    to[2] = PyLong_FromLongLong(grid->z);
    to[3] = PyLong_FromUnsignedLongLong((uint64_t)grid->stream);
}

// Call the handler `regrid`, which raises.
static void refuse_grid(const LaunchRecord *record, PyObject *const *args) {
    PyErr_Clear();
    PyObject *sizes[] = {args[0], args[1], args[2]};
    for (int i = 0; i < 3; i++)
        Py_IncRef(sizes[i]);
    call_handler(record->regrid, sizes, 3);
}

// Call the handler `failed`; true: launch again; false, with an error set: it has raised.
static bool call_failed(const LaunchRecord *record, const Grid *grid, int32_t status,
                        int64_t attempt) {
    PyObject *args[6] = {PyLong_FromLongLong(status), PyLong_FromLongLong(attempt)};
    grid_objects(grid, args + 2);
    return has_returned(call_handler(record->failed, args, 6));
}

// Call the handler `after`, if there is one; false, with an error set: it has raised.
static bool call_after(const LaunchRecord *record, const Grid *grid) {
    if (!record->after)
        return true;
    PyObject *args[4];
    grid_objects(grid, args);
    return has_returned(call_handler(record->after, args, 4));
}

// Write the launch over the oldest entry of the device's log.
static void log_launch(const LaunchRecord *record, const Grid *grid) {
    LogMemory *log = record->log;
    log->entries[log->count++ & LOG_MASK] = (LogEntry){
        .function = (uint64_t)record->function,
        .x = grid->x,
        .y = grid->y,
        .z = grid->z,
        .stream = (uint64_t)grid->stream,
    };
}

// Call the driver, without the GIL, until it accepts the launch; false, with an error set, if the
// handler `failed` has raised. blocks: along x
static bool launch_on_stream(const LaunchRecord *record, const Grid *grid, uint64_t blocks,
                             void **params) {
    LaunchConfig config = record->config;
    bool is_row = record->resident != 0; // all blocks are along x
    config.grid_x = blocks;
    config.grid_y = is_row ? 1 : grid->y;
    config.grid_z = is_row ? 1 : grid->z;
    config.stream = grid->stream;
    log_launch(record, grid);
    LaunchFunction *launch = record->launch;
    for (int64_t attempt = 0;; attempt = 1) {
        void *thread = PyEval_SaveThread();
        int32_t status = launch(&config, record->function, params, nullptr);
        PyEval_RestoreThread(thread);
        if (status == 0)
            return true;
        if (!call_failed(record, grid, status, attempt))
            return false;
    }
}

// Launch, if the grid is not empty.
//   args    the grid and the stream as Python ints
//   params  addresses of the slots
static PyObject *launch(const LaunchRecord *record, PyObject *const *args, void **params) {
    Grid grid;
    if (!read_grid(args, &grid)) {
        refuse_grid(record, args);
        return nullptr;
    }
    if (grid.x && grid.y && grid.z) {
        uint64_t resident = record->resident;
        uint64_t blocks = resident ? program_count(&grid) : (uint64_t)(grid.x * record->cluster);
        if (blocks > INT32_MAX) {
            refuse_grid(record, args);
            return nullptr;
        }
        if (resident) { // of pairs, the last one may have a block without a program
            blocks += blocks & record->pairs;
            blocks = blocks < resident ? blocks : resident;
        }
        if (!read_stream(args, &grid) || !launch_on_stream(record, &grid, blocks, params) ||
            !call_after(record, &grid))
            return nullptr;
    }
    Py_IncRef(record->none);
    return record->none;
}

// launch(x, y, z, stream, *arguments), called by CPython (METH_FASTCALL).
//   self   Python int: address of a LaunchRecord
//   args   the grid, the stream and the kernel's arguments
//   count  of all of them
// Returns None, or null with an error set.
PyObject *tw_launch(PyObject *self, PyObject *const *args, int64_t count) {
    const LaunchRecord *record = PyLong_AsVoidPtr(self);
    if (count != record->count) {
        PyErr_SetString(PyExc_TypeError, "wrong number of launch arguments");
        return nullptr;
    }
    const Parameter *parameters = record->parameters;
    int64_t number = record->slots;
    uint64_t slots[number + 1];
    void *params[number + record->maps + 1];
    alignas(64) char maps[(record->maps + 1) * MAP_BYTES];
    for (int64_t i = 0; i < number; i++) {
        params[i] = slots + i;
        if (!fill(record, parameters + i, args + LEADING + parameters[i].index, slots + i))
            return nullptr;
    }
    if (record->maps != 0 && !pass_maps(record, slots, maps, params + number))
        return nullptr;
    return launch(record, args, params);
}
