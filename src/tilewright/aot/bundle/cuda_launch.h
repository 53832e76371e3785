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

// Functions of the driver; a letter of the table below is the type of a parameter.
static struct {
    int (*init)(uint32_t flags);
    int (*error_name)(int status, const char **name);
    int (*error_text)(int status, const char **text);
    int (*device)(int32_t *device, int32_t ordinal);
    int (*device_attribute)(int32_t *value, int32_t attribute, int32_t device);
    int (*retain)(void **context, int32_t device);
    int (*current)(void **context);
    int (*set_current)(void *context);
    int (*device_of_current)(int32_t *device);
    int (*load)(void **module, const void *image);
    int (*unload)(void *module);
    int (*function)(void **function, void *module, const char *name);
    int (*set_attribute)(void *function, int32_t attribute, int32_t value);
    int (*launch)(void *function, uint32_t x, uint32_t y, uint32_t z, uint32_t block_x,
                  uint32_t block_y, uint32_t block_z, uint32_t shared, void *stream, void **params,
                  void **extra);
    int (*launch_by_config)(const tw_config *config, void *function, void **params, void **extra);
    int (*allocate)(uint64_t *address, size_t bytes);
    int (*clear)(uint64_t address, uint8_t value, size_t bytes);
    int (*encode)(void *map, int32_t element, uint32_t rank, void *base, const uint64_t *dims,
                  const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                  int32_t interleave, int32_t swizzle, int32_t promotion, int32_t fill);
} tw_cuda;

// clang-format off
static const char *const tw_cuda_names[] = {
    "cuInit", "cuGetErrorName", "cuGetErrorString", "cuDeviceGet", "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain", "cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxGetDevice",
    "cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuFuncSetAttribute",
    "cuLaunchKernel", "cuLaunchKernelEx", "cuMemAlloc_v2", "cuMemsetD8_v2",
    "cuTensorMapEncodeTiled"};
// clang-format on
enum { TW_CUDA_NEEDED = 14, TW_CUDA_FUNCTIONS = sizeof tw_cuda_names / sizeof *tw_cuda_names };

static int tw_status(const char *kernel, const char *call, int status) {
    const char *name = NULL, *text = NULL;
    tw_cuda.error_name(status, &name);
    tw_cuda.error_text(status, &text);
    return tw_fail(TILEWRIGHT_DRIVER_ERROR, "%s: %s returned %d, %s: %s", kernel, call, status,
                   name ? name : "an unknown error", text ? text : "no description");
}

// Load the driver's library; the lock is held.
static int tw_load_driver(void) {
    void *library = tw_open_library(TW_DRIVER);
    if (!library)
        return tw_fail(TILEWRIGHT_NO_DRIVER, "CUDA's driver (%s) is not installed", TW_DRIVER);
    void *functions[TW_CUDA_FUNCTIONS];
    for (int i = 0; i < (int)TW_CUDA_FUNCTIONS; i++) {
        functions[i] = (void *)tw_find_function(library, tw_cuda_names[i]);
        if (!functions[i] && i < TW_CUDA_NEEDED)
            return tw_fail(TILEWRIGHT_NO_DRIVER, "CUDA's driver (%s) has no function %s", TW_DRIVER,
                           tw_cuda_names[i]);
    }
    memcpy((void *)&tw_cuda, functions, sizeof functions);
    int status = tw_cuda.init(0);
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
    int32_t device = queue->device < 0 ? 0 : queue->device;
    int status = tw_cuda.current(context);
    if (status)
        return tw_status(kernel->name, "cuCtxGetCurrent", status);
    if (*context && queue->device >= 0) {
        int32_t current = -1;
        tw_cuda.device_of_current(&current);
        if (current != device)
            return tw_fail(TILEWRIGHT_WRONG_DEVICE,
                           "%s: the queue is of device %d, the current context of device %d",
                           kernel->name, device, current);
    }
    if (*context)
        return TILEWRIGHT_OK;
    int32_t handle;
    if ((status = tw_cuda.device(&handle, device)) != 0)
        return tw_status(kernel->name, "cuDeviceGet", status);
    if ((status = tw_cuda.retain(context, handle)) != 0)
        return tw_status(kernel->name, "cuDevicePrimaryCtxRetain", status);
    if ((status = tw_cuda.set_current(*context)) != 0)
        return tw_status(kernel->name, "cuCtxSetCurrent", status);
    return TILEWRIGHT_OK;
}

