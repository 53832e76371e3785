// The threads of the pool: they take chunks, run the kernel on them, spin, and sleep.
#pragma once

#include "thread_placement.h"
#include "thread_pool_signals.h"

// The processor's instruction for loops that wait; defined when the program is loaded.
extern void pause_once(void);

// Run programs of a kernel, recorded in the thread's slot for the report of a crash. Returns the
// next program: `end`, or less if `poll` was set.
static int64_t run(const KernelRecord *kernel, const void *args, int64_t begin, int64_t end,
                   int64_t slot, void *scratch) {
    ThreadSlot *record = &pool.slots[slot];
    VOLATILE(record->begin) = begin;
    VOLATILE(record->end) = end;
    VOLATILE(record->args) = (void *)args;
    VOLATILE(record->kernel) = (void *)kernel;
    Kernel *code = kernel->code;
    int64_t reached = code(args, begin, end, pool.grid, scratch, &pool.poll);
    VOLATILE(record->kernel) = nullptr;
    return reached;
}

// Run a chunk, unless the launch is dropped.
static void run_chunk(const KernelRecord *kernel, const void *args, int64_t begin, int64_t end,
                      int64_t slot, void *scratch) {
    while (load_relaxed(&pool.dropped) == NOT_DROPPED) {
        begin = run(kernel, args, begin, end, slot, scratch);
        if (begin >= end)
            return;
        add_relaxed(&pool.returns, 1);
        if (slot == 0) // only the caller may run Python's handlers
            run_signal_handlers();
    }
}

// Count a chunk as done; after the last one, wake the caller if it sleeps.
static bool count_chunk(int64_t chunks) {
    bool last = add_ordered(&pool.done, 1) + 1 == chunks;
    if (last && load_ordered(&pool.caller_sleeps)) {
        // locked once, so that a caller that is about to sleep does, and receives the signal
        pthread_mutex_lock(&pool.mutex);
        pthread_mutex_unlock(&pool.mutex);
        pthread_cond_signal(&pool.finished);
    }
    return last;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Take chunks of a range and run them, until none is left.
static void work_on(int64_t range, int64_t slot) {
    uint64_t *left = &pool.tickets[range].left;
    for (;;) {
        uint64_t ticket = load_acquire(left);
        int64_t remaining = ticket & UINT32_MAX;
        if (remaining == 0)
            return;
        const KernelRecord *kernel = load_acquire(&pool.kernel);
        const void *args = load_acquire(&pool.args);
        int64_t total = load_acquire(&pool.total);
        int64_t chunk = load_acquire(&pool.chunk);
        int64_t chunks = load_acquire(&pool.chunks);
        int64_t in_range = load_acquire(&pool.range);
        char *scratch = load_acquire(&pool.scratch);
        int64_t stride = load_acquire(&pool.stride);
        // An unchanged ticket proves that all of these belong to its launch.
        if (!replace_acq_rel(left, ticket, ticket - 1))
            continue;
        int64_t begin = (least((range + 1) * in_range, chunks) - remaining) * chunk;
        int64_t end = least(begin + chunk, total);
        run_chunk(kernel, args, begin, end, slot, scratch + slot * stride);
        if (count_chunk(chunks))
            return;
    }
}

// Take chunks until none is left, from the thread's own range first. slot: 0 for the caller.
static void work(int64_t slot) {
    uint64_t ranges = load_acquire(&pool.ranges);
    if (ranges == 0)
        return;
    uint64_t range = slot % ranges;
    for (uint64_t visited = 0; visited < ranges; visited++) {
        work_on(range, slot);
        range = range + 1 == ranges ? 0 : range + 1;
    }
}

// Record that the slot belongs to the calling thread.
static void own(int64_t slot) { VOLATILE(pool.slots[slot].thread) = pthread_self(); }

// Pause; each 64th pause (about 2 us) yields to other threads of this CPU: where threads outnumber
// free CPUs, the awaited one may be among them.
static void spin_once(int32_t n) {
    pause_once();
    if ((n & 63) == 63)
        sched_yield();
}

// Spin, then sleep, until the launch number is not `seen`.
static void wait_for_launch(int64_t seen) {
    int32_t pauses = pool.spin;
    for (int32_t n = 0; n < pauses; n++) {
        if (load_acquire(&pool.launch) != seen)
            return;
        spin_once(n);
    }
    pthread_mutex_lock(&pool.mutex);
    add_ordered(&pool.sleepers, 1);
    while (load_ordered(&pool.launch) == seen)
        pthread_cond_wait(&pool.wake, &pool.mutex);
    add_ordered(&pool.sleepers, -1);
    pthread_mutex_unlock(&pool.mutex);
}

// The function of a worker.
static void *worker(void *argument) {
    int64_t slot = (int64_t)argument;
    own(slot);
    for (;;) {
        // Whoever raises the launch number has written the tickets, or `stopping`, before.
        int64_t seen = load_ordered(&pool.launch);
        if (load_ordered(&pool.stopping))
            break;
        set_cpu(slot, sched_getcpu());
        work(slot);
        wait_for_launch(seen);
    }
    set_cpu(slot, -1);
    add_ordered(&pool.alive, -1);
    return nullptr;
}

// Start the workers: fewer if the system refuses some.
static void start_workers(void) {
    pool.started = true;
    for (int64_t slot = 1; slot < pool.threads; slot++) {
        add_ordered(&pool.alive, 1);
        if (start_thread(worker, (void *)slot) != 0) {
            add_ordered(&pool.alive, -1);
            return;
        }
    }
}
