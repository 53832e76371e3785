// The runtime of a bundle: picks a variant, and launches it on a CPU or by CUDA's driver.
//
// It is part of the C source of a bundle, whose other parts are written by bundle_source.py: before
// it the macros TW_..., and the thread pool's sources; after it the tables of the kernels. It needs
// C99 with GCC's builtins for atomics, and ends no process: every failure is a code and a sentence.

#define TW_TEXT_BYTES 512

#pragma GCC diagnostic ignored "-Wunused-function"    // a bundle uses a part of them
#pragma GCC diagnostic ignored "-Woverlength-strings" // machine code

#include "grid_arithmetic.h"

#if defined(_WIN32)
extern __declspec(dllimport) void *LoadLibraryA(const char *name);
extern __declspec(dllimport) void *GetProcAddress(void *library, const char *name);
extern __declspec(dllimport) void Sleep(unsigned long milliseconds);
#define TW_DRIVER "nvcuda.dll"
#define tw_open_library(name) LoadLibraryA(name)
#define tw_find_function(library, name) GetProcAddress(library, name)
#define tw_yield() Sleep(0)
#else
#define TW_DRIVER "libcuda.so.1"
#define tw_open_library(name) dlopen(name, RTLD_NOW | RTLD_LOCAL)
#define tw_find_function(library, name) dlsym(library, name)
#define tw_yield() (void)sched_yield()
extern int sched_yield(void);
#endif

#if TW_HAS_CPU
#define TW_CPU_CODE(table) table, (int32_t)(sizeof table / sizeof *table)
#else
#define TW_CPU_CODE(table) NULL, 0
#endif

// A property of an argument that a variant relies on.
enum { TW_MULTIPLE, TW_EQUAL, TW_AT_LEAST, TW_AT_MOST };

typedef struct {
    int32_t argument;
    int32_t kind;
    int64_t value;
} tw_fact;

// Code of a variant for a level of CPUs.
typedef struct {
    int32_t level;
    int64_t (*code)(const void *args, int64_t begin, int64_t end, const int32_t *grid,
                    void *scratch, int32_t *poll);
    int64_t scratch;  // bytes of each thread
    int64_t alone;    // programs of the largest grid that the caller runs by itself
    int64_t waits;    // whether programs may wait for each other
    int64_t together; // whether all programs must run at the same time
} tw_cpu_code;

// A number of a tensor map: (argument + constant) / divisor; a constant where argument is negative.
typedef struct {
    int32_t argument;
    int64_t constant, divisor;
} tw_number;

enum { TW_RANK = 5, TW_MAP_WORDS = 2 * TW_RANK };

// A tensor map, the innermost dimension first.
typedef struct {
    int32_t base; // argument
    int32_t rank;
    tw_number dims[TW_RANK], strides[TW_RANK]; // strides in elements, from dimension 1 on
    uint32_t box[TW_RANK];
    int32_t element, element_bytes, swizzle;
} tw_map;

// Code of a variant for GPUs.
typedef struct {
    int32_t least, most; // compute capabilities that it serves, 10 * major + minor
    const uint64_t *image;
    const char *symbol;
    uint32_t threads, shared, cluster;
    uint32_t resident; // blocks of a multiprocessor, each of several programs; 0: no limit
    uint32_t pairs;    // 1: these blocks are clusters of two
    uint32_t cooperative, dependent;
    int32_t map_count;
    const tw_map *maps;
} tw_cuda_code;

// Code that is loaded into a context.
typedef struct {
    void *context; // null: not in use
    void *module, *function;
    const tw_cuda_code *code;
    uint64_t empty; // memory for maps of arrays without elements
    int32_t processors;
} tw_loaded;

enum { TW_CONTEXTS = 16 };

typedef struct {
    const char *constants; // "BLOCK=1024", for messages
    const tw_fact *facts;
    int32_t fact_count;
    int32_t passed_count;
    const uint8_t *passed;  // arguments that the code takes, in order
    const tw_cpu_code *cpu; // the least level first
    int32_t cpu_count;
    int32_t cuda_count;
    const tw_cuda_code *cuda; // the best for a GPU first
    const char *capabilities; // "sm_80 sm_90 ...", for messages
    tw_loaded *loaded;        // of TW_CONTEXTS entries
} tw_variant;

