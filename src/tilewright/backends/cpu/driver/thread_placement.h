// Keeps the threads of a launch on different CPUs.
//
// Linux may wake a thread on the CPU of the thread that wakes it although others are idle, and
// leave both there for milliseconds: a whole launch, at the speed of one thread. So each worker
// records its CPU, and before the caller wakes anyone it checks whether two threads were on one
// CPU. If so, the second may use only those of the caller's CPUs on which there was no thread. It
// keeps this set, so that it finds its data in the caches again, until it shares a CPU again. Where
// there are more threads than CPUs that the caller may use, the system decides.
//
// On other systems every CPU is unknown (-1), and nothing is moved.
#pragma once

#include "thread_pool_state.h"

enum { CPUS = 1024, WORDS = CPUS / 64 };

// cpu_set_t
typedef struct {
    uint64_t words[WORDS];
} CpuSet;

alignas(LINES_BYTES) static int32_t worker_cpus[MAX_THREADS]; // -1: unknown

static void forget_all_cpus(void) { __builtin_memset(worker_cpus, -1, sizeof worker_cpus); }

// The caller reads it at each launch: written only when it changes.
static void set_cpu(int64_t slot, int32_t cpu) {
    if (load_relaxed(&worker_cpus[slot]) != cpu)
        store_release(&worker_cpus[slot], cpu);
}

// The CPU of the caller now, or of a worker when it last recorded it.
static int32_t cpu_of(int64_t slot) {
    return slot == 0 ? sched_getcpu() : load_acquire(&worker_cpus[slot]);
}

// Add a CPU to a set; whether it was in it. An unknown one is in none.
static bool add_cpu(CpuSet *set, uint32_t cpu) {
    if (cpu >= CPUS)
        return false;
    uint64_t old = set->words[cpu / 64];
    set->words[cpu / 64] = old | 1ull << cpu % 64;
    return set->words[cpu / 64] == old;
}

// The CPUs that the caller may use without those in `taken`; returns how many it may use, 0 where
// the system does not say.
static int64_t free_cpus(CpuSet *free, const CpuSet *taken) {
    if (pthread_getaffinity_np(pthread_self(), sizeof *free, free) != 0)
        return 0;
    int64_t count = 0;
    for (int i = 0; i < WORDS; i++) {
        count += __builtin_popcountll(free->words[i]);
        free->words[i] &= ~taken->words[i];
    }
    return count;
}

// Move workers that were on the CPU of another thread. taken: the CPUs of all threads.
static void separate_threads(int64_t threads, const CpuSet *taken) {
    CpuSet free, seen = {0};
    if (free_cpus(&free, taken) < threads)
        return;
    for (int64_t slot = 0; slot < threads; slot++) {
        if (add_cpu(&seen, cpu_of(slot))) {
            set_cpu(slot, -1);
            pthread_setaffinity_np(pool.slots[slot].thread, sizeof free, &free);
        }
    }
}

// Before workers are woken: separate threads that were on the same CPU.
static void spread_threads(int64_t threads) {
    CpuSet taken = {0};
    bool shared = false;
    for (int64_t slot = 0; slot < threads; slot++)
        shared |= add_cpu(&taken, cpu_of(slot));
    if (shared)
        separate_threads(threads, &taken);
}
