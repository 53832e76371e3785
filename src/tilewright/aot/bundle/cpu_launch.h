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

// Words of CPUID that state features: the leaf and register; and XCR0, which the system has set.
enum { TW_1C, TW_7B, TW_7C, TW_7D, TW_71A, TW_80000001C, TW_XCR0, TW_FEATURE_WORDS };

// Bits that levels require (System V ABI, AMD64 supplement, 3.1.1; Intel's manual, CPUID).
static const struct {
    int32_t level, word;
    uint32_t bits;
} tw_required[] = {
    {TW_X86_64_V2, TW_1C, 1 << 0 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 23},
    {TW_X86_64_V2, TW_80000001C, 1 << 0},
    {TW_X86_64_V3, TW_1C, 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29},
    {TW_X86_64_V3, TW_7B, 1 << 3 | 1 << 5 | 1 << 8},
    {TW_X86_64_V3, TW_80000001C, 1 << 5},
    {TW_X86_64_V3, TW_XCR0, 0x6},
    {TW_X86_64_V4, TW_7B, 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31},
    {TW_X86_64_V4, TW_XCR0, 0xe0},
    {TW_X86_64_AMX, TW_7C, 1 << 11},
    {TW_X86_64_AMX, TW_7D, 1 << 22 | 1 << 24 | 1 << 25},
    {TW_X86_64_AMX, TW_71A, 1 << 5},
    {TW_X86_64_AMX, TW_XCR0, 3 << 17},
};