// Whether code runs on a capability: cubins within a major version, PTX on later ones, too.
static bool tw_serves(const tw_cuda_code *code, int32_t capability) {
    if (code->exact == 1)
        return code->capability == capability;
    bool same = code->capability / 10 == capability / 10;
    return code->capability <= capability && (same || code->exact == 2);
}

static const tw_cuda_code *tw_cuda_code_of(const tw_variant *variant, int32_t capability) {
    const tw_cuda_code *best = NULL;
    for (int32_t i = 0; i < variant->cuda_count; i++) {
        const tw_cuda_code *code = variant->cuda + i;
        if (tw_serves(code, capability) && (!best || best->exact == 2 || code->exact != 2))
            best = code;
    }
    return best;
}

// The failure for a device without code, which lists what there is.
static int tw_no_cuda_code(const tw_kernel *kernel, const tw_variant *variant, int32_t capability) {
    tw_fail(TILEWRIGHT_WRONG_DEVICE,
            "%s: the device has compute capability %d.%d, and the bundle "
            "has code for",
            kernel->name, capability / 10, capability % 10);
    for (int32_t i = 0; i < variant->cuda_count; i++)
        tw_append(" sm_%d%s", variant->cuda[i].capability,
                  variant->cuda[i].exact == 2 ? " and later" : "");
    if (variant->cuda_count == 0)
        tw_append(" CPUs only");
    return TILEWRIGHT_WRONG_DEVICE;
}

// Load the code of a variant into the current context; the lock is held.
static int tw_load_code(const tw_kernel *kernel, const tw_variant *variant, tw_loaded *entry) {
    enum { MAJOR = 75, MINOR = 76, PROCESSORS = 16, SHARED_LIMIT = 8, LARGE_CLUSTERS = 14 };
    int32_t device = 0, major = 0, minor = 0, processors = 0;
    tw_cuda.device_of_current(&device);
    tw_cuda.device_attribute(&major, MAJOR, device);
    tw_cuda.device_attribute(&minor, MINOR, device);
    tw_cuda.device_attribute(&processors, PROCESSORS, device);
    const tw_cuda_code *code = tw_cuda_code_of(variant, 10 * major + minor);
    if (!code)
        return tw_no_cuda_code(kernel, variant, 10 * major + minor);
    void *module, *function;
    int status = tw_cuda.load(&module, code->image);
    if (status)
        return tw_status(kernel->name, "cuModuleLoadData", status);
    if ((status = tw_cuda.function(&function, module, code->symbol)) != 0)
        return tw_status(kernel->name, "cuModuleGetFunction", status);
    if (code->shared > 48 << 10 &&
        (status = tw_cuda.set_attribute(function, SHARED_LIMIT, (int32_t)code->shared)) != 0)
        return tw_status(kernel->name, "cuFuncSetAttribute", status);
    if (code->cluster > 8 && (status = tw_cuda.set_attribute(function, LARGE_CLUSTERS, 1)) != 0)
        return tw_status(kernel->name, "cuFuncSetAttribute", status);
    entry->module = module;
    entry->function = function;
    entry->code = code;
    entry->processors = processors;
    return TILEWRIGHT_OK;
}

// The entry of a context, or an empty one; null if all are those of others.
static tw_loaded *tw_entry_of(const tw_variant *variant, void *context) {
    tw_loaded *empty = NULL;
    for (tw_loaded *entry = variant->loaded; entry < variant->loaded + TW_CONTEXTS; entry++) {
        void *owner = __atomic_load_n(&entry->context, __ATOMIC_ACQUIRE);
        if (owner == context)
            return entry;
        if (!owner && !empty)
            empty = entry;
    }
    return empty;
}

