// The state of the thread pool. Each time the program is loaded, it is a pool of its own.
//
// What different threads write is 128 bytes apart: two lines of 64, since processors fetch lines in
// pairs.
#pragma once

#include "atomics.h"
#include "posix_threads.h"
#include "thread_pool_structures.h"

// A compiled kernel; see thread_pool.py.
typedef int64_t Kernel(const void *args, int64_t begin, int64_t end, const int32_t *grid,
                       void *scratch, int32_t *poll);

// States of the ticker.
enum { NO_TICKER, TICKER_AWAKE, TICKER_ASLEEP };

// Why a launch is dropped.
enum { NOT_DROPPED, RAISED, WAITED_IN_VAIN };

// Values of `poll`. From WAITING_LOOP on: a program that was waiting for another one, in loop
// number poll - WAITING_LOOP, has returned.
enum { CONTINUE, RETURN, RETURN_FROM_WAITING, WAITING_LOOP };

static struct {
    // The job, which the caller writes before the tickets.
    alignas(LINES_BYTES) const KernelRecord *kernel;
    const void *args;
    int64_t total;  // programs
    int64_t chunk;  // programs in a chunk
    int64_t chunks; // in all
    int64_t range;  // chunks in a range
    int64_t ranges; // ranges that are not empty: at most as many as threads
    char *scratch;
    int64_t stride; // bytes of scratch of each thread
    int32_t grid[3];

    alignas(LINES_BYTES) int64_t launch; // number of the last launch
    alignas(LINES_BYTES) int64_t done;   // chunks

    alignas(LINES_BYTES) int32_t sleepers; // workers
    int32_t caller_sleeps;
    int32_t stopping;
    int32_t alive; // workers that have not left their loop
    int32_t started;
    int32_t threads; // the caller's included
    int32_t spin;    // pauses before a thread without work sleeps

    Mutex launching;    // held during a launch
    Mutex mutex;        // of the conditions
    Condition wake;     // workers sleep on it
    Condition finished; // the caller sleeps on it
    Condition tick;     // the ticker sleeps on it

    alignas(LINES_BYTES) int32_t poll; // kernels return after the current program
    int32_t dropped;                   // run no further programs
    int64_t waits;                     // whether programs may wait for each other
    int32_t limit;                     // looks of the ticker without progress; 0: any number
    int32_t stalled;                   // such looks so far
    int64_t returns;                   // of kernels before the end of their chunk
    int64_t progress;                  // at the last look of the ticker
    int32_t waited;                    // number of the loop in which a program has waited in vain

    alignas(LINES_BYTES) int32_t active; // whether a launch is running
    int32_t ticking;                     // state of the ticker
    int64_t watched;                     // number of launches that the ticker could have seen
    RaisedError raised;

    alignas(LINES_BYTES) Ticket tickets[MAX_THREADS]; // of the ranges
    alignas(LINES_BYTES) ThreadSlot slots[MAX_THREADS];
} pool;
