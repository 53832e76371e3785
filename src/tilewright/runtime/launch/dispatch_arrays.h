// Arrays of NumPy and tensors: their address, what else of them decides the variant, their layout.
#pragma once

#include "dispatch_call.h"

enum { NPY_ARRAY_WRITEABLE = 0x400, READ_ONLY = 2 };

// A reach beyond all memory, which does not overflow when it is counted in bytes.
static const uint64_t UNKNOWN_REACH = 1ull << 60;

// PyArrayObject_fields of NumPy's C interface, without the head of the object.
typedef struct {
    uint64_t data;
    int32_t rank;
    const int64_t *shape;
    const int64_t *strides; // bytes
    PyObject *base;
    PyObject *descr;
    int32_t flags;
} NumpyArray;

// A tensor as DLPack describes it.
typedef struct {
    uint64_t data;
    uint32_t device;
    uint32_t ordinal;
    uint32_t rank;
    uint32_t dtype; // code, bits, lanes
    const int64_t *shape;
    const int64_t *strides; // elements; or null
    uint64_t offset;        // of the first element from `data`, in bytes
} DLTensor;

static const NumpyArray *numpy_array(PyObject *object) {
    return (const NumpyArray *)((const char *)object + object_bytes);
}

// Whether a type is in a list, which ends with null.
static bool is_listed(void *const *types, const PyObject *type) {
    for (; *types; types++)
        if (*types == type)
            return true;
    return false;
}

// Whether low bits of a number are 0, as far as its parameter lets that decide. mask: ALIGNED or
// HALF_ALIGNED
static bool has_divisibility(uint64_t number, uint64_t mask, uint64_t flags) {
    return (number & mask) == 0 && !(flags & DIVISIBILITY_OFF);
}

// Whether a number is a multiple of what its declaration says, if it says anything.
static bool is_declared_multiple(int64_t number, uint64_t flags) {
    int64_t multiple = flags >> MULTIPLE;
    return multiple == 0 || number % multiple == 0; // a division takes as long as all the rest
}

// The part of an array of NumPy that decides the variant, without its alignment: the address of its
// dtype, a multiple of 8, and whether it is read-only.
static uint64_t numpy_word(const NumpyArray *array) {
    return (uint64_t)array->descr + (array->flags & NPY_ARRAY_WRITEABLE ? 0 : READ_ONLY);
}

// Describe a plain tensor by a DLTensor; false, perhaps with an error set, if it is a view that
// negates, or has no memory.
static bool read_tensor(const KnownObjects *known, PyObject *object, DLTensor *tensor) {
    const char *implementation = *(const char **)((const char *)object + known->implementation_at);
    if (*(const uint64_t *)(implementation + known->keys_at) & known->negative_key)
        return false;
    int (*describe)(PyObject *, DLTensor *) = known->describe_tensor;
    return describe(object, tensor) == 0;
}

// The same part of a plain tensor: the dtype by DLPack from bit 3 on, the kind of its device from
// bit 40 on, its number from bit 46.
static uint64_t plain_tensor_word(const DLTensor *tensor) {
    return (uint64_t)tensor->dtype << 3 ^ (uint64_t)tensor->device << 40 ^
           (uint64_t)tensor->ordinal << 46;
}

// How many elements are from the first one of a tensor to the end of the last one; no stride is
// negative.
static uint64_t tensor_reach(const DLTensor *tensor) {
    if (!tensor->strides)
        return UNKNOWN_REACH;
    uint64_t reach = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0)
            return 0;
        reach += (tensor->shape[i] - 1) * tensor->strides[i];
    }
    return reach;
}

