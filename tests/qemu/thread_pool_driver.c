// Runs the thread pool without Python: launches of several shapes, one that is interrupted, one
// after `tw_stop`, and a crash. Prints a line for each part.

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "thread_pool_structures.h"

extern void tw_configure(int32_t threads, int32_t spin);
extern int32_t tw_launch(const KernelRecord *kernel, const void *args, int32_t x, int32_t y,
                         int32_t z, int64_t scratch_bytes);
extern void tw_stop(void);
extern int32_t tw_workers(void);
extern void tw_report_crashes(LatestKernels *latest);

enum { THREADS = 4, PROGRAMS = 3000 };

static int32_t runs[PROGRAMS];

// Kernels: see thread_pool.py.
static int64_t count(void *const *args, int64_t begin, int64_t end, const int32_t *grid,
                     char *scratch, int32_t *poll) {
    for (int64_t i = begin; i < end; i++) {
        __atomic_fetch_add(&runs[i], 1 + *(int32_t *)args[0], __ATOMIC_RELAXED);
        memset(scratch, (int)i, 1000);
    }
    return end;
}

static int64_t be_slow(void *const *args, int64_t begin, int64_t end, const int32_t *grid,
                       char *scratch, int32_t *poll) {
    while (begin < end && !__atomic_load_n(poll, __ATOMIC_RELAXED)) {
        usleep(1000);
        begin++;
    }
    return begin;
}

static int64_t crash(void *const *args, int64_t begin, int64_t end, const int32_t *grid,
                     char *scratch, int32_t *poll) {
    *(volatile int32_t *)16 = 1;
    return end;
}

// CPython, as far as a launch calls it: the handler of a signal has raised.
int PyGILState_Ensure(void) { return 0; }
void PyGILState_Release(int state) {}
int PyErr_CheckSignals(void) { return -1; }
void PyErr_Fetch(void **type, void **value, void **traceback) {
    *type = *value = *traceback = nullptr;
}
void *PyErr_Occurred(void) { return nullptr; }
void *PyEval_SaveThread(void) { return nullptr; }
void PyEval_RestoreThread(void *state) {}
void *PyLong_AsVoidPtr(void *object) { return object; }
int64_t PyLong_AsLongLong(void *object) { return (int64_t)object; }
void *PyLong_FromLongLong(int64_t value) { return (void *)value; }
const char *PyBytes_AsString(void *object) { return object; }

static void count_programs(void) {
    static const int32_t grids[][3] = {{1, 1, 1}, {7, 1, 1}, {30, 10, 10}, {2, 3, 5}};
    const int32_t more = 0;
    const void *args[] = {&more};
    KernelRecord kernel = {.code = (void *)count, .title = "count", .alone = 4};
    for (int i = 0; i < 400; i++) {
        const int32_t *grid = grids[i % 4];
        int32_t total = grid[0] * grid[1] * grid[2];
        memset(runs, 0, sizeof runs);
        int32_t status = tw_launch(&kernel, args, grid[0], grid[1], grid[2], 1000);
        for (int program = 0; program < PROGRAMS; program++)
            if (status != STATUS_DONE || runs[program] != (program < total))
                printf("launch %d, status %d: program %d ran %d times\n", i, status, program,
                       runs[program]);
    }
    printf("counted, %d workers\n", tw_workers());
}

int main(void) {
    static LatestKernels latest;
    setvbuf(stdout, nullptr, _IONBF, 0);
    tw_configure(THREADS, 1000);
    count_programs();
    KernelRecord slow = {.code = (void *)be_slow, .title = "be_slow"};
    printf("interrupted, status %d\n", tw_launch(&slow, nullptr, 1 << 20, 1, 1, 0));
    tw_stop();
    printf("stopped, %d workers\n", tw_workers());
    count_programs();
    tw_report_crashes(&latest);
    const char *names[] = {"n"};
    int64_t args[] = {-5};
    KernelRecord bad = {
        .code = (void *)crash, .title = "crash", .count = 1, .names = names, .kinds = "i"};
    tw_launch(&bad, args, 1, 1, 1, 0);
}
