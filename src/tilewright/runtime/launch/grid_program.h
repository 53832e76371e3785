// Programs of grid functions: a function such as
//
//   lambda meta: (cdiv(n, meta["BLOCK"]),)
//
// as steps on integers in postfix order. `grid_programs.py` translates its bytecode. Wherever
// Python might compute anything else, the function itself is called: a name has another object than
// when it was translated, a value is no int, an operation overflows or divides by zero.
#pragma once

#include "dispatch_call.h"

// An object as an integer; false if it is null or no int of 64 bits.
static bool read_integer(const Call *call, PyObject *object, int64_t *value) {
    int overflow;
    if (!object || type_of(object) != call->known->int_type)
        return false;
    *value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0;
}

// Argument of a launch by name, given or by default; null if there is none. Borrowed.
static PyObject *argument_named(const Call *call, const CacheEntry *entry, PyObject *name) {
    PyObject *const *names = entry->names;
    for (uint64_t i = 0; i < call->total; i++)
        if (names[i] == name)
            return call->args[i + 1];
    return PyDict_GetItemWithError(entry->defaults, name);
}

// Content of a variable of the enclosing function; null if it has none. Borrowed: the cell keeps
// it while no Python code runs.
static PyObject *content_of_cell(PyObject *function, uint64_t index) {
    PyObject *content = PyCell_Get(PyTuple_GetItem(PyFunction_GetClosure(function), index));
    if (content)
        Py_DecRef(content);
    return content;
}

// Object that a name or attribute has now; null if there is none. Borrowed.
static PyObject *object_now(const GridCheck *check, PyObject *function) {
    switch (check->kind) {
    case GRID_IN_DICT:
        return PyDict_GetItemWithError(check->holder, check->name);
    case GRID_IN_CELL:
        return content_of_cell(function, (uint64_t)check->name);
    default:
        return PyFunction_GetCode(check->holder);
    }
}

static bool are_checks_met(const GridProgram *program, PyObject *function) {
    const GridCheck *checks = program->check_list;
    for (uint64_t i = 0; i < program->checks; i++)
        if (object_now(checks + i, function) != checks[i].value)
            return false;
    return true;
}

// a // b and a % b, as Python rounds them; false for those that C does not define.
static bool divide(int64_t a, int64_t b, int64_t *quotient, int64_t *remainder) {
    if (b == 0 || b == -1)
        return false;
    bool is_below = a % b != 0 && (a < 0) != (b < 0);
    *quotient = a / b - is_below;
    *remainder = a % b + (is_below ? b : 0);
    return true;
}

// The result of an operation of two operands in `result`; false: it is not computed here.
static bool combine(uint64_t operation, int64_t a, int64_t b, int64_t *result) {
    int64_t other;
    switch (operation) {
    case GRID_ADD:
        return !__builtin_add_overflow(a, b, result);
    case GRID_SUBTRACT:
        return !__builtin_sub_overflow(a, b, result);
    case GRID_MULTIPLY:
        return !__builtin_mul_overflow(a, b, result);
    case GRID_DIVIDE:
        return divide(a, b, result, &other);
    case GRID_REMAINDER:
        return divide(a, b, &other, result);
    case GRID_CDIV: // (a + b - 1) // b
        return !__builtin_add_overflow(a, b, &a) && !__builtin_sub_overflow(a, 1, &a) &&
               divide(a, b, result, &other);
    case GRID_MIN:
        *result = a < b ? a : b;
        return true;
    default:
        *result = a > b ? a : b;
        return true;
    }
}

// The smallest power of two that is not below a number, in its place; 0 for those below 1. False if
// it has 64 bits.
static bool round_up(int64_t *number) {
    if (*number > INT64_MAX / 2 + 1)
        return false;
    uint64_t bits = *number - 1; // all bits below the highest one become 1
    for (int shift = 1; shift < 64; shift *= 2)
        bits |= bits >> shift;
    *number = *number < 1 ? 0 : bits + 1;
    return true;
}

// Run a program, whose results are then on the stack; false: call the function.
static bool run_program(const Call *call, const CacheEntry *entry, PyObject *function,
                        const GridProgram *program, int64_t *stack) {
    const GridStep *steps = program->step_list;
    int64_t *top = stack - 1; // of the numbers so far
    if (PyFunction_GetGlobals(function) != program->globals || !are_checks_met(program, function))
        return false;
    for (uint64_t i = 0; i < program->steps; i++) {
        const GridStep *step = steps + i;
        bool is_done;
        switch (step->operation) {
        case GRID_NUMBER:
            *++top = (int64_t)step->name;
            is_done = true;
            break;
        case GRID_ARGUMENT:
            is_done = read_integer(call, argument_named(call, entry, step->name), ++top);
            break;
        case GRID_CELL:
            is_done = read_integer(call, content_of_cell(function, (uint64_t)step->name), ++top);
            break;
        case GRID_GLOBAL:
            is_done = read_integer(call, PyDict_GetItemWithError(step->holder, step->name), ++top);
            break;
        case GRID_POWER_OF_TWO:
            is_done = round_up(top);
            break;
        default:
            top--;
            is_done = combine(step->operation, top[0], top[1], top);
        }
        if (!is_done)
            return false;
    }
    return true;
}
