// The thread pool: the launch of a grid, and what Python calls. thread_pool_program.py explains the
// protocol between threads.

#include "crash_reports.h"
#include "thread_pool_workers.h"

// Make each thread's scratch area at least `bytes` large; false without memory for it. No launch is
// running, so no thread uses the old areas. A page is first touched by the thread that owns it.
static bool reserve(uint64_t bytes) {
    if (bytes <= (uint64_t)pool.stride)
        return true;
    if (bytes > 1ull << 40) // beyond 1 TiB the sums below could overflow
        return false;
    free(pool.scratch);
    store_relaxed(&pool.scratch, nullptr);
    store_relaxed(&pool.stride, 0);
    uint64_t stride = (bytes + 0xffff) & ~0xffffull;
    void *scratch;
    if (posix_memalign(&scratch, 4096, stride * pool.threads) != 0)
        return false;
    store_relaxed(&pool.scratch, scratch);
    store_relaxed(&pool.stride, stride);
    return true;
}

// Run all programs on the caller's thread.
static void run_alone(const KernelRecord *kernel, const void *args, int64_t total) {
    int64_t reached = 0;
    do {
        reached = run(kernel, args, reached, total, 0, pool.scratch);
        if (reached >= total)
            return;
        add_relaxed(&pool.returns, 1);
        run_signal_handlers();
    } while (load_relaxed(&pool.dropped) == NOT_DROPPED);
}

// Publish all chunks under a new launch number.
static void write_tickets(uint64_t chunks, uint64_t range) {
    uint64_t launch = load_relaxed(&pool.launch) + 1;
    Ticket *ticket = pool.tickets;
    for (uint64_t left = chunks; left != 0;) {
        uint64_t count = left < range ? left : range;
        store_release(&ticket->left, launch << 32 | count);
        left -= count;
        ticket++;
    }
    store_ordered(&pool.launch, launch);
}

// Wake as many workers as there are chunks besides the caller's first.
static void wake_sleepers(int64_t chunks) {
    uint32_t sleepers = load_ordered(&pool.sleepers);
    if (sleepers == 0)
        return;
    pthread_mutex_lock(&pool.mutex);
    pthread_mutex_unlock(&pool.mutex);
    if (chunks - 1 >= sleepers) {
        pthread_cond_broadcast(&pool.wake);
        return;
    }
    for (int64_t i = 1; i < chunks; i++)
        pthread_cond_signal(&pool.wake);
}

// Spin, then sleep, until every chunk is done.
static void wait_until_done(int64_t chunks) {
    int32_t pauses = pool.spin;
    for (int32_t n = 0; n < pauses; n++) {
        if (load_acquire(&pool.done) == chunks)
            return;
        spin_once(n);
    }
    pthread_mutex_lock(&pool.mutex);
    store_ordered(&pool.caller_sleeps, true);
    while (load_ordered(&pool.done) != chunks) {
        if (load_ordered(&pool.poll) == RETURN && load_relaxed(&pool.dropped) == NOT_DROPPED) {
            // not under the mutex: handlers may launch kernels of another pool
            pthread_mutex_unlock(&pool.mutex);
            run_signal_handlers();
            pthread_mutex_lock(&pool.mutex);
        } else {
            pthread_cond_wait(&pool.finished, &pool.mutex);
        }
    }
    store_ordered(&pool.caller_sleeps, false);
    pthread_mutex_unlock(&pool.mutex);
}

static uint64_t divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// Run all programs on all threads: write the job and its tickets, work, wait for the others.
static void run_parallel(const KernelRecord *kernel, const void *args, uint64_t total) {
    if (!pool.started)
        start_workers();
    uint64_t threads = pool.threads;
    uint64_t even = total / (threads * CHUNKS_PER_THREAD);
    uint64_t chunk = even ? even : 1;
    uint64_t chunks = divide_up(total, chunk);
    uint64_t range = divide_up(chunks, threads);
    // unordered: the tickets, released after them, publish them
    store_relaxed(&pool.kernel, kernel);
    store_relaxed(&pool.args, args);
    store_relaxed(&pool.total, total);
    store_relaxed(&pool.chunk, chunk);
    store_relaxed(&pool.chunks, chunks);
    store_relaxed(&pool.range, range);
    store_relaxed(&pool.ranges, divide_up(chunks, range));
    store_relaxed(&pool.done, 0);
    write_tickets(chunks, range);
    spread_threads(threads);
    wake_sleepers(chunks);
    work(0);
    wait_until_done(chunks);
}

static int64_t program_count(int32_t x, int32_t y, int32_t z) { return (int64_t)x * y * z; }

// Run a grid for a caller that owns the pool.
static int32_t launch_locked(const KernelRecord *kernel, const void *args, int32_t x, int32_t y,
                             int32_t z, int64_t scratch_bytes) {
    int64_t total = program_count(x, y, z);
    if (total <= 0)
        return STATUS_DONE;
    if (!reserve(scratch_bytes))
        return STATUS_NO_MEMORY;
    record_kernel(kernel);
    own(0);
    store_relaxed(&pool.grid[0], x);
    store_relaxed(&pool.grid[1], y);
    store_relaxed(&pool.grid[2], z);
    store_relaxed(&pool.waits, kernel->waits);
    if (total == 1 && !kernel->waits) {
        run(kernel, args, 0, 1, 0, pool.scratch);
        return STATUS_DONE;
    }
    begin_watch();
    if (pool.threads <= 1 || total <= kernel->alone)
        run_alone(kernel, args, total);
    else
        run_parallel(kernel, args, total);
    return end_watch();
}

