// Launches of a bundle by CUDA's driver: contexts, modules, tensor maps.

// CUlaunchConfig and CUlaunchAttribute of cuda.h.
typedef struct {
    uint32_t id, padding;
    union {
        uint32_t numbers[3];
        char bytes[64];
    } value;
} tw_attribute;

typedef struct {
    uint32_t grid[3], block[3], shared;
    void *stream;
    tw_attribute *attributes;
    uint32_t attribute_count;
} tw_config;

enum { TW_COOPERATIVE = 2, TW_CLUSTER = 4, TW_DEPENDENT = 6 }; // CU_LAUNCH_ATTRIBUTE_...

// Functions of the driver; those after cuMemFree_v2 are of CUDA 11.8 and 12.
// clang-format off
#define TW_DRIVER_FUNCTIONS(F)                                                                     \
    F(cuInit, (uint32_t flags))                                                                    \
    F(cuGetErrorName, (int status, const char **name))                                             \
    F(cuGetErrorString, (int status, const char **text))                                           \
    F(cuDeviceGet, (int32_t *device, int32_t ordinal))                                             \
    F(cuDeviceGetAttribute, (int32_t *value, int32_t attribute, int32_t device))                   \
    F(cuDevicePrimaryCtxRetain, (void **context, int32_t device))                                  \
    F(cuCtxGetCurrent, (void **context))                                                           \
    F(cuCtxSetCurrent, (void *context))                                                            \
    F(cuCtxGetDevice, (int32_t *device))                                                           \
    F(cuModuleLoadData, (void **module, const void *image))                                        \
    F(cuModuleUnload, (void *module))                                                              \
    F(cuModuleGetFunction, (void **function, void *module, const char *name))                      \
    F(cuFuncSetAttribute, (void *function, int32_t attribute, int32_t value))                      \
    F(cuLaunchKernel, (void *function, uint32_t x, uint32_t y, uint32_t z, uint32_t block_x,       \
                       uint32_t block_y, uint32_t block_z, uint32_t shared, void *stream,          \
                       void **params, void **extra))                                               \
    F(cuMemAlloc_v2, (uint64_t *address, size_t bytes))                                            \
    F(cuMemsetD8_v2, (uint64_t address, uint8_t value, size_t bytes))                              \
    F(cuMemFree_v2, (uint64_t address))                                                            \
    F(cuLaunchKernelEx, (const tw_config *config, void *function, void **params, void **extra))    \
    F(cuTensorMapEncodeTiled, (void *map, int32_t element, uint32_t rank, void *base,              \
                               const uint64_t *dims, const uint64_t *strides, const uint32_t *box, \
                               const uint32_t *steps, int32_t interleave, int32_t swizzle,         \
                               int32_t promotion, int32_t fill))
#define TW_POINTER(name, parameters) int (*name) parameters;
#define TW_QUOTED(name, parameters) #name,
// clang-format on
static struct {
    TW_DRIVER_FUNCTIONS(TW_POINTER)
} tw_cuda;
static const char *const tw_cuda_names[] = {TW_DRIVER_FUNCTIONS(TW_QUOTED)};
enum { TW_CUDA_FUNCTIONS = sizeof tw_cuda_names / sizeof *tw_cuda_names };
enum { TW_CUDA_NEEDED = TW_CUDA_FUNCTIONS - 2 };

static int tw_status(const char *subject, const char *call, int status) {
    const char *name = NULL, *text = NULL;
    tw_cuda.cuGetErrorName(status, &name);
    tw_cuda.cuGetErrorString(status, &text);
    return tw_fail(TILEWRIGHT_DRIVER_ERROR, "%s: %s returned %d, %s: %s", subject, call, status,
                   name ? name : "an unknown error", text ? text : "no description");
}

static int tw_no_function(const char *name) {
    return tw_fail(TILEWRIGHT_NO_DRIVER, "CUDA's driver (%s) has no function %s", TW_DRIVER, name);
}

