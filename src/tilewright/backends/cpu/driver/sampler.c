// A sampling profiler: the handler of SIGPROF records the instruction that it interrupts.
//
// Python's own handlers see no native program counter. A timer of the process's CPU time
// (setitimer, ITIMER_PROF) sends the signal, which the kernel of the system delivers to the thread
// that is running; the handler stores the program counter and returns. It takes no lock, so it may
// interrupt anything.

#include "atomics.h"
#include "sampler_structures.h"

// What differs between processors and systems; defined when the program is loaded.
extern const int64_t counter_at; // of the program counter in ucontext_t, in bytes
extern const int64_t sigaction_flags_at;
extern const int32_t sigaction_flags;
extern const int32_t sigprof;

extern int sigaction(int signal, const void *action, void *previous);

// struct sigaction: the handler is first on every system.
typedef union {
    void *handler;
    alignas(16) char bytes[160];
} SigAction;

static SampleBuffer *buffer; // null: samples are dropped
static SigAction previous;

static void sampled(int signal, void *info, const char *context) {
    SampleBuffer *into = load_acquire(&buffer);
    if (!into)
        return;
    uint64_t index = add_relaxed(&into->count, 1);
    uint64_t *counters = into->counters;
    if (index < into->capacity)
        __builtin_memcpy(&counters[index], context + counter_at, sizeof(uint64_t));
}

// Record samples into a buffer, which must live as long as the process: a handler may be in it.
// Returns 0 or the error of sigaction.
int32_t tw_start_samples(SampleBuffer *into) {
    store_release(&buffer, into);
    SigAction action = {0};
    action.handler = (void *)sampled;
    __builtin_memcpy(action.bytes + sigaction_flags_at, &sigaction_flags, sizeof sigaction_flags);
    return sigaction(sigprof, &action, &previous);
}

// Restore the previous handler.
void tw_stop_samples(void) {
    store_release(&buffer, nullptr);
    sigaction(sigprof, &previous, nullptr);
}
