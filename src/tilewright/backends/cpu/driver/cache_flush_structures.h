// Structures and constants that cache_flush.c shares with Python; written by
// scripts/compile_native.py from the classes of ctypes.
// clang-format off
#pragma once

#include <stdint.h>

enum {
    LINE_BYTES = 64,
};

// The memory that one program of the grid flushes.
typedef struct {
    uint64_t first; // address
    uint64_t end;   // the address after the last byte
} MemoryBlock;
static_assert(sizeof(MemoryBlock) == 16);