// The highest level of this CPU.
static int32_t tw_detect_level(void) {
    enum { OSXSAVE = 1 << 27 };
    uint32_t word[TW_FEATURE_WORDS] = {0}, a, b, c, d;
    __get_cpuid(1, &a, &b, word + TW_1C, &d);
    if (__get_cpuid_count(7, 0, &a, word + TW_7B, word + TW_7C, word + TW_7D) && a >= 1)
        __get_cpuid_count(7, 1, word + TW_71A, &b, &c, &d);
    __get_cpuid(0x80000001, &a, &b, word + TW_80000001C, &d);
    if (word[TW_1C] & OSXSAVE)
        __asm__ volatile("xgetbv" : "=a"(word[TW_XCR0]), "=d"(d) : "c"(0));
    for (size_t i = 0; i < sizeof tw_required / sizeof *tw_required; i++)
        if ((word[tw_required[i].word] & tw_required[i].bits) != tw_required[i].bits)
            return tw_required[i].level - 1;
    return tw_may_use_tiles() ? TW_X86_64_AMX : TW_X86_64_V4;
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
typedef struct {
    const char *text; // JSON: ["message", [location ...]]
    int32_t failed, program[3];
} tw_failure;

static tw_failure tw_pool_failure;           // of the pool's launch, which holds pool.launching
static __thread tw_failure *tw_part_failure; // while this thread runs a part for a caller

// A function that kernels call: keep the first failure of the launch.
static void tw_console_fail(const char *text, int32_t kind, int64_t bits, int32_t i, int32_t j,
                            int32_t k, int32_t x, int32_t y, int32_t z) {
    tw_failure *failure = tw_part_failure ? tw_part_failure : &tw_pool_failure;
    (void)kind, (void)bits, (void)i, (void)j, (void)k;
    if (__atomic_exchange_n(&failure->failed, 1, __ATOMIC_RELAXED))
        return;
    failure->text = text;
    failure->program[0] = x, failure->program[1] = y, failure->program[2] = z;
}

// For failed assertions, and for prints, which no bundle has.
static void (*const tw_console[2])(const char *, int32_t, int64_t, int32_t, int32_t, int32_t,
                                   int32_t, int32_t, int32_t) = {tw_console_fail, tw_console_fail};

// The result of a finished launch.
static int tw_finished(const tw_kernel *kernel, const tw_failure *failure) {
    if (!failure->failed)
        return TILEWRIGHT_OK;
    return tw_fail(TILEWRIGHT_ASSERTION_FAILED,
                   "%s: an assertion failed in program (%d, %d, %d): %s", kernel->name,
                   failure->program[0], failure->program[1], failure->program[2], failure->text);
}

// A launch that is cut into parts of consecutive programs.
typedef struct {
    const tw_cpu_code *code;
    const uint64_t *words;
    int64_t total;
    int32_t parts, no_memory;
    int32_t grid[3];
    int32_t poll;
    tw_failure failure;
} tw_job;

// Run part `index` of a launch, with scratch of its own.
static void tw_run_part(void *job_, int32_t index) {
    tw_job *job = job_;
    int64_t whole = job->total / job->parts, rest = job->total % job->parts;
    int64_t begin = whole * index + (index < rest ? index : rest);
    int64_t end = begin + whole + (index < rest);
    size_t bytes = begin < end ? (size_t)job->code->scratch : 0;
    char *scratch = bytes ? malloc(bytes + 64) : NULL;
    if (bytes && !scratch)
        __atomic_store_n(&job->no_memory, 1, __ATOMIC_RELAXED);
    else if (begin < end) {
        char *aligned = scratch ? scratch + (64 - (uintptr_t)scratch % 64) : NULL;
        tw_failure *outer = tw_part_failure; // a part may run within another one's wait
        tw_part_failure = &job->failure;
        job->code->code(job->words, begin, end, job->grid, aligned, &job->poll);
        tw_part_failure = outer;
    }
    free(scratch);
}

// Run a grid on threads that the caller brings: its own, or those of `parallel`.
static int tw_run_on_callers(const tw_kernel *kernel, const tw_cpu_code *code,
                             const tilewright_queue *queue, const uint64_t *words,
                             const int32_t *grid, int64_t total) {
    int32_t parts = queue->threads < 1 ? 1 : queue->threads;
    tw_job job = {code, words, total, parts, 0, {grid[0], grid[1], grid[2]}, 0, {NULL, 0, {0}}};
    if (code->together && total > 1)
        return tw_fail(TILEWRIGHT_TOO_FEW_THREADS,
                       "%s: its programs wait for each other; use the thread pool (threads = 0)",
                       kernel->name);
    if (parts > 1 && !queue->parallel)
        return tw_fail(TILEWRIGHT_TOO_FEW_THREADS,
                       "%s: threads is %d, but the queue has no function `parallel`", kernel->name,
                       parts);
    if (parts > 1)
        queue->parallel(queue->context, tw_run_part, &job, parts);
    else
        tw_run_part(&job, 0);
    if (job.no_memory)
        return tw_fail(TILEWRIGHT_NO_MEMORY, "%s: no memory for %lld bytes of scratch",
                       kernel->name, (long long)code->scratch);
    return tw_finished(kernel, &job.failure);
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

// The child of a fork has this thread only; another one may have held the lock.
static void tw_reset_child(void) {
    tw_reset();
    tw_release();
}

// Configure the pool; threads: 0: one for each CPU that the process may use. The lock is held.
static void tw_configure_pool(int32_t threads) {
    extern int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void));
    if (tw_pool_is_ready)
        tw_stop();
    else
        pthread_atfork(NULL, NULL, tw_reset_child);
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

// tw_launch of the pool, which also takes the failure of the launch before the next one starts.
static int32_t tw_launch_and_take(const KernelRecord *record, const uint64_t *words,
                                  const int32_t *grid, int64_t scratch, tw_failure *failure) {
    if (is_nested())
        return STATUS_NESTED;
    pthread_mutex_lock(&pool.launching);
    tw_pool_failure.failed = 0;
    int32_t status = launch_locked(record, words, grid[0], grid[1], grid[2], scratch);
    *failure = tw_pool_failure;
    pthread_mutex_unlock(&pool.launching);
    return status;
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
    tw_failure failure;
    switch (tw_launch_and_take(&record, words, grid, code->scratch, &failure)) {
    case STATUS_DONE:
        return tw_finished(kernel, &failure);
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

#endif

// The best code of a variant for this CPU; null without any.
static const tw_cpu_code *tw_cpu_code_of(const tw_variant *variant) {
    int32_t level = tw_level();
    for (int32_t i = variant->cpu_count - 1; i >= 0; i--)
        if (variant->cpu[i].level <= level)
            return variant->cpu + i;
    return NULL;
}

// Launch a variant on this CPU.
static int tw_run_cpu(const tw_kernel *kernel, const tw_variant *variant,
                      const tilewright_queue *queue, const uint64_t *args, const int64_t *sizes) {
    const tw_cpu_code *code = tw_cpu_code_of(variant);
    if (!code)
        return tw_fail(TILEWRIGHT_WRONG_DEVICE,
                       "%s: this CPU has the level %s, and the bundle has code for " TW_CPU_LEVELS,
                       kernel->name, tw_level_names[tw_level()]);
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
    return tw_run_on_callers(kernel, code, queue, words, grid, total);
}
