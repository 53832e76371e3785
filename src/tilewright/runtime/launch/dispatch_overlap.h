// Whether arguments overlap that must not. An entry has an OverlapPair for each two of them. Where
// they may overlap, Python launches, which looks closely, and warns once (`overlap_warning`).
//
//   two addresses differ by at least the extent of the lower array                        no
//   they are equal, and all sums of the pair are 0 in this launch                         no
//   addresses, integers and grid are those of the entry's latest launch by Python, which
//   has found no overlap since                                                            no
//   else                                                                                  perhaps
//
// A launch like the latest one touches the same memory, whatever the arrays say of their lengths.
#pragma once

#include "dispatch_arrays.h"

static const uint64_t UNKNOWN_EXTENT = UINT64_MAX;

// Bytes from the first element of an array of NumPy to the end of its last one; unknown if a stride
// is negative.
static uint64_t numpy_extent(const NumpyArray *array, uint64_t element_bytes) {
    uint64_t total = element_bytes;
    for (int32_t i = 0; i < array->rank; i++) {
        if (array->shape[i] == 0)
            return 0;
        if (array->strides[i] < 0)
            return UNKNOWN_EXTENT;
        total += (array->shape[i] - 1) * array->strides[i];
    }
    return total;
}

// The same by `numel()`, the extent of a contiguous tensor: Python has checked the entry's first.
static uint64_t tensor_extent(const KnownObjects *known, PyObject *tensor, uint64_t element_bytes) {
    PyObject *count = call_method(known->numel, tensor);
    if (!count) {
        PyErr_Clear();
        return UNKNOWN_EXTENT;
    }
    uint64_t elements = PyLong_AsLongLong(count);
    Py_DecRef(count);
    return elements * element_bytes;
}

// The same of the array that an item describes.
static uint64_t extent(const Call *call, uint64_t item, uint64_t element_bytes) {
    PyObject *array = call->objects[item];
    PyObject *type = type_of(array);
    if (type == call->known->ndarray)
        return numpy_extent(numpy_array(array), element_bytes);
    if (is_listed(call->known->plain, type))
        return call->reaches[item] * element_bytes;
    return tensor_extent(call->known, array, element_bytes);
}

// Whether an array may have elements below its address: one of NumPy, by a negative stride.
static bool may_reach_down(const Call *call, uint64_t item) {
    PyObject *array = call->objects[item];
    return type_of(array) == call->known->ndarray &&
           numpy_extent(numpy_array(array), 1) == UNKNOWN_EXTENT;
}

// Whether sums are all 0. words: of each sum, one after the other; see OverlapPair.
static bool are_sums_zero(uint64_t count, const uint64_t *words, const uint64_t *numbers) {
    for (uint64_t sum = 0; sum < count; sum++) {
        uint64_t total = 0;
        for (uint64_t terms = *words++; terms != 0; terms--) {
            uint64_t product = *words++;
            for (uint64_t items = *words++; items != 0; items--)
                product *= numbers[*words++];
            total += product;
        }
        if (total != 0)
            return false;
    }
    return true;
}

// Whether the arguments of a pair may overlap in this launch.
static bool pair_may_overlap(const Call *call, const OverlapPair *pair) {
    uint64_t a = call->numbers[pair->first], b = call->numbers[pair->second];
    if (a == b)
        return pair->sums == 0 || !are_sums_zero(pair->sums, pair->sum_words, call->numbers);
    if (a < b)
        return b - a < extent(call, pair->first, pair->first_bytes) ||
               may_reach_down(call, pair->second);
    return a - b < extent(call, pair->second, pair->second_bytes) ||
           may_reach_down(call, pair->first);
}

// Store a word; the bits in which it differs from the one before.
static uint64_t exchange_word(uint64_t *place, uint64_t word) {
    uint64_t before = *place;
    *place = word;
    return before ^ word;
}

// Record a launch as the entry's latest; whether it differs from the one before. `latest` holds the
// grid, the state of the watch, and the number or address of each item.
static bool record_launch(const Call *call, const CacheEntry *entry, uint64_t state) {
    uint64_t *latest = entry->latest;
    uint64_t changed = exchange_word(latest + 3, state);
    for (int i = 0; i < 3; i++)
        changed |= exchange_word(latest + i, call->grid[i]);
    for (uint64_t i = 0; i < call->described; i++)
        changed |= exchange_word(latest + 4 + i, call->numbers[i]);
    return changed != 0;
}

// Whether arguments of a launch may overlap.
static bool may_overlap(const Call *call, const CacheEntry *entry) {
    uint64_t state = *(const uint64_t *)call->record->watching;
    if (state == 0)
        return false;
    const OverlapPair *pairs = entry->pair_list;
    for (uint64_t i = 0; i < entry->pairs; i++)
        if (pair_may_overlap(call, pairs + i))
            return record_launch(call, entry, state);
    return false;
}
