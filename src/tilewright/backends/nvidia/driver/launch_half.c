// Arguments that are 16-bit floats. Rounding them calls further functions, and few kernels have
// such parameters: so this is a program of its own, called by address (Parameter.fill_half).

#include "launch_arguments.h"

// Fill a slot with the bits of `value` as it is rounded.
static bool fill_bits(const LaunchRecord *record, int64_t index, PyObject *object, uint64_t *slot,
                      double value, const void *rounded) {
    uint16_t bits;
    __builtin_memcpy(&bits, rounded, sizeof bits);
    *slot = bits;
    return value != -1.0 || confirm_minus_one(record, index, object, slot);
}

bool tw_fill_f16(const LaunchRecord *record, int64_t index, PyObject *object, uint64_t *slot) {
    double value = PyFloat_AsDouble(object);
    _Float16 rounded = (_Float16)value;
    return fill_bits(record, index, object, slot, value, &rounded);
}

bool tw_fill_bf16(const LaunchRecord *record, int64_t index, PyObject *object, uint64_t *slot) {
    double value = PyFloat_AsDouble(object);
    __bf16 rounded = (__bf16)value;
    return fill_bits(record, index, object, slot, value, &rounded);
}