// The same part of a tensor by its methods: the address of its dtype, and 1 + its device from bit
// 48 on. False, perhaps with an error set, if it is a view that negates, or something failed.
static bool tensor_word(const KnownObjects *known, PyObject *object, uint64_t *word) {
    PyObject *negative = call_method(known->is_neg, object);
    if (!negative)
        return false;
    int negates = PyObject_IsTrue(negative);
    Py_DecRef(negative);
    if (negates != 0)
        return false;
    int64_t ordinal = -1; // of CPUs
    if (known->get_device) {
        PyObject *device = call_method(known->get_device, object);
        if (!device)
            return false;
        ordinal = PyLong_AsLongLong(device);
        Py_DecRef(device);
    }
    PyObject *dtype = PyObject_GetAttr(object, known->dtype);
    if (!dtype)
        return false;
    Py_DecRef(dtype); // dtypes live as long as the process
    *word = (uint64_t)dtype ^ (uint64_t)(ordinal + 1) << 48;
    return true;
}

// Pass an object of an unknown type to Python, which may add the type.
static void add_type(const KnownObjects *known, PyObject *object) {
    Py_DecRef(PyObject_Vectorcall(known->add_type, &object, 1, nullptr));
    PyErr_Clear();
}

// Read an array: its address, and the part of it that decides the variant. A tensor that is not
// plain gives the object `made`, which is its address. False, perhaps with an error set: for
// Python.
static bool read_array(Call *call, PyObject *object, uint64_t *address, uint64_t *word,
                       PyObject **made) {
    const KnownObjects *known = call->known;
    PyObject *type = type_of(object);
    if (type == known->ndarray) {
        const NumpyArray *array = numpy_array(object);
        *address = array->data;
        *word = numpy_word(array);
        return true;
    }
    if (!is_listed(known->tensors, type)) {
        add_type(known, object);
        return false;
    }
    if (is_listed(known->plain, type)) {
        DLTensor tensor;
        if (!read_tensor(known, object, &tensor))
            return false;
        *address = tensor.data + tensor.offset;
        *word = plain_tensor_word(&tensor);
        call->reaches[call->described] = tensor_reach(&tensor);
        return true;
    }
    if (!tensor_word(known, object, word) || !(*made = call_method(known->data_ptr, object)))
        return false;
    *address = PyLong_AsUnsignedLongLong(*made);
    return true;
}

// Describe an array in the next item; false: for Python, as are addresses that it has to look at:
// null, -1 (an error, perhaps) and misaligned ones.
static bool describe_array(Call *call, PyObject *object, uint64_t flags) {
    uint64_t at = call->described, address, word;
    PyObject *made = nullptr;
    if (read_array(call, object, &address, &word, &made)) {
        call->descriptors[at].value = word + has_divisibility(address, ALIGNED, flags);
        call->numbers[at] = address;
        if (address + 1 > 1 && is_declared_multiple(address, flags)) {
            call->values[at] = made;
            return true;
        }
        Py_DecRef(made);
    }
    PyErr_Clear();
    return false;
}

// Add an item of two words, which passes nothing; false: there are too many.
static bool add_words(Call *call, PyObject *object, uint64_t first, uint64_t second) {
    uint64_t at = call->described;
    if (!new_item(call, object, nullptr))
        return false;
    call->descriptors[at].type = (void *)first;
    call->descriptors[at].value = second;
    add_item(call);
    return true;
}

// Describe the layout of an array after its own item: an item with the rank as its type, then one
// with the size as its type and the stride as its value for each dimension. None has no such items;
// false for any other object.
static bool describe_layout(Call *call, PyObject *object) {
    const KnownObjects *known = call->known;
    const int64_t *shape, *strides;
    uint64_t rank;
    DLTensor tensor;
    if (type_of(object) == known->ndarray) {
        const NumpyArray *array = numpy_array(object);
        rank = array->rank, shape = array->shape, strides = array->strides;
    } else if (!is_listed(known->plain, type_of(object))) {
        return object == known->none;
    } else if (!read_tensor(known, object, &tensor)) {
        PyErr_Clear();
        return false;
    } else {
        rank = tensor.rank, shape = tensor.shape, strides = tensor.strides;
        if (!strides)
            return false;
    }
    if (!add_words(call, object, rank, 0))
        return false;
    for (uint64_t i = 0; i < rank; i++)
        if (!add_words(call, object, shape[i], strides[i]))
            return false;
    return true;
}
