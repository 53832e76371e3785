// Descriptions of the arguments of a launch: the type of each, what else of it decides the variant,
// what is passed for it, and its number or address.
#pragma once

#include "dispatch_descriptors.h"

// Whether an integer is in the range of its declared type: 0 bits represent 64.
static bool is_in_declared_range(int64_t value, uint64_t flags) {
    uint64_t bits = flags >> RANGE & 63;
    if (bits == 0)
        return true;
    // a signed range moved to begin at 0, so that one shift compares both ends
    uint64_t bias = flags & SIGNED ? 1ull << (bits - 1) : 0;
    return ((uint64_t)value + bias) >> bits == 0;
}

// The class of an integer: 1 for the number 1; 2 for an i32, 5 for a wider one, each 1 more for
// every divisor of key_rules.py, and 8 more if it is negative.
static uint64_t integer_class(int64_t value, uint64_t flags) {
    static_assert(DIVISORS == 2, "one term for each divisor; classes of two types must differ");
    if (value == 1 && !(flags & UNSPECIALIZED))
        return 1;
    return (value == (int32_t)value ? 2 : 5) + has_divisibility(value, HALF_ALIGNED, flags) +
           has_divisibility(value, ALIGNED, flags) + (value < 0 ? 8 : 0);
}

// What is added to the class of an integer that is not between the bounds of its parameter.
enum { OUTSIDE = 16 };

static uint64_t outside_of_bounds(const Call *call, int64_t value, uint64_t flags) {
    if (!(flags & BOUNDED))
        return 0;
    const int64_t *bounds = call->record->bounds;
    uint64_t parameter = flags >> PARAMETER & (MAX_ARGUMENTS - 1);
    bool inside = bounds[2 * parameter] <= value && value < bounds[2 * parameter + 1];
    return inside ? 0 : OUTSIDE;
}

// Describe an int; false if it does not fit its declaration, or 64 bits.
static bool describe_integer(Call *call, PyObject *object, uint64_t flags) {
    uint64_t at = call->described;
    int overflow;
    int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0 || !is_in_declared_range(value, flags) || !is_declared_multiple(value, flags))
        return false;
    call->descriptors[at].value =
        flags & DECIDED_BY_VALUE
            ? (uint64_t)value
            : integer_class(value, flags) + outside_of_bounds(call, value, flags);
    call->numbers[at] = value;
    if (flags & FLOAT)
        call->values[at] = PyFloat_FromDouble((double)value);
    return true;
}

// Describe an object in the next item; false, having kept no reference: for Python.
static bool describe(Call *call, PyObject *object, uint64_t flags) {
    const KnownObjects *known = call->known;
    PyObject *type = type_of(object);
    uint64_t *value = &call->descriptors[call->described].value;
    if (type == known->int_type)
        return describe_integer(call, object, flags);
    if (type == known->float_type) {
        double number = PyFloat_AsDouble(object);
        if (flags & DECIDED_BY_VALUE)
            __builtin_memcpy(value, &number, sizeof number);
        return true;
    }
    if (flags & CONSTEXPR || type == known->bool_type || object == known->none) {
        *value = (uint64_t)object;
        return true;
    }
    return describe_array(call, object, flags);
}

// The flags of the parameter called `name`, which is probably the one at `likely`; CONSTEXPR if
// there is none: a launch option. Names are interned.
static uint64_t flags_of(const DispatchRecord *record, PyObject *name, uint64_t likely) {
    PyObject *const *names = record->names;
    const uint64_t *flags = record->flags;
    for (uint64_t i = likely; i < record->count; i++)
        if (names[i] == name)
            return flags[i];
    for (uint64_t i = 0; i < likely && i < record->count; i++)
        if (names[i] == name)
            return flags[i];
    return CONSTEXPR;
}

// Describe argument `i`, positional or by keyword; false: for Python.
static bool describe_argument(Call *call, uint64_t i) {
    const DispatchRecord *record = call->record;
    PyObject *object = call->args[i + 1], *keyword = nullptr;
    uint64_t positional = call->count - 1, flags;
    if (i < positional) {
        flags = ((const uint64_t *)record->flags)[i];
    } else {
        keyword = PyTuple_GetItem(call->keywords, i - positional);
        flags = flags_of(record, keyword, i);
    }
    if (type_of(object) == call->known->descriptor && !(flags & CONSTEXPR))
        return describe_tensor_descriptor(call, object, keyword);
    if (!new_item(call, object, keyword) || !describe(call, object, flags))
        return false;
    add_item(call);
    return !(flags & LAYOUT) || describe_layout(call, object);
}

// Describe all arguments; false, with what was made released, if one is for Python.
static bool describe_arguments(Call *call) {
    call->described = call->held = 0;
    for (uint64_t i = 0; i < call->total; i++) {
        if (!describe_argument(call, i)) {
            release_values(call);
            return false;
        }
    }
    return true;
}