// Call a function of the driver for `kernel`; a failure returns from the function that has the
// call.
#define TW_TRY(function, ...)                                                                      \
    do {                                                                                           \
        int status_ = tw_cuda.function(__VA_ARGS__);                                               \
        if (status_)                                                                               \
            return tw_status(kernel->name, #function, status_);                                    \
    } while (0)

// Load the driver's library; the lock is held.
static int tw_load_driver(void) {
    void *library = tw_open_library(TW_DRIVER);
    if (!library)
        return tw_fail(TILEWRIGHT_NO_DRIVER, "CUDA's driver (%s) is not installed", TW_DRIVER);
    void *functions[TW_CUDA_FUNCTIONS];
    for (int i = 0; i < (int)TW_CUDA_FUNCTIONS; i++) {
        functions[i] = (void *)tw_find_function(library, tw_cuda_names[i]);
        if (!functions[i] && i < TW_CUDA_NEEDED)
            return tw_no_function(tw_cuda_names[i]);
    }
    memcpy((void *)&tw_cuda, functions, sizeof functions);
    int status = tw_cuda.cuInit(0);
    return status ? tw_status(TW_NAME, "cuInit", status) : TILEWRIGHT_OK;
}

// Make sure that the driver is loaded. A failure is repeated by each call, which tries again.
static int tw_need_driver(void) {
    static int32_t ready;
    if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
        return TILEWRIGHT_OK;
    tw_acquire();
    int result = ready ? TILEWRIGHT_OK : tw_load_driver();
    __atomic_store_n(&ready, result == TILEWRIGHT_OK, __ATOMIC_RELEASE);
    tw_release();
    return result;
}

// The current context; without one, the primary context of the queue's device becomes current.
static int tw_need_context(const tw_kernel *kernel, const tilewright_queue *queue, void **context) {
    int32_t device = queue->device < 0 ? 0 : queue->device, current = device, handle;
    int result = tw_need_driver();
    if (result)
        return result;
    TW_TRY(cuCtxGetCurrent, context);
    if (!*context) {
        TW_TRY(cuDeviceGet, &handle, device);
        TW_TRY(cuDevicePrimaryCtxRetain, context, handle);
        TW_TRY(cuCtxSetCurrent, *context);
    } else if (queue->device >= 0) {
        TW_TRY(cuCtxGetDevice, &current);
    }
    if (current == device)
        return TILEWRIGHT_OK;
    return tw_fail(TILEWRIGHT_WRONG_DEVICE,
                   "%s: the queue is of device %d, the current context of device %d", kernel->name,
                   device, current);
}

static int tw_load_function(const tw_kernel *kernel, const tw_cuda_code *code, tw_loaded *entry) {
    enum { SHARED_LIMIT = 8, LARGE_CLUSTERS = 14 };
    TW_TRY(cuModuleGetFunction, &entry->function, entry->module, code->symbol);
    if (code->shared > 48 << 10)
        TW_TRY(cuFuncSetAttribute, entry->function, SHARED_LIMIT, (int32_t)code->shared);
    if (code->cluster > 8)
        TW_TRY(cuFuncSetAttribute, entry->function, LARGE_CLUSTERS, 1);
    entry->code = code;
    return TILEWRIGHT_OK;
}

// Load the code of a variant into the current context; the lock is held.
static int tw_load_code(const tw_kernel *kernel, const tw_variant *variant, tw_loaded *entry) {
    enum { MAJOR = 75, MINOR = 76, PROCESSORS = 16 };
    int32_t device, major, minor;
    TW_TRY(cuCtxGetDevice, &device);
    TW_TRY(cuDeviceGetAttribute, &major, MAJOR, device);
    TW_TRY(cuDeviceGetAttribute, &minor, MINOR, device);
    TW_TRY(cuDeviceGetAttribute, &entry->processors, PROCESSORS, device);
    const tw_cuda_code *code = variant->cuda, *end = code + variant->cuda_count;
    while (code < end && (10 * major + minor < code->least || 10 * major + minor > code->most))
        code++;
    if (code == end)
        return tw_fail(TILEWRIGHT_WRONG_DEVICE,
                       "%s: the device has compute capability %d.%d, and the bundle has code for "
                       "%s",
                       kernel->name, major, minor, variant->capabilities);
    TW_TRY(cuModuleLoadData, &entry->module, code->image);
    int result = tw_load_function(kernel, code, entry);
    if (result)
        tw_cuda.cuModuleUnload(entry->module);
    return result;
}

// The entry of a context; of null: one that is not in use. Null without any.
static tw_loaded *tw_entry_of(const tw_variant *variant, const void *context) {
    for (tw_loaded *entry = variant->loaded; entry < variant->loaded + TW_CONTEXTS; entry++)
        if (__atomic_load_n(&entry->context, __ATOMIC_ACQUIRE) == context)
            return entry;
    return NULL;
}

// Load the code of a variant at its first use in a context.
static int tw_need_code(const tw_kernel *kernel, const tw_variant *variant, void *context,
                        tw_loaded **found) {
    int result = TILEWRIGHT_OK;
    if ((*found = tw_entry_of(variant, context)) != NULL)
        return result;
    tw_acquire();
    if ((*found = tw_entry_of(variant, context)) == NULL) {
        *found = tw_entry_of(variant, NULL);
        result = *found ? tw_load_code(kernel, variant, *found)
                        : tw_fail(TILEWRIGHT_DRIVER_ERROR, "%s: used in more than %d contexts",
                                  kernel->name, TW_CONTEXTS);
        if (!result)
            __atomic_store_n(&(*found)->context, context, __ATOMIC_RELEASE);
    }
    tw_release();
    return result;
}

// Unload the code of a variant from the current context, which runs no launch of it.
static int tw_unload_code(const tw_kernel *kernel, const tw_variant *variant,
                          const tilewright_queue *queue) {
    void *context;
    int result = tw_need_context(kernel, queue, &context), status = 0;
    if (result)
        return result;
    tw_acquire();
    tw_loaded *entry = tw_entry_of(variant, context);
    if (entry) {
        if (entry->empty)
            tw_cuda.cuMemFree_v2(entry->empty);
        entry->empty = 0;
        status = tw_cuda.cuModuleUnload(entry->module);
        __atomic_store_n(&entry->context, NULL, __ATOMIC_RELEASE);
    }
    tw_release();
    return status ? tw_status(kernel->name, "cuModuleUnload", status) : TILEWRIGHT_OK;
}

static uint64_t tw_number_of(const tw_number *number, const uint64_t *args) {
    int64_t value = number->argument < 0 ? 0 : (int64_t)args[number->argument];
    return (uint64_t)tw_divide(tw_add(value, number->constant), number->divisor);
}

// Zeros in the context, for maps of arrays without elements, which the driver refuses.
static int tw_need_empty(const tw_kernel *kernel, tw_loaded *entry, uint64_t *address) {
    enum { BYTES = 128 };
    int status = 0;
    tw_acquire();
    if (!entry->empty && (status = tw_cuda.cuMemAlloc_v2(&entry->empty, BYTES)) == 0 &&
        (status = tw_cuda.cuMemsetD8_v2(entry->empty, 0, BYTES)) != 0) {
        tw_cuda.cuMemFree_v2(entry->empty);
        entry->empty = 0;
    }
    *address = entry->empty;
    tw_release();
    return status ? tw_status(kernel->name, "cuMemAlloc", status) : TILEWRIGHT_OK;
}

// The numbers of a map: base, extents, and strides in bytes from dimension 1 on.
static int tw_map_words(const tw_kernel *kernel, const tw_map *map, const uint64_t *args,
                        tw_loaded *entry, uint64_t *words) {
    enum { ANY_STRIDE = 16 }; // of a dimension of one index
    bool empty = false;
    words[0] = args[map->base];
    for (int32_t d = 0; d < map->rank; d++) {
        words[1 + d] = tw_number_of(map->dims + d, args);
        empty |= (int64_t)words[1 + d] <= 0;
    }
    for (int32_t d = 0; empty && d < map->rank; d++)
        words[1 + d] = 1;
    for (int32_t d = 1; d < map->rank; d++)
        words[map->rank + d] = words[1 + d] == 1 || empty ? ANY_STRIDE
                                                          : tw_number_of(map->strides + d, args) *
                                                                (uint64_t)map->element_bytes;
    return empty ? tw_need_empty(kernel, entry, words) : TILEWRIGHT_OK;
}

// Encode a tensor map. words: those of tw_map_words
static int tw_encode(const tw_kernel *kernel, const tw_map *map, const uint64_t *words, void *to) {
    enum { PROMOTED_TO_128_BYTES = 2, INVALID_VALUE = 1 };
    static const uint32_t steps[TW_RANK] = {1, 1, 1, 1, 1};
    if (!tw_cuda.cuTensorMapEncodeTiled)
        return tw_no_function("cuTensorMapEncodeTiled");
    int status = tw_cuda.cuTensorMapEncodeTiled(
        to, map->element, (uint32_t)map->rank, (void *)(uintptr_t)words[0], words + 1,
        words + 1 + map->rank, map->box, steps, 0, map->swizzle, PROMOTED_TO_128_BYTES, 0);
    if (status == INVALID_VALUE)
        return tw_fail(TILEWRIGHT_MISALIGNED,
                       "%s: the array '%s' (%#llx) or one of its strides is not a multiple of 16 "
                       "bytes, as TMA requires",
                       kernel->name, kernel->names[map->base], (unsigned long long)words[0]);
    return status ? tw_status(kernel->name, "cuTensorMapEncodeTiled", status) : TILEWRIGHT_OK;
}

// A map that a thread has encoded, and the words that decide it.
typedef struct {
    const tw_map *map;
    uint64_t words[TW_MAP_WORDS];
    uint64_t bytes[16];
} tw_encoded;

// The place of a map in this thread's cache: it is there, or replaces another one.
static tw_encoded *tw_cached(const tw_map *map, const uint64_t *words) {
    enum { CACHED = 32, PROBES = 4 };
    static __thread tw_encoded cache[CACHED];
    static __thread uint32_t turn;
    uint64_t hash = (uint64_t)(uintptr_t)map;
    for (int32_t i = 0; i < TW_MAP_WORDS; i++)
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
    int32_t first = (int32_t)(hash >> 61) * PROBES;
    for (tw_encoded *each = cache + first; each < cache + first + PROBES; each++)
        if (each->map == map && memcmp(each->words, words, sizeof each->words) == 0)
            return each;
    tw_encoded *victim = cache + first + turn++ % PROBES;
    victim->map = NULL;
    return victim;
}

// Copy the map for the arguments of a launch.
static int tw_copy_map(const tw_kernel *kernel, const tw_map *map, const uint64_t *args,
                       tw_loaded *entry, void *to) {
    uint64_t words[TW_MAP_WORDS] = {0};
    int result = tw_map_words(kernel, map, args, entry, words);
    if (result)
        return result;
    tw_encoded *cached = tw_cached(map, words);
    if (!cached->map) {
        if ((result = tw_encode(kernel, map, words, to)) != 0)
            return result;
        memcpy(cached->words, words, sizeof words);
        memcpy(cached->bytes, to, sizeof cached->bytes);
        cached->map = map;
    }
    memcpy(to, cached->bytes, sizeof cached->bytes);
    return TILEWRIGHT_OK;
}

// Blocks along x. Those that run several programs are all along x; of pairs of them, the last block
// may have no program.
static int64_t tw_block_count(const tw_loaded *entry, const int64_t *grid) {
    const tw_cuda_code *code = entry->code;
    if (!code->resident)
        return grid[0] * code->cluster;
    int64_t most = (int64_t)code->resident * entry->processors;
    most -= most & code->pairs;
    int64_t layers = tw_minimum(grid[1] < most ? grid[1] * tw_minimum(grid[2], most) : most, most);
    int64_t programs = tw_minimum(grid[0], most) * layers;
    return tw_minimum(programs + (programs & code->pairs), most);
}

// Call the driver. blocks: along x
static int tw_call_driver(const tw_kernel *kernel, const tw_loaded *entry, uint32_t blocks,
                          const int64_t *grid, void *stream, void **params) {
    const tw_cuda_code *code = entry->code;
    uint32_t y = code->resident ? 1 : (uint32_t)grid[1], z = code->resident ? 1 : (uint32_t)grid[2];
    uint32_t cluster = code->pairs ? 2 : code->cluster > 1 ? code->cluster : 0;
    const uint32_t wanted[][2] = {{TW_CLUSTER, cluster},
                                  {TW_COOPERATIVE, code->cooperative},
                                  {TW_DEPENDENT, code->dependent}};
    tw_attribute attributes[3];
    tw_config config = {{blocks, y, z}, {code->threads, 1, 1}, code->shared, stream, attributes, 0};
    for (int i = 0; i < 3; i++)
        if (wanted[i][1]) {
            uint32_t others = wanted[i][0] == TW_CLUSTER; // along y and z
            attributes[config.attribute_count++] =
                (tw_attribute){wanted[i][0], 0, {{wanted[i][1], others, others}}};
        }
    if (!config.attribute_count)
        TW_TRY(cuLaunchKernel, entry->function, blocks, y, z, code->threads, 1, 1, code->shared,
               stream, params, NULL);
    else if (tw_cuda.cuLaunchKernelEx)
        TW_TRY(cuLaunchKernelEx, &config, entry->function, params, NULL);
    else
        return tw_no_function("cuLaunchKernelEx");
    return TILEWRIGHT_OK;
}

// Launch a variant in the current context.
static int tw_run_cuda(const tw_kernel *kernel, const tw_variant *variant,
                       const tilewright_queue *queue, uint64_t *args, const int64_t *grid) {
    void *context;
    tw_loaded *entry;
    int result = tw_need_context(kernel, queue, &context);
    if (!result)
        result = tw_need_code(kernel, variant, context, &entry);
    if (result || !grid[0] || !grid[1] || !grid[2])
        return result;
    const tw_cuda_code *code = entry->code;
    uint64_t maps[TW_MAPS * 16 + 8];
    uint64_t *aligned = (uint64_t *)(((uintptr_t)maps + 63) & ~(uintptr_t)63);
    int32_t sizes[3] = {(int32_t)grid[0], (int32_t)grid[1], (int32_t)grid[2]};
    void *params[TW_WORDS + 3 + TW_MAPS];
    int32_t count = variant->passed_count;
    for (int32_t i = 0; i < count; i++)
        params[i] = args + variant->passed[i];
    for (int32_t i = 0; code->resident && i < 3; i++)
        params[count++] = sizes + i;
    for (int32_t i = 0; i < code->map_count; i++) {
        params[count++] = aligned + 16 * i;
        if ((result = tw_copy_map(kernel, code->maps + i, args, entry, aligned + 16 * i)) != 0)
            return result;
    }
    int64_t blocks = tw_block_count(entry, grid);
    if (blocks > INT32_MAX || (!code->resident && (grid[1] > 65535 || grid[2] > 65535)))
        return tw_fail(TILEWRIGHT_BAD_GRID,
                       "%s: CUDA launches at most (2**31 - 1, 65535, 65535) blocks, not (%lld, "
                       "%lld, %lld)",
                       kernel->name, (long long)blocks, (long long)grid[1], (long long)grid[2]);
    return tw_call_driver(kernel, entry, (uint32_t)blocks, grid, queue->stream, params);
}
