// Before the thread pool's sources in a bundle: C23's words for a compiler of C99, and the
// definitions that Python makes when it loads the pool
// (backends/cpu/driver/thread_pool_program.py).

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wreturn-type"

#define alignas(bytes) __attribute__((aligned(bytes)))
#define nullptr ((void *)0)
#define static_assert(condition) _Static_assert(condition, "structure of the thread pool")

// The functions of Python that the pool calls: here no handler of a signal runs Python code.
typedef struct PyObject PyObject;
#define PyGILState_Ensure() 0
#define PyGILState_Release(state) (void)(state)
#define PyErr_CheckSignals() 0
#define PyErr_Fetch(type, value, traceback) (void)0
#define PyErr_Occurred() nullptr
#define PyEval_SaveThread() nullptr
#define PyEval_RestoreThread(state) (void)(state)
#define PyLong_AsVoidPtr(object) ((void *)(object))
#define PyBytes_AsString(object) ((void *)(object))
#define PyLong_AsLongLong(object) ((int64_t)(intptr_t)(object))
#define PyLong_FromLongLong(number) ((PyObject *)(intptr_t)(number))

static void pause_once(void) {
#if defined(__x86_64__)
    __asm__ volatile("pause");
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Numbers of Linux: <bits/sigaction.h> of glibc and musl.
static const int32_t sigbus = 7, sigaction_flags = 0x04 | 0x08000000 | 0x40000000, sig_setmask = 2;
static const int64_t sigaction_flags_at = 136, fault_address_at = 16;

// Every signal but faults and SIGPROF: all others are for the program's own threads.
static const char blocked_signals[128]
    __attribute__((aligned(16))) = {7, -5, -1, -69, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
