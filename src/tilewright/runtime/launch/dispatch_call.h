// A launch while it is dispatched: its arguments, and the items that describe them.
#pragma once

#include <stdbool.h>

#include "cpython.h"
#include "native_dispatch_structures.h"

typedef struct {
    const DispatchRecord *record;
    const KnownObjects *known;
    PyObject *const *args; // as CPython passes them, from the grid on
    uint64_t count;        // of the grid and the positional arguments
    PyObject *keywords;    // tuple, or null
    uint64_t total;        // arguments without the grid
    uint64_t described;    // items so far: of an argument one, of a tensor descriptor several
    // own references to objects made for the items; null: an item passes its object, or its number
    PyObject *values[MAX_ARGUMENTS];
    PyObject *objects[MAX_ARGUMENTS]; // what the items describe: borrowed
    uint64_t held;
    PyObject *held_objects[MAX_ARGUMENTS + 3]; // own references to some of the objects and extents
    uint64_t numbers[MAX_ARGUMENTS];           // of each item its number or address, or 0
    // of plain tensors, how many elements are from the first one to the end of the last one
    uint64_t reaches[MAX_ARGUMENTS];
    int32_t grid[3];
    PyObject *passed[MAX_ARGUMENTS + 8];               // what a callee gets
    ArgumentDescriptor descriptors[MAX_ARGUMENTS + 1]; // the word of the slot follows them
} Call;

extern int memcmp(const void *some, const void *others, size_t bytes);

// Begin the next item of a call; false: there are too many. `add_item` ends it.
static bool new_item(Call *call, PyObject *object, PyObject *keyword) {
    uint64_t at = call->described;
    if (at >= MAX_ARGUMENTS)
        return false;
    call->descriptors[at] = (ArgumentDescriptor){keyword, type_of(object), 0};
    call->objects[at] = object;
    call->values[at] = nullptr;
    call->numbers[at] = 0;
    return true;
}

static void add_item(Call *call) { call->described++; }

// Keep a reference until the launch is done.
static void hold(Call *call, PyObject *object) { call->held_objects[call->held++] = object; }

// Release references, some of which may be null.
static void release_objects(PyObject *const *objects, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (objects[i])
            Py_DecRef(objects[i]);
}

static void release_values(Call *call) {
    release_objects(call->values, call->described);
    release_objects(call->held_objects, call->held);
}

// How many 64-bit words the descriptors of a call take.
static uint64_t descriptor_words(const Call *call) {
    return call->described * (sizeof(ArgumentDescriptor) / 8);
}

// One step of Fibonacci hashing: the factor is 2**64 divided by the golden ratio. The high bits of
// the result depend on all bits of the word.
static uint64_t mixed(uint64_t hash, uint64_t word) { return (hash ^ word) * 0x9e3779b97f4a7c15; }

// The hash of all descriptors of a call.
static uint64_t hash_descriptors(const Call *call) {
    uint64_t hash = 0;
    for (uint64_t i = 0; i < call->described; i++) {
        const ArgumentDescriptor *item = &call->descriptors[i];
        hash =
            mixed(hash, (uint64_t)item->keyword + __builtin_rotateleft64((uint64_t)item->type, 21) +
                            __builtin_rotateleft64(item->value, 42));
    }
    return hash;
}

// The result of a method without arguments.
static PyObject *call_method(PyObject *name, PyObject *object) {
    return PyObject_VectorcallMethod(name, &object, 1, nullptr);
}

// Copy the grid and all arguments.
static void copy_arguments(const Call *call, PyObject **to) {
    __builtin_memcpy(to, call->args, (call->total + 1) * sizeof *to);
}

// Launch by Python with this array of the grid and the arguments.
static PyObject *launch_arguments_by_python(const Call *call, PyObject *const *args) {
    return PyObject_Vectorcall(call->record->python, args, call->count, call->keywords);
}

// Launch by Python as the call came.
static PyObject *launch_by_python(const Call *call) {
    return launch_arguments_by_python(call, call->args);
}

// Launch by Python with another grid, whose reference is released.
static PyObject *launch_grid_by_python(Call *call, PyObject *grid) {
    copy_arguments(call, call->passed);
    call->passed[0] = grid;
    PyObject *result = launch_arguments_by_python(call, call->passed);
    Py_DecRef(grid);
    return result;
}