typedef struct {
    const char *name;
    const char *const *names; // of the arguments
    const char *kinds;        // a byte for each: P for a pointer, else a code of Python's `struct`
    int32_t variant_count;
    const tw_variant *variants; // those with the most facts first
} tw_kernel;

// --- failures ------------------------------------------------------------------------------------

static __thread char tw_text[TW_TEXT_BYTES];

__attribute__((format(printf, 2, 3))) static int tw_fail(int code, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(tw_text, sizeof tw_text, format, values);
    va_end(values);
    return code;
}

// A lock that needs no initialization; what it guards takes milliseconds, once.
static int32_t tw_lock;

static void tw_acquire(void) {
    while (__atomic_exchange_n(&tw_lock, 1, __ATOMIC_ACQUIRE))
        tw_yield();
}

static void tw_release(void) { __atomic_store_n(&tw_lock, 0, __ATOMIC_RELEASE); }

// --- variants ------------------------------------------------------------------------------------

static bool tw_holds(const tw_fact *fact, int64_t value) {
    return fact->kind == TW_MULTIPLE   ? value % fact->value == 0
           : fact->kind == TW_EQUAL    ? value == fact->value
           : fact->kind == TW_AT_LEAST ? value >= fact->value
                                       : value <= fact->value;
}

// The first fact of a variant that does not hold; null if all do. without_alignment: pass over the
// alignment of pointers
static const tw_fact *tw_broken(const tw_kernel *kernel, const tw_variant *variant,
                                const uint64_t *args, bool without_alignment) {
    for (int32_t i = 0; i < variant->fact_count; i++) {
        const tw_fact *fact = variant->facts + i;
        bool pointer = kernel->kinds[fact->argument] == 'P';
        if (!tw_holds(fact, (int64_t)args[fact->argument]) && !(pointer && without_alignment))
            return fact;
    }
    return NULL;
}

// Explain why no variant fits the arguments, by the one with the fewest facts.
static int tw_no_variant(const tw_kernel *kernel, const uint64_t *args) {
    static const char *const rules[] = {"a multiple of", "equal to", "at least", "at most"};
    const tw_variant *last = kernel->variants + kernel->variant_count - 1;
    for (const tw_variant *variant = last; variant >= kernel->variants; variant--) {
        const tw_fact *fact = tw_broken(kernel, variant, args, false);
        if (fact && !tw_broken(kernel, variant, args, true))
            return tw_fail(TILEWRIGHT_MISALIGNED,
                           "%s: the pointer '%s' (%#llx) is not a multiple of %lld bytes, which "
                           "every variant for these arguments requires",
                           kernel->name, kernel->names[fact->argument],
                           (unsigned long long)args[fact->argument], (long long)fact->value);
    }
    const tw_fact *fact = tw_broken(kernel, last, args, true);
    return tw_fail(TILEWRIGHT_MISSING_VARIANT,
                   "%s: no variant for '%s' = %lld; the least special one (%s) requires %s %lld",
                   kernel->name, kernel->names[fact->argument], (long long)args[fact->argument],
                   last->constants, rules[fact->kind], (long long)fact->value);
}

// Whether a grid can be launched: else a failure.
static int tw_check_grid(const tw_kernel *kernel, const int64_t *grid) {
    for (int i = 0; i < 3; i++) {
        if (grid[i] == TW_INVALID)
            return tw_fail(TILEWRIGHT_BAD_GRID,
                           "%s: the grid divides by zero or overflows for these arguments",
                           kernel->name);
        if (grid[i] < 0 || grid[i] > INT32_MAX)
            return tw_fail(
                TILEWRIGHT_BAD_GRID,
                "%s: the grid (%lld, %lld, %lld) has a size that is not from 0 to 2**31 - 1",
                kernel->name, (long long)grid[0], (long long)grid[1], (long long)grid[2]);
    }
    return TILEWRIGHT_OK;
}

#if TW_HAS_CPU
#include "cpu_launch.h"
#endif
#if TW_HAS_CUDA
#include "cuda_launch.h"
#endif

// --- calls ---------------------------------------------------------------------------------------

