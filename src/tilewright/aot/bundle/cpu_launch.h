// Launches of a bundle on CPUs: the level of this CPU, the thread pool, threads of the caller.

// Levels of CPUs: indices of bundle_targets.py's table.
enum {
    TW_NO_LEVEL,
    TW_X86_64,
    TW_X86_64_V2,
    TW_X86_64_V3,
    TW_X86_64_V4,
    TW_X86_64_AMX,
    TW_AARCH64
};

static const char *const tw_level_names[] = {"none",      "x86-64",        "x86-64-v2", "x86-64-v3",
                                             "x86-64-v4", "x86-64-v4-amx", "aarch64"};

#if defined(__x86_64__)
static uint64_t tw_extended_state(void) { // XCR0
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

// Whether the system lets this process use AMX's tiles.
static bool tw_may_use_tiles(void) {
#if defined(__linux__)
    extern long syscall(long number, ...);
    enum { ARCH_PRCTL = 158, ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall((long)ARCH_PRCTL, (long)ARCH_REQ_XCOMP_PERM, (long)XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

// The highest level of this CPU (System V ABI, AMD64 supplement, 3.1.1; Intel's manual, CPUID).
static int32_t tw_detect_level(void) {
    enum { V2_1C = 1 << 0 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 23 };
    enum { V3_1C = 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29 };
    enum { V3_7B = 1 << 3 | 1 << 5 | 1 << 8 };
    const uint32_t v4_7b = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
    const uint32_t amx_7d = 1u << 22 | 1u << 24 | 1u << 25;
    uint32_t a, b, c, d, leaf1c, leaf7b = 0, leaf7c = 0, leaf7d = 0, bf16 = 0, extended = 0;
    __cpuid(0, a, b, c, d);
    const uint32_t last = a;
    __cpuid(1, a, b, leaf1c, d);
    if (last >= 7) {
        __cpuid_count(7, 0, a, leaf7b, leaf7c, leaf7d);
        if (a >= 1)
            __cpuid_count(7, 1, bf16, b, c, d);
    }
    __cpuid(0x80000000, a, b, c, d);
    if (a >= 0x80000001)
        __cpuid(0x80000001, a, b, extended, d);
    if ((leaf1c & V2_1C) != V2_1C || !(extended & 1))
        return TW_X86_64;
    bool v3 = (leaf1c & V3_1C) == V3_1C && (leaf7b & V3_7B) == V3_7B && (extended & 1 << 5);
    uint64_t state = v3 ? tw_extended_state() : 0;
    if (!v3 || (state & 6) != 6)
        return TW_X86_64_V2;
    if ((leaf7b & v4_7b) != v4_7b || (state & 0xe0) != 0xe0)
        return TW_X86_64_V3;
    bool amx = (leaf7d & amx_7d) == amx_7d && (state & 3 << 17) == 3 << 17;
    bool vnni_bf16 = (leaf7c & 1 << 11) && (bf16 & 1 << 5);
    return amx && vnni_bf16 && tw_may_use_tiles() ? TW_X86_64_AMX : TW_X86_64_V4;
}
#else
static int32_t tw_detect_level(void) { return TW_AARCH64; }
#endif

static int32_t tw_level(void) {
    static int32_t level;
    int32_t known = __atomic_load_n(&level, __ATOMIC_RELAXED);
    if (known == TW_NO_LEVEL) {
        known = tw_detect_level();
        __atomic_store_n(&level, known, __ATOMIC_RELAXED);
    }
    return known;
}

// The first failed assertion of a launch.
enum { TW_NO_FAILURE, TW_WRITING, TW_FAILED };
static struct {
    int32_t state;
    const char *text;
    int32_t program[3];
} tw_failure;

// A function that kernels call: keep the first failure.
static void tw_console_fail(const char *text, int32_t kind, int64_t bits, int32_t i, int32_t j,
                            int32_t k, int32_t x, int32_t y, int32_t z) {
    int32_t none = TW_NO_FAILURE;
    (void)kind, (void)bits, (void)i, (void)j, (void)k;
    if (!__atomic_compare_exchange_n(&tw_failure.state, &none, TW_WRITING, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    tw_failure.text = text;
    tw_failure.program[0] = x, tw_failure.program[1] = y, tw_failure.program[2] = z;
    __atomic_store_n(&tw_failure.state, TW_FAILED, __ATOMIC_RELEASE);
}

// For failed assertions, and for prints, which no bundle has.
static void (*const tw_console[2])(const char *, int32_t, int64_t, int32_t, int32_t, int32_t,
                                   int32_t, int32_t, int32_t) = {tw_console_fail, tw_console_fail};

// The result of a finished launch.
static int tw_finished(const tw_kernel *kernel) {
    if (__atomic_load_n(&tw_failure.state, __ATOMIC_ACQUIRE) != TW_FAILED)
        return TILEWRIGHT_OK;
    // JSON: ["message", [location ...]]
    int code =
        tw_fail(TILEWRIGHT_ASSERTION_FAILED, "%s: an assertion failed in program (%d, %d, %d): %s",
                kernel->name, tw_failure.program[0], tw_failure.program[1], tw_failure.program[2],
                tw_failure.text);
    __atomic_store_n(&tw_failure.state, TW_NO_FAILURE, __ATOMIC_RELEASE);
    return code;
}

// A launch that is cut into parts of consecutive programs.
typedef struct {
    const tw_cpu_code *code;
    const uint64_t *words;
    int64_t total;
    int32_t parts, no_memory;
    int32_t grid[3];
    int32_t poll;
} tw_job;

// Run part `index` of a launch, with scratch of its own.
static void tw_run_part(void *job_, int32_t index) {
    tw_job *job = job_;
    int64_t whole = job->total / job->parts, rest = job->total % job->parts;
    int64_t begin = whole * index + (index < rest ? index : rest);
    int64_t end = begin + whole + (index < rest);
    if (begin == end)
        return;
    char *scratch = NULL;
    if (job->code->scratch) {
        scratch = malloc((size_t)job->code->scratch + 64);
        if (!scratch) {
            __atomic_store_n(&job->no_memory, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    char *aligned = scratch ? scratch + (64 - (uintptr_t)scratch % 64) : NULL;
    job->code->code(job->words, begin, end, job->grid, aligned, &job->poll);
    free(scratch);
}

// Run a grid on threads that the caller brings: its own, or those of `parallel`.
static int tw_run_on_callers(const tw_kernel *kernel, const tw_cpu_code *code,
                             const tilewright_queue *queue, const uint64_t *words,
                             const int32_t *grid, int64_t total) {
    tw_job job = {code, words, total, queue->threads, 0, {grid[0], grid[1], grid[2]}, 0};
    if (code->together && total > 1)
        return tw_fail(TILEWRIGHT_TOO_FEW_THREADS,
                       "%s: its programs wait for each other; use the thread pool (threads = 0)",
                       kernel->name);
    if (job.parts == 1)
        tw_run_part(&job, 0);
    else if (queue->parallel)
        queue->parallel(queue->context, tw_run_part, &job, job.parts);
    else
        return tw_fail(TILEWRIGHT_TOO_FEW_THREADS,
                       "%s: threads is %d, but the queue has no function `parallel`", kernel->name,
                       queue->threads);
    if (job.no_memory)
        return tw_fail(TILEWRIGHT_NO_MEMORY, "%s: no memory for %lld bytes of scratch",
                       kernel->name, (long long)code->scratch);
    return tw_finished(kernel);
}

#if TW_HAS_POOL

static int32_t tw_usable_cpus(void) {
    CpuSet usable, none = {{0}};
    int64_t count = free_cpus(&usable, &none);
    return count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : (int32_t)count;
}

// Pauses that take 40 us: about the cost of sleeping and waking once.
static int32_t tw_spin_pauses(void) {
    enum { PAUSES = 2000 };
    clock_t begin = clock();
    tw_pause(PAUSES);
    double microseconds = 1e6 * (double)(clock() - begin) / CLOCKS_PER_SEC;
    return microseconds < 1 ? PAUSES : (int32_t)(40.0 * PAUSES / microseconds) + 1;
}

// How long programs may wait for each other while none ends, and how often the pool looks.
enum { TW_WAIT_SECONDS = 30, TW_LOOKS_A_SECOND = 20 };

static int32_t tw_pool_is_ready;

// Configure the pool; threads: 0: one for each CPU that the process may use. The lock is held.
static void tw_configure_pool(int32_t threads) {
    extern int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void));
    if (tw_pool_is_ready)
        tw_stop();
    else
        pthread_atfork(NULL, NULL, tw_reset);
    tw_configure(threads ? threads : tw_usable_cpus(), tw_spin_pauses());
    tw_limit_waits(TW_WAIT_SECONDS * TW_LOOKS_A_SECOND);
    __atomic_store_n(&tw_pool_is_ready, 1, __ATOMIC_RELEASE);
}

static int tw_set_pool_threads(int32_t threads) {
    if (threads < 0 || threads > MAX_THREADS)
        return tw_fail(TILEWRIGHT_TOO_FEW_THREADS, TW_NAME ": a pool has 1 to %d threads, not %d",
                       MAX_THREADS, threads);
    tw_acquire();
    tw_configure_pool(threads);
    tw_release();
    return TILEWRIGHT_OK;
}

static void tw_prepare_pool(void) {
    if (__atomic_load_n(&tw_pool_is_ready, __ATOMIC_ACQUIRE))
        return;
    tw_acquire();
    if (!tw_pool_is_ready)
        tw_configure_pool(0);
    tw_release();
}

// Run a grid on the bundle's thread pool.
static int tw_run_on_pool(const tw_kernel *kernel, const tw_cpu_code *code, const uint64_t *words,
                          const int32_t *grid, int64_t total) {
    tw_prepare_pool();
    if (code->together && total > pool.threads)
        return tw_fail(TILEWRIGHT_TOO_FEW_THREADS,
                       "%s: %lld programs wait for each other, but the pool has %d threads",
                       kernel->name, (long long)total, pool.threads);
    KernelRecord record = {
        (void *)(uintptr_t)code->code, kernel->name, 0, NULL, "", code->alone, code->waits};
    switch (tw_launch(&record, words, grid[0], grid[1], grid[2], code->scratch)) {
    case STATUS_DONE:
        return tw_finished(kernel);
    case STATUS_NO_MEMORY:
        return tw_fail(TILEWRIGHT_NO_MEMORY, "%s: no memory for %lld bytes of scratch per thread",
                       kernel->name, (long long)code->scratch);
    case STATUS_WAITED:
        return tw_fail(TILEWRIGHT_ENDLESS_WAIT, "%s: a program has waited for another one in vain",
                       kernel->name);
    default:
        return tw_fail(TILEWRIGHT_TOO_FEW_THREADS, "%s: launched by a launch of the same thread",
                       kernel->name);
    }
}

#else // no threads of its own

static int tw_set_pool_threads(int32_t threads) {
    return tw_fail(TILEWRIGHT_TOO_FEW_THREADS,
                   TW_NAME ": a bundle has no thread pool on this system, so not %d threads: use "
                           "the queue's `threads` and `parallel`",
                   threads);
}
#endif

// The best code of a variant for this CPU; null without any.
static const tw_cpu_code *tw_cpu_code_of(const tw_variant *variant) {
    int32_t level = tw_level();
    for (int32_t i = variant->cpu_count - 1; i >= 0; i--)
        if (variant->cpu[i].level <= level)
            return variant->cpu + i;
    return NULL;
}

static int tw_no_cpu_code(const tw_kernel *kernel, const tw_variant *variant) {
    tw_fail(TILEWRIGHT_WRONG_DEVICE, "%s: this CPU has the level %s, and the bundle has code for",
            kernel->name, tw_level_names[tw_level()]);
    for (int32_t i = 0; i < variant->cpu_count; i++)
        tw_append(" %s", tw_level_names[variant->cpu[i].level]);
    if (variant->cpu_count == 0)
        tw_append(" no CPU like it");
    return TILEWRIGHT_WRONG_DEVICE;
}

// Launch a variant on this CPU.
static int tw_run_cpu(const tw_kernel *kernel, const tw_variant *variant,
                      const tilewright_queue *queue, const uint64_t *args, const int64_t *sizes) {
    const tw_cpu_code *code = tw_cpu_code_of(variant);
    if (!code)
        return tw_no_cpu_code(kernel, variant);
    uint64_t words[TW_WORDS + 1];
    for (int32_t i = 0; i < variant->passed_count; i++)
        words[i] = args[variant->passed[i]];
    words[variant->passed_count] = (uint64_t)(uintptr_t)tw_console;
    int32_t grid[3] = {(int32_t)sizes[0], (int32_t)sizes[1], (int32_t)sizes[2]};
    if (sizes[0] && sizes[1] && sizes[2] && INT64_MAX / sizes[0] / sizes[1] / sizes[2] == 0)
        return tw_fail(TILEWRIGHT_BAD_GRID, "%s: the grid has 2**63 programs or more",
                       kernel->name);
    int64_t total = sizes[0] * sizes[1] * sizes[2];
    if (total == 0)
        return TILEWRIGHT_OK;
#if TW_HAS_POOL
    if (queue->threads <= 0)
        return tw_run_on_pool(kernel, code, words, grid, total);
#endif
    tilewright_queue callers = *queue;
    callers.threads = callers.threads < 1 ? 1 : callers.threads;
    return tw_run_on_callers(kernel, code, &callers, words, grid, total);
}
