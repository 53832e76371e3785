// Launches by a cache entry:
//
//   hold the entry's memory, record the time of its use
//   hooks, options, the device: as they were?             else Python launches
//   globals: as they were?                                else as a launch without an entry
//   the grid: the entry's, the given one, or the result of the given callable
//   arguments that may overlap?                           Python launches
//   the stream, then the call with the values of the entry's sources
//   errors lose the frames of the library
#pragma once

#include "dispatch_grid.h"
#include "dispatch_overlap.h"

// A global that a kernel has read.
typedef struct {
    PyObject *holder; // dict; null: `get(name)` gives the value
    PyObject *get;
    PyObject *name;
    PyObject *value;
} GlobalCheck;

// int words(record, x, y, z, values)
typedef int32_t PackedLaunch(void *record, int32_t x, int32_t y, int32_t z, uint64_t *values);

// Whether there are no hooks around launches, and no options that the program has set.
static bool is_nothing_assigned(const DispatchRecord *record) {
    return (PyDict_Size(record->assigned) | PyList_Size(record->enter) | PyList_Size(record->exit) |
            PyList_Size(record->before)) == 0;
}

// Whether the thread's current context is the entry's; true for backends that have none.
static bool is_context_current(const CacheEntry *entry) {
    int (*context_of)(void **) = entry->context_of;
    if (!context_of)
        return true;
    void *current = nullptr;
    context_of(&current);
    return current == entry->context;
}

// Whether each global that the kernel has read is the same object.
static bool are_globals_unchanged(const CacheEntry *entry) {
    const GlobalCheck *checks = entry->globals;
    for (uint64_t i = 0; i < entry->checks; i++) {
        const GlobalCheck *check = checks + i;
        PyObject *current;
        if (check->holder) {
            current = PyDict_GetItemWithError(check->holder, check->name);
        } else {
            current = PyObject_Vectorcall(check->get, &check->name, 1, nullptr);
            Py_DecRef(current);
        }
        if (current != check->value) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

// The object that an item passes: the one made for it, else the one that it describes.
static PyObject *object_of(const Call *call, uint64_t item) {
    return call->values[item] ? call->values[item] : call->objects[item];
}

// The same for a callee in Python: for an array its address as an int, which the call keeps.
static PyObject *passed_object(Call *call, uint64_t item) {
    PyObject *object = object_of(call, item);
    if (call->values[item] || type_of(object) == call->known->int_type || call->numbers[item] == 0)
        return object;
    return call->values[item] = PyLong_FromUnsignedLongLong(call->numbers[item]);
}

// Whether the source of a value is an item. Else it is the address of a default: no object is at an
// address below MAX_ARGUMENTS.
static bool is_item(uint64_t source) { return source < MAX_ARGUMENTS; }

// Call the entry's target: call(x, y, z, [stream,] *values).
static PyObject *call_target(Call *call, const CacheEntry *entry) {
    PyObject **next = call->passed, *stream = nullptr;
    for (int i = 0; i < 3; i++)
        hold(call, *next++ = PyLong_FromLongLong(call->grid[i]));
    if (entry->stream_of) {
        PyObject *device = entry->device;
        stream = PyObject_Vectorcall(entry->stream_of, &device, 1, nullptr);
        if (!stream)
            return nullptr;
        *next++ = stream;
    }
    const uint64_t *sources = entry->sources;
    for (uint64_t i = 0; i < entry->values; i++)
        *next++ = is_item(sources[i]) ? passed_object(call, sources[i]) : (PyObject *)sources[i];
    PyObject *result = PyObject_Vectorcall(entry->call, call->passed, next - call->passed, nullptr);
    if (stream)
        Py_DecRef(stream);
    return result;
}

// The 64 bits of an item. kind: its position in SLOT_KINDS
static uint64_t item_word(const Call *call, uint64_t item, uint64_t kind) {
    uint64_t word = 0;
    double wide;
    float single;
    switch (kind) {
    case SLOT_F32:
        single = (float)PyFloat_AsDouble(object_of(call, item));
        __builtin_memcpy(&word, &single, sizeof single);
        return word;
    case SLOT_F64:
        wide = PyFloat_AsDouble(object_of(call, item));
        __builtin_memcpy(&word, &wide, sizeof wide);
        return word;
    case SLOT_I1:
        return (uint32_t)PyObject_IsTrue(object_of(call, item));
    default:
        return call->numbers[item];
    }
}

// Call the entry's `words` with the grid and a word for each run-time value. Returns a new
// reference to some object, or null with an error set.
static PyObject *call_with_words(Call *call, const CacheEntry *entry) {
    uint64_t *words = (uint64_t *)call->passed;
    const uint64_t *sources = entry->sources, *slots = entry->slots, *constants = entry->constants;
    for (uint64_t i = 0; i < entry->values; i++)
        words[i] = is_item(sources[i]) ? item_word(call, sources[i], slots[i]) : constants[i];
    PackedLaunch *launch = entry->words;
    const int32_t *grid = call->grid;
    uint32_t status = launch(entry->words_record, grid[0], grid[1], grid[2], words);
    if (PyList_Size(entry->failures) == 0 && status == 0) {
        Py_IncRef(call->known->one);
        return call->known->one;
    }
    PyObject *object = PyLong_FromUnsignedLongLong(status);
    PyObject *result = PyObject_Vectorcall(entry->check, &object, 1, nullptr);
    Py_DecRef(object);
    return result;
}

// Whether the current error comes from Python code; else a call has failed before any ran, because
// of its arguments.
static bool raised_in_a_frame(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_Restore(type, value, traceback);
    return traceback != nullptr;
}

// Take the frames of the library off the current error, if it is one of its own.
static void strip_traceback(const KnownObjects *known) {
    PyObject *error[3]; // type, value, traceback
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    PyErr_NormalizeException(&error[0], &error[1], &error[2]);
    PyObject *traceback = error[2];
    if (traceback) {
        PyException_SetTraceback(error[1], traceback);
        Py_DecRef(PyObject_Vectorcall(known->boundary, error, 3, nullptr));
        Py_DecRef(traceback);
        traceback = PyException_GetTraceback(error[1]);
    }
    PyErr_Restore(error[0], error[1], traceback);
}

// Launch what a valid entry says.
static PyObject *launch_valid_entry(Call *call, const CacheEntry *entry) {
    PyObject *grid = entry->grid ? entry->grid : call->args[0];
    PyObject *answer = nullptr; // of a callable grid, which is not called twice
    if (!read_grid(call, grid) && !run_grid(call, entry, grid)) {
        if (!PyCallable_Check(grid))
            return launch_by_python(call);
        answer = call_grid(call, entry, grid);
        if (!answer && raised_in_a_frame()) {
            strip_traceback(call->known);
            return nullptr;
        }
        if (!answer) {
            PyErr_Clear();
            return launch_by_python(call);
        }
        if (!read_grid(call, answer))
            return launch_grid_by_python(call, answer);
    }
    if (may_overlap(call, entry))
        return answer ? launch_grid_by_python(call, answer) : launch_by_python(call);
    if (entry->noted)
        *(uint64_t *)entry->noted = entry->note;
    PyObject *outcome = entry->words ? call_with_words(call, entry) : call_target(call, entry);
    Py_DecRef(answer);
    if (!outcome) {
        strip_traceback(call->known);
        return nullptr;
    }
    Py_DecRef(outcome);
    Py_IncRef(entry->kernel);
    return entry->kernel;
}