// Check the version of a queue; a null one becomes that of the bundle's thread pool.
static int tw_check_queue(const char *name, const tilewright_queue **queue) {
    static const tilewright_queue of_pool = {TILEWRIGHT_ABI, TILEWRIGHT_CPU, 0,   -1,
                                             NULL,           NULL,           NULL};
    if (!*queue)
        *queue = &of_pool;
    if ((*queue)->abi == TILEWRIGHT_ABI)
        return TILEWRIGHT_OK;
    return tw_fail(TILEWRIGHT_WRONG_VERSION,
                   "%s: the program has version %u of the bundle's header, the library version %d; "
                   "compile the program again",
                   name, (*queue)->abi, TILEWRIGHT_ABI);
}

// Launch a variant on the kind of device of the queue.
static int tw_run_variant(const tw_kernel *kernel, const tw_variant *variant,
                          const tilewright_queue *queue, uint64_t *args, const int64_t *grid) {
#if TW_HAS_CUDA
    if (queue->kind == TILEWRIGHT_CUDA)
        return tw_run_cuda(kernel, variant, queue, args, grid);
#endif
#if TW_HAS_CPU
    if (queue->kind == TILEWRIGHT_CPU)
        return tw_run_cpu(kernel, variant, queue, args, grid);
#endif
    (void)variant, (void)args, (void)grid, (void)queue;
    return tw_fail(TILEWRIGHT_WRONG_DEVICE, "%s: the bundle has no code for %s on this system",
                   kernel->name, queue->kind == TILEWRIGHT_CUDA ? "CUDA" : "CPUs");
}

// Launch a kernel. args: a word for each argument
static int tw_run(const tw_kernel *kernel, const tilewright_queue *queue, uint64_t *args,
                  const int64_t *grid) {
    int result = tw_check_queue(kernel->name, &queue);
    if (!result)
        result = tw_check_grid(kernel, grid);
    if (result)
        return result;
    for (int32_t i = 0; i < kernel->variant_count; i++)
        if (!tw_broken(kernel, kernel->variants + i, args, false))
            return tw_run_variant(kernel, kernel->variants + i, queue, args, grid);
    return tw_no_variant(kernel, args);
}

// --- what generated functions call ---------------------------------------------------------------

#define tw_f32_bits(number_)                                                                       \
    (((union {                                                                                     \
         float number;                                                                             \
         uint32_t bits;                                                                            \
     }){number_})                                                                                  \
         .bits)
#define tw_f64_bits(number_)                                                                       \
    (((union {                                                                                     \
         double number;                                                                            \
         uint64_t bits;                                                                            \
     }){number_})                                                                                  \
         .bits)

// Load a variant for the device of a queue.
static int tw_load(const tw_kernel *kernel, const tw_variant *variant,
                   const tilewright_queue *queue) {
    uint64_t args[TW_WORDS] = {0};
    const int64_t empty[3] = {0, 0, 0}; // a grid that only loads
    return tw_run_variant(kernel, variant, queue, args, empty);
}

// Unload a variant from the current context of CUDA.
static int tw_unload(const tw_kernel *kernel, const tw_variant *variant,
                     const tilewright_queue *queue) {
#if TW_HAS_CUDA
    if (queue->kind == TILEWRIGHT_CUDA)
        return tw_unload_code(kernel, variant, queue);
#endif
    (void)kernel, (void)variant, (void)queue;
    return TILEWRIGHT_OK;
}

// Call tw_load or tw_unload for all variants, up to the first failure.
static int tw_for_all(const tw_kernel *const *kernels, int32_t count, const tilewright_queue *queue,
                      int (*action)(const tw_kernel *, const tw_variant *,
                                    const tilewright_queue *)) {
    int result = tw_check_queue(TW_NAME, &queue);
    for (int32_t i = 0; i < count; i++)
        for (int32_t j = 0; !result && j < kernels[i]->variant_count; j++)
            result = action(kernels[i], kernels[i]->variants + j, queue);
    return result;
}

// Set the number of threads of the pool, whose workers exit.
static int tw_set_threads(int32_t threads) {
#if TW_HAS_POOL
    return tw_set_pool_threads(threads);
#else
    return tw_fail(TW_HAS_CPU ? TILEWRIGHT_TOO_FEW_THREADS : TILEWRIGHT_WRONG_DEVICE,
                   TW_NAME ": the bundle has no thread pool on this system, so not %d threads: use "
                           "the queue's `threads` and `parallel`",
                   threads);
#endif
}
