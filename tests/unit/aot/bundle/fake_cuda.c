// A library in the place of CUDA's driver: prints each launch. The variables of the environment are
// FAKE_CAPABILITY (90), and FAKE_FAIL, the name of a function that returns 999. With OLD_DRIVER, it
// lacks the functions of CUDA 11.8 and later.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread void *current;
static int memory[64];

static int status(const char *name) {
    const char *failing = getenv("FAKE_FAIL");
    return failing && strcmp(failing, name) == 0 ? 999 : 0;
}

int cuInit(unsigned flags) { return status("cuInit") + (int)flags; }

int cuGetErrorName(int code, const char **name) {
    *name = code == 999 ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_OTHER";
    return 0;
}

int cuGetErrorString(int code, const char **text) {
    *text = code == 999 ? "unknown error" : "another error";
    return 0;
}

int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal < 2 ? 0 : 101;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    int capability = getenv("FAKE_CAPABILITY") ? atoi(getenv("FAKE_CAPABILITY")) : 90;
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 4;
    return device < 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = memory + device;
    return 0;
}

int cuCtxGetCurrent(void **context) {
    *context = current;
    return 0;
}

int cuCtxSetCurrent(void *context) {
    current = context;
    return 0;
}

int cuCtxGetDevice(int *device) {
    *device = (int)((int *)current - memory);
    return 0;
}

int cuModuleLoadData(void **module, const char *image) {
    *module = (void *)image;
    printf("load %s\n", memcmp(image, "\177ELF", 4) ? "PTX" : "cubin");
    return status("cuModuleLoadData");
}

int cuModuleUnload(void *module) {
    printf("unload\n");
    return module == NULL;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = (void *)name;
    return module ? status("cuModuleGetFunction") : 1;
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
    printf("attribute %d of %s is %d\n", attribute, (const char *)function, value);
    return 0;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **params,
                   void **extra) {
    printf("launch %s (%u, %u, %u) of %u threads, %u bytes, stream %p: %d %p\n",
           (const char *)function, x, y, z, block_x * block_y * block_z, shared, stream,
           *(int *)params[3], (void *)extra);
    return status("cuLaunchKernel");
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    printf("allocate\n");
    *address = (uint64_t)(uintptr_t)aligned_alloc(128, bytes);
    return 0;
}

int cuMemFree_v2(uint64_t address) {
    printf("free\n");
    free((void *)(uintptr_t)address);
    return 0;
}

int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t bytes) {
    memset((void *)(uintptr_t)address, value, bytes);
    return status("cuMemsetD8_v2");
}

#ifndef OLD_DRIVER
struct config {
    unsigned grid[3], block[3], shared;
    void *stream;
    struct {
        unsigned id, padding, value[16];
    } *attributes;
    unsigned count;
};

int cuLaunchKernelEx(const struct config *config, void *function, void **params, void **extra) {
    printf("launch %s (%u, %u, %u) of %u threads by %u attributes, the first %u = %u: %p %p\n",
           (const char *)function, config->grid[0], config->grid[1], config->grid[2],
           config->block[0], config->count, config->attributes[0].id,
           config->attributes[0].value[0], params[0], (void *)extra);
    return status("cuLaunchKernelEx");
}

int cuTensorMapEncodeTiled(void *map, int element, unsigned rank, void *base, const uint64_t *dims,
                           const uint64_t *strides, const unsigned *box, const unsigned *steps,
                           int interleave, int swizzle, int promotion, int fill) {
    printf("map %p: element %d, %u dims %llu %llu, stride %llu, box %u %u, swizzle %d\n",
           (void *)((uintptr_t)base & 0xfff), element, rank, (unsigned long long)dims[0],
           (unsigned long long)dims[1], (unsigned long long)strides[0], box[0], box[1], swizzle);
    memset(map, 1, 128);
    return (uintptr_t)base % 16 || (uintptr_t)map % 64 || steps[0] != 1 || interleave ||
           promotion != 2 || fill;
}
#endif
