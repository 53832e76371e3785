// Pointer arguments: their address, and whether the kernel may use it.
#pragma once

#include "launch_arguments.h"

// Release the result of a handler; false if the handler has raised.
static bool has_returned(PyObject *result) {
    if (!result)
        return false;
    Py_DecRef(result);
    return true;
}

// Query the driver about an address: store its page in `entry` if it belongs to the record's
// device, else call the handler `refuse`.
static bool query_address(const LaunchRecord *record, int64_t index, uint64_t address,
                          uint64_t *entry) {
    int32_t ordinal;
    int32_t (*attribute)(void *, int32_t, uint64_t) = record->pointer_attribute;
    if (attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == 0 &&
        ordinal == record->device) {
        *entry = address >> PAGE_BITS;
        return true;
    }
    PyObject *args[] = {PyLong_FromLongLong(index), PyLong_FromUnsignedLongLong(address)};
    return has_returned(call_handler(record->refuse, args, 2));
}

// Whether the kernel may use an address. The device's table has the pages that the driver has
// confirmed.
static bool is_usable(const LaunchRecord *record, int64_t index, uint64_t address) {
    uint64_t page = address >> PAGE_BITS;
    // mixed, since arrays that are a power of two apart must not share an entry
    uint64_t *entry = (uint64_t *)record->pages + ((page ^ page >> 9) & PAGE_MASK);
    return *entry == page || query_address(record, index, address, entry);
}

// Fill a slot with the address of an int, of None (null), or of an object with a method `data_ptr`.
static bool fill_pointer(const LaunchRecord *record, int64_t index, PyObject *const *argument,
                         uint64_t *slot) {
    PyObject *object = *argument;
    if (type_of(object) == record->int_type) {
        *slot = PyLong_AsUnsignedLongLong(object);
    } else if (object == record->none) {
        *slot = 0;
        return true;
    } else {
        PyObject *result = PyObject_VectorcallMethod(record->data_ptr, argument, 1, nullptr);
        if (!result)
            return convert(record, index, object, slot);
        *slot = PyLong_AsUnsignedLongLong(result);
        Py_DecRef(result);
    }
    if (*slot == 0)
        return true;
    if (*slot == UINT64_MAX) // perhaps an error
        return convert(record, index, object, slot);
    return is_usable(record, index, *slot);
}
