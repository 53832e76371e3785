// How an argument becomes the 64 bits of its slot.
//
// Functions that fill a slot return false, with an error set, if the launch must not be made.
//   index  of the argument among the kernel's
#pragma once

#include <stdbool.h>

#include "cpython.h"
#include "launch_structures.h"

enum { CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9 };

// Call a Python function with `count` (1 or more) arguments, and release them. Returns a new
// reference, or null with an error set.
static PyObject *call_handler(PyObject *handler, PyObject **args, int64_t count) {
    PyObject *result = PyObject_Vectorcall(handler, args, count, nullptr);
    for (int64_t i = 0; i < count; i++)
        Py_DecRef(args[i]);
    return result;
}

// Fill a slot by the handler `convert`.
static bool convert(const LaunchRecord *record, int64_t index, PyObject *object, uint64_t *slot) {
    PyErr_Clear();
    PyObject *args[] = {PyLong_FromLongLong(index), object};
    Py_IncRef(object);
    PyObject *result = call_handler(record->convert, args, 2);
    if (!result)
        return false;
    *slot = PyLong_AsUnsignedLongLong(result);
    Py_DecRef(result);
    return !PyErr_Occurred();
}

// Confirm a slot filled with -1, which may also be how a function of CPython reports an error: then
// `convert` fills it.
static bool confirm_minus_one(const LaunchRecord *record, int64_t index, PyObject *object,
                              uint64_t *slot) {
    return !PyErr_Occurred() || convert(record, index, object, slot);
}
