// The launcher of one kernel in a shared library, as programs of AOTInductor call it. They have no
// Python, and may have no PyTorch but libtorch: threads are those of libtorch's OpenMP, and a
// failed assertion is its c10::Error.

#include "atomics.h"
#include "library_launcher_structures.h"

// The kernel's own definitions, from shared_libraries.py.
extern void pack(void *const *args, uint64_t *slots); // PyTorch's arguments into slots of 8 bytes
extern const int64_t slot_count;
extern const int64_t scratch_bytes;  // of each thread
extern const int64_t alone;          // programs of the largest grid that the caller runs by itself
extern const int64_t together;       // 1: programs wait for each other, so all must run at a time
extern const char kernel_title[];    // its name
extern const int32_t loaded_already; // flags of dlopen: RTLD_NOLOAD | RTLD_LAZY

// Functions of the C library.
extern void *dlopen(const char *library, int flags);
extern void *dlsym(void *library, const char *name);
extern void *aligned_alloc(size_t alignment, size_t bytes);
extern void free(void *memory);
[[gnu::format(printf, 3, 4)]] extern int snprintf(char *to, size_t bytes, const char *format, ...);
[[gnu::format(printf, 2, 3)]] extern int dprintf(int file, const char *format, ...);
[[noreturn]] extern void abort(void);

typedef int64_t Kernel(const void *args, int64_t begin, int64_t end, const int32_t *grid,
                       void *scratch, int32_t *poll);

// Functions of libtorch's OpenMP, and c10::detail::torchCheckFail.
static void (*omp_parallel)(void (*function)(LibraryJob *), LibraryJob *job, uint32_t team,
                            uint32_t flags);
static int32_t (*omp_max_threads)(void);
static int32_t (*omp_thread)(void);
static int32_t (*omp_team)(void);
static void (*torch_error)(const char *function, const char *file, uint32_t line, const char *text);

// The first failure.
enum { NO_FAILURE, WRITING, FAILED, READING };
static struct {
    int32_t state;
    const char *text;
    int32_t place[6]; // program, element
} failure;

// When the library is loaded: find the functions of libtorch, if the process has a libtorch.
[[gnu::constructor]] static void resolve(void) {
    void *torch = dlopen("libtorch_cpu.so", loaded_already);
    if (!torch)
        return;
    omp_parallel = dlsym(torch, "GOMP_parallel");
    omp_max_threads = dlsym(torch, "omp_get_max_threads");
    omp_thread = dlsym(torch, "omp_get_thread_num");
    omp_team = dlsym(torch, "omp_get_num_threads");
    torch_error = dlsym(torch, "_ZN3c106detail14torchCheckFailEPKcS2_jS2_");
}

// A function of the kernel's console: keep the first failure of a launch.
static void fail(const char *text, int32_t kind, int64_t bits, int32_t i, int32_t j, int32_t k,
                 int32_t x, int32_t y, int32_t z) {
    if (!replace_acq_rel(&failure.state, NO_FAILURE, WRITING))
        return;
    failure.text = text;
    const int32_t place[6] = {x, y, z, i, j, k};
    __builtin_memcpy(failure.place, place, sizeof place);
    store_release(&failure.state, FAILED);
}

// Fail for a reason that is not in the kernel.
static void fail_here(const char *text) { fail(text, 0, 0, -1, -1, -1, 0, 0, 0); }

// A function of the kernel's console. Python formats what is printed; here it is a failure.
static void print(const char *text, int32_t kind, int64_t bits, int32_t i, int32_t j, int32_t k,
                  int32_t x, int32_t y, int32_t z) {
    fail("device_print needs Python, which a shared library has not", 0, 0, -1, -1, -1, x, y, z);
}

static const void *const console[2] = {(void *)fail, (void *)print};

// Run the programs begin ... end - 1 on this thread.
static void run_range(LibraryJob *job, uint64_t begin, uint64_t end) {
    if (begin >= end)
        return;
    // one line at least, and a multiple of lines
    void *scratch = aligned_alloc(64, (scratch_bytes + 127) & -64);
    if (!scratch) {
        fail_here("no memory for the scratch");
        return;
    }
    Kernel *code = job->code;
    code(job->slots, begin, end, job->grid, scratch, &job->poll);
    free(scratch);
}

// The function of each thread of a team: its part of the grid, consecutive programs.
static void work(LibraryJob *job) {
    uint64_t thread = (uint32_t)omp_thread();
    uint64_t team = (uint32_t)omp_team();
    uint64_t total = job->total;
    if (together && team < total) // in each thread, so none waits
        fail_here("programs wait for each other, and have too few threads");
    else
        run_range(job, total * thread / team, total * (thread + 1) / team);
}

// How many threads share a grid: one where it is small, or where there is no OpenMP.
static uint32_t team_size(uint64_t total) {
    if (!omp_parallel || total <= (uint64_t)alone || total <= 1)
        return 1;
    if (together)
        return total;
    uint64_t most = (uint32_t)omp_max_threads();
    return total < most ? total : most;
}

// Throw the failure; without libtorch, write it to stderr and end the process.
static void report(void) {
    if (!replace_acq_rel(&failure.state, FAILED, READING))
        return;
    alignas(16) char message[1024];
    const int32_t *place = failure.place;
    snprintf(message, sizeof message, "%s failed in program (%d, %d, %d), at (%d, %d, %d): %s",
             kernel_title, place[0], place[1], place[2], place[3], place[4], place[5],
             failure.text);
    store_release(&failure.state, NO_FAILURE);
    if (torch_error) {
        torch_error(kernel_title, "Tilewright", 0, message);
        __builtin_unreachable();
    }
    dprintf(2, "%s\n", message);
    abort();
}

// Run the grid (x, y, z) of a kernel, whose function is `code`.
//   threads  ignored: PyTorch 2.13 always passes 1, and means the number that it uses
//   args     of each parameter of the source: a pointer itself, the address of a number, or null
// A failure is thrown as an exception of C++, so this function may unwind.
void run_from_nativert(uint32_t x, uint32_t y, uint32_t z, int32_t threads, void *const *args,
                       void *code) {
    uint64_t slots[slot_count + 1];
    pack(args, slots);
    slots[slot_count] = (uint64_t)console;
    uint64_t total = (uint64_t)x * y * z;
    LibraryJob job = {.code = code, .slots = slots, .total = total, .grid = {x, y, z}};
    uint32_t team = team_size(total);
    if (team == 1)
        run_range(&job, 0, total);
    else
        omp_parallel(work, &job, team, 0);
    if (load_acquire(&failure.state) == FAILED)
        report();
}
