// The tensor maps of a launch, from tables; the handler `encode` makes those that are missing.
#pragma once

#include "launch_arguments.h"

// Write the words that determine a map; returns their hash, whose high bits depend on all of them.
static uint64_t gather_words(const MapTable *table, const uint64_t *slots, uint64_t *words) {
    const int64_t *numbers = table->slots;
    uint64_t hash = 0;
    for (int64_t i = 0; i < table->count; i++) {
        words[i] = slots[numbers[i]];
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15; // 2**64 divided by the golden ratio
    }
    return hash;
}

static bool are_equal(const uint64_t *some, const uint64_t *others, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (some[i] != others[i])
            return false;
    return true;
}

// Have the handler `encode` make the map of `words`; copy it to `map` and, with the words, to
// `entry`, in one step for other threads, which wait for the GIL.
static bool make_map(const LaunchRecord *record, int64_t number, const uint64_t *words,
                     MapEntry *entry, char *map) {
    PyObject *args[] = {PyLong_FromLongLong(number), PyLong_FromUnsignedLongLong((uint64_t)words)};
    PyObject *result = call_handler(record->encode, args, 2);
    if (!result)
        return false;
    const char *encoded = PyBytes_AsString(result);
    __builtin_memcpy(map, encoded, MAP_BYTES);
    __builtin_memcpy(entry->map, encoded, MAP_BYTES);
    Py_DecRef(result);
    __builtin_memcpy(entry->words, words, sizeof entry->words);
    entry->filled = true;
    return true;
}

// Copy map `number` of a kernel; false, with an error set, if there is none.
static bool copy_map(const LaunchRecord *record, int64_t number, const uint64_t *slots, char *map) {
    MapTable *table = (MapTable *)record->map_tables + number;
    uint64_t words[MAP_WORDS];
    MapEntry *first = (MapEntry *)table->entries + (gather_words(table, slots, words) >> MAP_SHIFT);
    for (MapEntry *entry = first; entry < first + MAP_PROBES; entry++) {
        if (!entry->filled)
            return make_map(record, number, words, entry, map);
        if (are_equal(entry->words, words, table->count)) {
            __builtin_memcpy(map, entry->map, MAP_BYTES);
            return true;
        }
    }
    uint64_t victim = (uint64_t)table->turn++ % MAP_PROBES; // in turn
    return make_map(record, number, words, first + victim, map);
}

// Copy each map of a kernel to `maps`, one after the other, and their addresses to `params`.
static bool pass_maps(const LaunchRecord *record, const uint64_t *slots, char *maps,
                      void **params) {
    for (int64_t i = 0; i < record->maps; i++) {
        params[i] = maps + i * MAP_BYTES;
        if (!copy_map(record, i, slots, params[i]))
            return false;
    }
    return true;
}
