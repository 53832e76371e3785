// The grid of a launch: three Python ints, given as a tuple, as one int, or by a callable.
#pragma once

#include "grid_program.h"

// Whether an object is an int that can be an extent: 0 to 2**31 - 1, which `extent` becomes.
static bool read_extent(const KnownObjects *known, PyObject *object, int32_t *extent) {
    int overflow;
    if (type_of(object) != known->int_type)
        return false;
    int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow); // -1 on overflow
    *extent = value;
    return (uint64_t)value <= INT32_MAX;
}

// Set the grid of a call to a tuple of 1 to 3 ints, or to an int; false: it is neither.
static bool read_grid(Call *call, PyObject *grid) {
    const KnownObjects *known = call->known;
    call->grid[1] = call->grid[2] = 1;
    if (type_of(grid) != known->tuple_type)
        return read_extent(known, grid, call->grid);
    int64_t count = PyTuple_Size(grid);
    if (count < 1 || count > 3)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (!read_extent(known, PyTuple_GetItem(grid, i), call->grid + i))
            return false;
    return true;
}

// The program of a grid function; null if it has none.
static const GridProgram *program_of(const Call *call, PyObject *grid) {
    const DispatchRecord *record = call->record;
    if (type_of(grid) != call->known->function_type)
        return nullptr;
    PyObject *code = PyFunction_GetCode(grid);
    for (GridProgram *const *programs = record->grids; *programs; programs++)
        if ((*programs)->code == code)
            return *programs;
    if (record->add_grid) {
        PyObject *added = PyObject_Vectorcall(record->add_grid, &grid, 1, nullptr);
        Py_DecRef(added);
        PyErr_Clear();
    }
    return nullptr; // this time
}

// Set the grid of a call to the result of a grid function's program; false: call the function.
static bool run_grid(Call *call, const CacheEntry *entry, PyObject *grid) {
    const GridProgram *program = program_of(call, grid);
    int64_t stack[GRID_STACK];
    if (!program || program->extents == 0 || !run_program(call, entry, grid, program, stack))
        return false;
    call->grid[1] = call->grid[2] = 1;
    for (uint64_t i = 0; i < program->extents; i++) {
        if ((uint64_t)stack[i] > INT32_MAX)
            return false;
        call->grid[i] = stack[i];
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