// Load the code of a variant at its first use in a context.
static int tw_need_code(const tw_kernel *kernel, const tw_variant *variant, void *context,
                        tw_loaded **found) {
    *found = tw_entry_of(variant, context);
    if (*found && __atomic_load_n(&(*found)->context, __ATOMIC_ACQUIRE) == context)
        return TILEWRIGHT_OK;
    int result = TILEWRIGHT_OK;
    tw_acquire();
    tw_loaded *entry = *found = tw_entry_of(variant, context);
    if (!entry)
        result = tw_fail(TILEWRIGHT_DRIVER_ERROR, "%s: used in more than %d contexts", kernel->name,
                         TW_CONTEXTS);
    else if (!entry->context && (result = tw_load_code(kernel, variant, entry)) == TILEWRIGHT_OK)
        __atomic_store_n(&entry->context, context, __ATOMIC_RELEASE);
    tw_release();
    return result;
}

// Unload the code of a variant from the current context, which runs no launch of it.
static int tw_unload_code(const tw_kernel *kernel, const tw_variant *variant, void *context) {
    int status = 0;
    tw_acquire();
    tw_loaded *entry = tw_entry_of(variant, context);
    if (entry && entry->context == context) {
        status = tw_cuda.unload(entry->module);
        __atomic_store_n(&entry->context, NULL, __ATOMIC_RELEASE);
    }
    tw_release();
    return status ? tw_status(kernel->name, "cuModuleUnload", status) : TILEWRIGHT_OK;
}

static uint64_t tw_number_of(const tw_number *number, const uint64_t *args) {
    int64_t value = number->argument < 0 ? 0 : (int64_t)args[number->argument];
    return (uint64_t)tw_divide(value + number->constant, number->divisor);
}

// Memory of the context for a map of an array without elements, which the driver refuses.
static int tw_need_empty(const tw_kernel *kernel, tw_loaded *entry, uint64_t *address) {
    enum { BYTES = 128 };
    int status = 0;
    tw_acquire();
    if (!entry->empty && (status = tw_cuda.allocate(&entry->empty, BYTES)) == 0)
        status = tw_cuda.clear(entry->empty, 0, BYTES);
    *address = entry->empty;
    tw_release();
    return status ? tw_status(kernel->name, "cuMemAlloc", status) : TILEWRIGHT_OK;
}

// Encode a tensor map. words: base, extents, strides in bytes
static int tw_encode(const tw_kernel *kernel, const tw_map *map, const uint64_t *words,
                     tw_loaded *entry, void *to) {
    enum { PROMOTED_TO_128_BYTES = 2, INVALID_VALUE = 1, ANY_STRIDE = 16 };
    static const uint32_t steps[TW_RANK] = {1, 1, 1, 1, 1};
    uint64_t base = words[0], dims[TW_RANK], strides[TW_RANK] = {0};
    bool empty = false;
    for (int32_t d = 0; d < map->rank; d++) {
        dims[d] = words[1 + d];
        empty |= (int64_t)dims[d] <= 0;
        if (d > 0) // a dimension of one index has no stride
            strides[d - 1] = dims[d] == 1 ? ANY_STRIDE : words[map->rank + d];
    }
    for (int32_t d = 0; empty && d < map->rank; d++)
        dims[d] = 1, strides[d] = ANY_STRIDE;
    int result = empty ? tw_need_empty(kernel, entry, &base) : TILEWRIGHT_OK;
    if (result)
        return result;
    if (!tw_cuda.encode)
        return tw_fail(TILEWRIGHT_NO_DRIVER, "%s: CUDA's driver has no cuTensorMapEncodeTiled",
                       kernel->name);
    int status =
        tw_cuda.encode(to, map->element, (uint32_t)map->rank, (void *)(uintptr_t)base, dims,
                       strides, map->box, steps, 0, map->swizzle, PROMOTED_TO_128_BYTES, 0);
    if (status == INVALID_VALUE)
        return tw_fail(TILEWRIGHT_MISALIGNED,
                       "%s: the array '%s' (%#llx) or one of its strides is not a multiple of 16 "
                       "bytes, as TMA requires",
                       kernel->name, kernel->names[map->base], (unsigned long long)base);
    return status ? tw_status(kernel->name, "cuTensorMapEncodeTiled", status) : TILEWRIGHT_OK;
}

