#ifndef TILEWRIGHT_BUNDLE_TYPES
#define TILEWRIGHT_BUNDLE_TYPES

#include <stddef.h>
#include <stdint.h>

/* The version of the types below and of the functions of a bundle. */
#define TILEWRIGHT_ABI 1

/* Results of the functions of a bundle. Each but the first has a sentence, which the function
   `..._error` of the bundle returns. */
enum {
    TILEWRIGHT_OK = 0,
    TILEWRIGHT_WRONG_VERSION = 1,   /* the program has another version of this header */
    TILEWRIGHT_WRONG_DEVICE = 2,    /* no code in the bundle runs on the device */
    TILEWRIGHT_MISSING_VARIANT = 3, /* no variant was built for these arguments */
    TILEWRIGHT_MISALIGNED = 4,      /* a pointer is less aligned than every variant requires */
    TILEWRIGHT_BAD_GRID = 5,        /* a negative or too large number of programs */
    TILEWRIGHT_NO_DRIVER = 6,       /* CUDA's driver is missing, or lacks a function */
    TILEWRIGHT_DRIVER_ERROR = 7,    /* CUDA's driver has returned an error */
    TILEWRIGHT_NO_MEMORY = 8,
    TILEWRIGHT_ASSERTION_FAILED = 9, /* device_assert */
    TILEWRIGHT_TOO_FEW_THREADS = 10, /* for programs that wait for each other */
    TILEWRIGHT_ENDLESS_WAIT = 11     /* programs have waited for others in vain */
};

/* Values of `kind`. */
enum { TILEWRIGHT_CPU = 0, TILEWRIGHT_CUDA = 1 };

/* A part of a launch on a CPU: runs part `index` of `job`. */
typedef void tilewright_part(void *job, int32_t index);

/* Where a launch runs. Begin with `tilewright_cpu` or `tilewright_cuda`, then set fields. */
typedef struct {
    uint32_t abi;    /* TILEWRIGHT_ABI */
    int32_t kind;    /* TILEWRIGHT_CPU or TILEWRIGHT_CUDA */
    int32_t threads; /* CPU: 0: the bundle's thread pool; 1: this thread; more: `parallel` */
    int32_t device;  /* CUDA: number of the device; -1: that of the current context, else 0 */
    void *stream;    /* CUDA: a CUstream of the device; null: the default stream */

    /* CPU: calls part(job, i) once for each i from 0 to threads - 1, on threads of the caller, and
       returns when all calls have. */
    void (*parallel)(void *context, tilewright_part *part, void *job, int32_t threads);
    void *context; /* of `parallel` */
} tilewright_queue;

static inline tilewright_queue tilewright_cpu(void) {
    tilewright_queue queue;
    queue.abi = TILEWRIGHT_ABI;
    queue.kind = TILEWRIGHT_CPU;
    queue.threads = 0;
    queue.device = -1;
    queue.stream = queue.context = NULL;
    queue.parallel = NULL;
    return queue;
}

static inline tilewright_queue tilewright_cuda(void *stream) {
    tilewright_queue queue = tilewright_cpu();
    queue.kind = TILEWRIGHT_CUDA;
    queue.stream = stream;
    return queue;
}

#endif
