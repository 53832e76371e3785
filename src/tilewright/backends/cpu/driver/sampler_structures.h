// Structures and constants that sampler.c shares with Python; written by
// scripts/compile_native.py from the classes of ctypes.
// clang-format off
#pragma once

#include <stdint.h>

// A buffer of samples. count: of all, also of those without room
typedef struct {
    uint64_t count;
    uint64_t capacity;
    void *counters;    // of 64 bits each
} SampleBuffer;
static_assert(sizeof(SampleBuffer) == 24);
