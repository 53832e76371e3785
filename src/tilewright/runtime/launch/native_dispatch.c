// The entry of native dispatch: describes the arguments of a launch, finds the cache entry that has
// the same descriptors, and runs it.

#include "dispatch_arguments.h"
#include "dispatch_launch.h"

// Begin a call; false if it has too many arguments to describe.
static bool begin_call(Call *call, PyObject *self, PyObject *const *args, uint64_t count,
                       PyObject *keywords) {
    call->record = PyLong_AsVoidPtr(self);
    call->known = call->record->known;
    call->args = args;
    call->count = count;
    call->keywords = keywords;
    call->total = count - 1 + (keywords ? PyTuple_Size(keywords) : 0);
    return count - 1 <= call->record->count && call->total <= MAX_ARGUMENTS;
}

// The cache entry of a call, searched from `slot` on; null if there is none.
static CacheEntry *find_entry(const Call *call, uint64_t slot) {
    CacheEntry *const *table = call->record->table;
    uint64_t size = descriptor_words(call);
    for (uint64_t i = slot; i < slot + PROBES && table[i]; i++)
        if (table[i]->size == size &&
            memcmp(table[i]->descriptors, call->descriptors, size * 8) == 0)
            return table[i];
    return nullptr;
}

// Launch without an entry: by the record's `add_entry`, or by Python without adding one.
static PyObject *launch_new(Call *call, uint64_t slot) {
    PyObject *add_entry = call->record->add_entry;
    if (!add_entry)
        return launch_by_python(call);
    // the descriptors and, after them, the slot of the table
    uint64_t size = descriptor_words(call);
    __builtin_memcpy((uint64_t *)call->descriptors + size, &slot, sizeof slot);
    PyObject *bytes = PyBytes_FromStringAndSize(call->descriptors, (size + 1) * 8);
    call->passed[0] = bytes;
    copy_arguments(call, call->passed + 1);
    PyObject *result =
        PyObject_Vectorcall(add_entry, call->passed, call->count + 1, call->keywords);
    Py_DecRef(bytes);
    return result;
}

// Launch by an entry that stays, if it still decides the launch.
static PyObject *launch_held_entry(Call *call, const CacheEntry *entry) {
    if (!is_nothing_assigned(call->record) || !is_context_current(entry))
        return launch_by_python(call);
    if (!are_globals_unchanged(entry))
        return launch_new(call, entry->slot);
    return launch_valid_entry(call, entry);
}

// Launch by an entry, which another thread may drop during the launch.
static PyObject *launch_entry(Call *call, CacheEntry *entry) {
    PyObject *owner = entry->owner;
    Py_IncRef(owner);
    entry->stamp = ++*(uint64_t *)call->record->clock;
    PyObject *result = launch_held_entry(call, entry);
    Py_DecRef(owner);
    return result;
}

// dispatch(grid, *arguments, **named), called by CPython (METH_FASTCALL | METH_KEYWORDS).
//   self      Python int: address of a DispatchRecord
//   args      the grid, positional arguments, keyword arguments
//   count     of the grid and the positional ones
//   keywords  tuple of the keywords, or null
// Returns the kernel, or null with an error set.
PyObject *tw_dispatch(PyObject *self, PyObject *const *args, int64_t count, PyObject *keywords) {
    Call call;
    if (!begin_call(&call, self, args, count, keywords) || !describe_arguments(&call))
        return launch_by_python(&call);
    uint64_t slot = hash_descriptors(&call) >> SLOT_SHIFT;
    CacheEntry *entry = find_entry(&call, slot);
    PyObject *result = entry ? launch_entry(&call, entry) : launch_new(&call, slot);
    release_values(&call);
    return result;
}
