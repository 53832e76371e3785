// Structures and constants that library_launcher.c shares with Python; written by
// scripts/compile_native.py from the classes of ctypes.
// clang-format off
#pragma once

#include <stdint.h>

// A launch, for the threads that share it.
typedef struct {
    void *code;      // the kernel's function
    void *slots;     // its arguments, 8 bytes each
    int64_t total;   // programs
    int32_t grid[3];
    int32_t poll;    // 0: nobody interrupts it
} LibraryJob;
static_assert(sizeof(LibraryJob) == 40);
