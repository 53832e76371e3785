// A tensor descriptor as several items, of which those that a kernel takes are passed.
//
//   itself        its padding and rank
//   base          as any array
//   extents       of the last one, how many powers of two up to 16 divide it
//   strides       the same of each; of the last one, its value
//   block shape   their values
//
// All fields are read at each launch, since they may be assigned. Python raises the error of what
// is out of range, and launches a descriptor whose base is no known array.
#pragma once

#include "dispatch_arrays.h"

// How a number of a descriptor decides the variant.
typedef enum { BY_NOTHING, EXTENT_BY_POWER, STRIDE_BY_POWER, BY_ITSELF } Role;

// 2**40 bytes, if elements have 16 at most.
enum { STRIDE_BITS = 36, NUMBER_BITS = 31, MAX_RANK = 5 };

// How many powers of two up to 16 divide a number.
static uint64_t lowest_zeros(uint64_t value) {
    uint64_t zeros = 0;
    while (zeros < 4 && !(value >> zeros & 1))
        zeros++;
    return zeros;
}

// Describe one number as an item; false: it is no int, or out of range.
static bool describe_number(Call *call, PyObject *object, Role role) {
    int overflow;
    if (type_of(object) != call->known->int_type)
        return false;
    uint64_t value = PyLong_AsLongLongAndOverflow(object, &overflow); // -1 on overflow
    if (value >> (role == STRIDE_BY_POWER ? STRIDE_BITS : NUMBER_BITS) != 0 ||
        !new_item(call, object, nullptr))
        return false;
    uint64_t at = call->described;
    uint64_t power = lowest_zeros(value);
    call->descriptors[at].value = role == BY_NOTHING ? 0 : role == BY_ITSELF ? value : power;
    call->numbers[at] = value;
    Py_IncRef(object);
    call->values[at] = object;
    add_item(call);
    return true;
}

// Describe the numbers `first` ... `end` - 1 of a sequence as items.
static bool describe_numbers(Call *call, PyObject *sequence, int64_t first, int64_t end,
                             Role role) {
    for (int64_t i = first; i < end; i++) {
        PyObject *object = PySequence_GetItem(sequence, i);
        if (!object)
            return false;
        bool fine = describe_number(call, object, role);
        Py_DecRef(object);
        if (!fine)
            return false;
    }
    return true;
}

// Describe the descriptor itself: the address of its padding, whose lowest bits are 0, with the
// rank. It passes the padding.
static bool describe_head(Call *call, PyObject *descriptor, PyObject *keyword, int64_t rank) {
    if (!new_item(call, descriptor, keyword))
        return false;
    PyObject *padding = PyObject_GetAttr(descriptor, call->known->padding);
    if (!padding)
        return false;
    call->descriptors[call->described].value = (uint64_t)padding | rank;
    call->values[call->described] = padding;
    add_item(call);
    return true;
}

// Describe the array of a descriptor.
static bool describe_base(Call *call, PyObject *descriptor) {
    PyObject *base = PyObject_GetAttr(descriptor, call->known->base);
    if (!base)
        return false;
    if (!new_item(call, base, nullptr) || !describe_array(call, base, 0)) {
        Py_DecRef(base);
        return false;
    }
    add_item(call);
    hold(call, base);
    return true;
}

// The common length of three sequences; 0, perhaps with an error set, if they have none from 1
// to 5.
static int64_t common_rank(PyObject *shape, PyObject *strides, PyObject *block) {
    if (!shape || !strides || !block)
        return 0;
    int64_t rank = PySequence_Size(shape);
    bool same = rank == PySequence_Size(strides) && rank == PySequence_Size(block);
    return same && rank >= 1 && rank <= MAX_RANK ? rank : 0;
}

// Describe a tensor descriptor that is an argument; false: for Python.
static bool describe_tensor_descriptor(Call *call, PyObject *descriptor, PyObject *keyword) {
    PyObject *shape = PyObject_GetAttr(descriptor, call->known->shape);
    PyObject *strides = PyObject_GetAttr(descriptor, call->known->strides);
    PyObject *block = PyObject_GetAttr(descriptor, call->known->block_shape);
    int64_t rank = common_rank(shape, strides, block), last = rank - 1;
    bool fine = rank != 0 && describe_head(call, descriptor, keyword, rank) &&
                describe_base(call, descriptor) &&
                describe_numbers(call, shape, 0, last, BY_NOTHING) &&
                describe_numbers(call, shape, last, rank, EXTENT_BY_POWER) &&
                describe_numbers(call, strides, 0, last, STRIDE_BY_POWER) &&
                describe_numbers(call, strides, last, rank, BY_ITSELF) &&
                describe_numbers(call, block, 0, rank, BY_ITSELF);
    Py_DecRef(shape);
    Py_DecRef(strides);
    Py_DecRef(block);
    if (!fine)
        PyErr_Clear();
    return fine;
}
