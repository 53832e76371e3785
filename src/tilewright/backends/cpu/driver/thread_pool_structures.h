// Structures and constants that thread_pool.c shares with Python; written by
// scripts/compile_native.py from the classes of ctypes.
// clang-format off
#pragma once

#include <stdint.h>

enum {
    LINES_BYTES = 128,
    MAX_THREADS = 1024,
    CHUNKS_PER_THREAD = 8,
    LATEST_KERNELS = 4,
    STATUS_DONE = 0,
    STATUS_NO_MEMORY = 1,
    STATUS_RAISED = 2,
    STATUS_NESTED = 3,
    STATUS_WAITED = 4,
};

// A loaded kernel; it, and the memory it points to, must live as long as the kernel may run.
typedef struct {
    void *code;        // its function
    const char *title; // "the kernel 'add' (program.py:12)"
    int64_t count;     // of parameters
    void *names;
    const char *kinds; // a byte for each: struct's codes; P or Q for a pointer
    int64_t alone;     // programs of the largest grid that the caller runs alone
    int64_t waits;     // whether programs may wait for each other
} KernelRecord;
static_assert(sizeof(KernelRecord) == 56);

// The data that all launches of a kernel by machine code share.
typedef struct {
    void *kernel;     // KernelRecord
    int64_t scratch;  // bytes for each thread
    uint64_t console; // the word after those of the arguments
    int64_t count;    // of the arguments
} LaunchRecord;
static_assert(sizeof(LaunchRecord) == 32);

// The chunks of a range that are not taken yet.
typedef struct {
    uint64_t left;
    char padding[120];
} Ticket;
static_assert(sizeof(Ticket) == 128);

// The work of a thread; `kernel` is null while it runs none.
typedef struct {
    uint64_t thread;  // pthread_self()
    void *kernel;     // KernelRecord
    void *args;
    int64_t begin;    // programs
    int64_t end;
    char padding[88];
} ThreadSlot;
static_assert(sizeof(ThreadSlot) == 128);

// The exception that the handler of a signal has raised, as PyErr_Fetch gives it.
typedef struct {
    void *type;
    void *value;
    void *traceback;
} RaisedError;
static_assert(sizeof(RaisedError) == 24);

// The kernels that were launched last, by all pools of the process.
typedef struct {
    uint64_t count;    // of launches that differ from the one before
    void *titles[4];   // of the kernel with number n at n % kept
    uint64_t reported; // whether a report has named them
} LatestKernels;
static_assert(sizeof(LatestKernels) == 48);