// A map that a thread has encoded, and the words that decide it.
typedef struct {
    const tw_map *map;
    const tw_loaded *entry;
    uint64_t words[TW_MAP_WORDS];
    uint64_t bytes[16];
} tw_encoded;

// The place of a map in this thread's cache: it is there, or replaces another one.
static tw_encoded *tw_cached(const tw_map *map, const tw_loaded *entry, const uint64_t *words) {
    enum { CACHED = 32, PROBES = 4 };
    static __thread tw_encoded cache[CACHED];
    static __thread uint32_t turn;
    uint64_t hash = (uint64_t)(uintptr_t)map;
    for (int32_t i = 0; i < TW_MAP_WORDS; i++)
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
    int32_t first = (int32_t)(hash >> 61) * PROBES;
    for (tw_encoded *each = cache + first; each < cache + first + PROBES; each++)
        if (each->map == map && each->entry == entry &&
            memcmp(each->words, words, sizeof each->words) == 0)
            return each;
    tw_encoded *victim = cache + first + turn++ % PROBES;
    victim->map = NULL;
    return victim;
}

// Copy the map for the arguments of a launch.
static int tw_copy_map(const tw_kernel *kernel, const tw_map *map, const uint64_t *args,
                       tw_loaded *entry, void *to) {
    uint64_t words[TW_MAP_WORDS] = {args[map->base]};
    for (int32_t d = 0; d < map->rank; d++) {
        words[1 + d] = tw_number_of(map->dims + d, args);
        if (d > 0)
            words[map->rank + d] =
                tw_number_of(map->strides + d, args) * (uint64_t)map->element_bytes;
    }
    tw_encoded *cached = tw_cached(map, entry, words);
    if (!cached->map) {
        int result = tw_encode(kernel, map, words, entry, to);
        if (result)
            return result;
        cached->entry = entry;
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
static int tw_call_driver(const tw_loaded *entry, uint32_t blocks, const int64_t *grid,
                          void *stream, void **params) {
    const tw_cuda_code *code = entry->code;
    uint32_t y = code->resident ? 1 : (uint32_t)grid[1], z = code->resident ? 1 : (uint32_t)grid[2];
    bool plain = code->cluster == 1 && !code->pairs && !code->cooperative && !code->dependent;
    if (plain)
        return tw_cuda.launch(entry->function, blocks, y, z, code->threads, 1, 1, code->shared,
                              stream, params, NULL);
    tw_attribute attributes[3];
    tw_config config = {{blocks, y, z}, {code->threads, 1, 1}, code->shared, stream, attributes, 0};
    memset(attributes, 0, sizeof attributes);
    if (code->cluster > 1 || code->pairs) {
        tw_attribute *cluster = attributes + config.attribute_count++;
        cluster->id = TW_CLUSTER;
        cluster->value.numbers[0] = code->pairs ? 2 : code->cluster;
        cluster->value.numbers[1] = cluster->value.numbers[2] = 1;
    }
    if (code->cooperative) {
        attributes[config.attribute_count].id = TW_COOPERATIVE;
        attributes[config.attribute_count++].value.numbers[0] = 1;
    }
    if (code->dependent) {
        attributes[config.attribute_count].id = TW_DEPENDENT;
        attributes[config.attribute_count++].value.numbers[0] = 1;
    }
    return tw_cuda.launch_by_config(&config, entry->function, params, NULL);
}

// Launch a variant in the current context.
static int tw_run_cuda(const tw_kernel *kernel, const tw_variant *variant,
                       const tilewright_queue *queue, uint64_t *args, const int64_t *grid) {
    void *context;
    tw_loaded *entry;
    int result = tw_need_driver();
    if (!result)
        result = tw_need_context(kernel, queue, &context);
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
    int status = tw_call_driver(entry, (uint32_t)blocks, grid, queue->stream, params);
    return status ? tw_status(kernel->name, "cuLaunchKernel", status) : TILEWRIGHT_OK;
}
