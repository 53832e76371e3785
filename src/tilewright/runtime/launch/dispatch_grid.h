// The grid of a launch: three Python ints, given as a tuple, as one int, or by a callable.
#pragma once

#include "dispatch_call.h"

// Whether an object is an int that can be an extent: 0 to 2**31 - 1.
static bool is_extent(const KnownObjects *known, PyObject *object) {
    int overflow;
    return type_of(object) == known->int_type &&
           (uint64_t)PyLong_AsLongLongAndOverflow(object, &overflow) <= INT32_MAX; // -1 on overflow
}

// Write the three extents of a tuple of 1 to 3 ints, or of an int, to `passed` as borrowed
// references; false: the grid is neither.
static bool extents(Call *call, PyObject *grid) {
    const KnownObjects *known = call->known;
    PyObject **passed = call->passed;
    passed[1] = passed[2] = known->one;
    if (type_of(grid) != known->tuple_type) {
        passed[0] = grid;
        return is_extent(known, grid);
    }
    int64_t count = PyTuple_Size(grid);
    if (count < 1 || count > 3)
        return false;
    for (int64_t i = 0; i < count; i++) {
        passed[i] = PyTuple_GetItem(grid, i);
        if (!is_extent(known, passed[i]))
            return false;
    }
    return true;
}

// The result of a callable grid for a dict of all arguments by name; null: it has raised.
static PyObject *call_grid(const Call *call, const CacheEntry *entry, PyObject *grid) {
    PyObject *named = PyDict_Copy(entry->defaults);
    PyObject *const *names = entry->names;
    for (uint64_t i = 0; i < call->total; i++)
        PyDict_SetItem(named, names[i], call->args[i + 1]);
    PyObject *result = PyObject_Vectorcall(grid, &named, 1, nullptr);
    Py_DecRef(named);
    return result;
}