static int32_t launch_and_unlock(const KernelRecord *kernel, const void *args, int32_t x, int32_t y,
                                 int32_t z, int64_t scratch_bytes) {
    int32_t status = launch_locked(kernel, args, x, y, z, scratch_bytes);
    pthread_mutex_unlock(&pool.launching);
    return status;
}

// Whether this thread has a launch running: a signal handler that the launch calls cannot launch
// another. A launch of another thread writes its owner before it becomes active; read in the other
// order, it could seem to belong to this thread, the owner until then.
static bool is_nested(void) {
    bool active = load_ordered(&pool.active);
    return active & (VOLATILE(pool.slots[0].thread) == pthread_self());
}

// Run the grid (x, y, z) of a kernel.
//   args           its arguments, 8 bytes each
//   scratch_bytes  of each thread
// Returns a STATUS: done; no memory for the scratch areas; the handler of a signal has raised, so
// that programs were left out; nested in such a handler; programs have waited for others in vain.
int32_t tw_launch(const KernelRecord *kernel, const void *args, int32_t x, int32_t y, int32_t z,
                  int64_t scratch_bytes) {
    if (is_nested())
        return STATUS_NESTED;
    pthread_mutex_lock(&pool.launching);
    return launch_and_unlock(kernel, args, x, y, z, scratch_bytes);
}

// Launch for a caller that holds the GIL. A grid that it runs alone is done before other threads
// would have taken the GIL. But it must not wait for the pool with the GIL held, since the pool's
// owner may wait for the GIL.
static int32_t launch_with_gil(const KernelRecord *kernel, const void *args, int32_t x, int32_t y,
                               int32_t z, int64_t scratch_bytes) {
    // also fails if this thread owns the pool
    if (program_count(x, y, z) <= kernel->alone && pthread_mutex_trylock(&pool.launching) == 0)
        return launch_and_unlock(kernel, args, x, y, z, scratch_bytes);
    void *state = PyEval_SaveThread();
    int32_t status = tw_launch(kernel, args, x, y, z, scratch_bytes);
    PyEval_RestoreThread(state);
    return status;
}

// Launch for native dispatch. words: the arguments, with room for one more.
int32_t tw_launch_packed(const LaunchRecord *record, int32_t x, int32_t y, int32_t z,
                         uint64_t *words) {
    words[record->count] = record->console;
    return launch_with_gil(record->kernel, words, x, y, z, record->scratch);
}

// Launch as a function of Python (METH_FASTCALL), which takes 0.7 us less than a call by ctypes.
//   args  address of the KernelRecord, bytes of the arguments, x, y, z, bytes of scratch
PyObject *tw_start(PyObject *self, PyObject *const *args, int64_t count) {
    const KernelRecord *kernel = PyLong_AsVoidPtr(args[0]);
    const void *words = PyBytes_AsString(args[1]);
    int64_t x = PyLong_AsLongLong(args[2]);
    int64_t y = PyLong_AsLongLong(args[3]);
    int64_t z = PyLong_AsLongLong(args[4]);
    int64_t scratch_bytes = PyLong_AsLongLong(args[5]);
    if (PyErr_Occurred())
        return nullptr;
    return PyLong_FromLongLong(launch_with_gil(kernel, words, x, y, z, scratch_bytes));
}

// Reset everything but the configuration and the scratch areas.
static void initialise(void) {
    pool.ranges = 0;
    pool.sleepers = pool.caller_sleeps = pool.stopping = pool.alive = pool.started = 0;
    pool.poll = CONTINUE;
    pool.active = false;
    pool.ticking = NO_TICKER;
    forget_all_cpus();
    pthread_mutex_init(&pool.launching, nullptr);
    pthread_mutex_init(&pool.mutex, nullptr);
    pthread_cond_init(&pool.wake, nullptr);
    pthread_cond_init(&pool.finished, nullptr);
    pthread_cond_init(&pool.tick, nullptr);
}

// Configure the pool before the first launch, or after `tw_stop`.
//   threads  the caller's included
//   spin     pauses before a thread without work sleeps
void tw_configure(int32_t threads, int32_t spin) {
    initialise();
    free(pool.scratch);
    pool.scratch = nullptr;
    pool.stride = 0;
    pool.threads = threads;
    pool.spin = spin;
}

// Reset the pool in the child after a fork, which has no workers. The scratch areas are given up,
// not freed: the parent may have been replacing them.
void tw_reset(void) {
    initialise();
    pool.scratch = nullptr;
    pool.stride = 0;
}

// End the workers; a later launch starts them again.
void tw_stop(void) {
    pthread_mutex_lock(&pool.launching);
    store_ordered(&pool.stopping, true);
    add_ordered(&pool.launch, 1);
    do {
        pthread_mutex_lock(&pool.mutex);
        pthread_mutex_unlock(&pool.mutex);
        pthread_cond_broadcast(&pool.wake);
        sched_yield();
    } while (load_ordered(&pool.alive) != 0);
    store_ordered(&pool.stopping, false);
    pool.started = false;
    pthread_mutex_unlock(&pool.launching);
}

// Set how many looks of the ticker programs may wait without progress; 0: any number.
void tw_limit_waits(int32_t looks) { store_relaxed(&pool.limit, looks); }

// The number of the loop in which a program of the latest launch has waited in vain.
int32_t tw_waited(void) { return pool.waited; }

// Spin `count` pauses, to measure how long one takes.
void tw_pause(int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        (void)load_acquire(&pool.launch);
        pause_once();
    }
}

// After a launch with STATUS_RAISED: copy what was raised. Its references are the caller's now.
void tw_raised(RaisedError *into) {
    *into = pool.raised;
    pool.raised = (RaisedError){0};
}

// How many workers are alive.
int32_t tw_workers(void) { return load_ordered(&pool.alive); }
