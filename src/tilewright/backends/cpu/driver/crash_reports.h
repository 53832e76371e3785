// Reports of crashes: the kernel, its programs and its arguments; or the latest kernels.
//
// A handler of SIGSEGV, SIGBUS, SIGILL and SIGFPE checks whether its thread is running a kernel of
// this pool (`run` records it), writes the report to stderr, restores the previous handler, and
// returns: the faulting instruction runs again, and the process dies as it would have without the
// handler, with faulthandler's traceback where that is on. A signal that was sent is sent again.
//
// A crash elsewhere, or an abort, may be a late effect of a kernel: a store outside of an array
// often hits memory of the allocator, which detects it when it frees some ("double free or
// corruption"). Then the report names the latest different kernels, once in a process, if there are
// any.
#pragma once

#include "thread_pool_state.h"

enum { SIGILL = 4, SIGABRT = 6, SIGFPE = 8, SIGSEGV = 11, SIGNALS = 32, STDERR = 2 };
enum { REPORT_MICROSECONDS = 200000 };

// What differs between systems; defined when the program is loaded. Offsets are in bytes.
extern const int32_t sigbus;
extern const int32_t sigaction_flags;
extern const int64_t sigaction_flags_at;
extern const int64_t fault_address_at;

// struct sigaction: the handler is first on every system.
typedef union {
    void *handler;
    alignas(16) char bytes[160];
} SigAction;

// The beginning of siginfo_t.
typedef struct {
    int32_t signal;
    int32_t error;
    int32_t code; // at most 0 if the signal was sent
} SigInfo;

static SigAction previous_actions[SIGNALS]; // by number of the signal
static uint64_t reporter;                   // thread that writes a report
static LatestKernels *latest;               // null: no reports

// Record the launch of a kernel. Pools that launch at the same time may lose one of their records.
static void record_kernel(const KernelRecord *kernel) {
    if (!latest)
        return;
    uint64_t count = load_relaxed(&latest->count);
    if (load_relaxed(&latest->titles[count % LATEST_KERNELS]) == kernel->title)
        return;
    store_relaxed(&latest->titles[(count + 1) % LATEST_KERNELS], (void *)kernel->title);
    store_relaxed(&latest->count, count + 1);
}

// Write a text by `write`, which a handler of any thread may call, whatever lock the thread holds.
static void put(const char *text) { write(STDERR, text, strlen(text)); }

// The name of a signal that damaged memory may cause, else null.
static const char *signal_name(int signal) {
    if (signal == SIGABRT)
        return "SIGABRT";
    if (signal == SIGSEGV)
        return "SIGSEGV";
    return signal == sigbus ? "SIGBUS" : nullptr;
}

// Report a crash that is not in a kernel.
static void report_latest_kernels(int signal) {
    const char *name = signal_name(signal);
    if (!latest || !name || latest->count == 0 || exchange_ordered(&latest->reported, 1))
        return;
    put("\ntilewright: ");
    put(name);
    put(", but not in a kernel. The kernels that were launched last:\n");
    uint64_t count = latest->count;
    for (uint64_t i = 0; i < count && i < LATEST_KERNELS; i++) {
        put("  ");
        put(latest->titles[(count - i) % LATEST_KERNELS]);
        put("\n");
    }
    put("One that stores outside its arrays damages memory that may be used much later.\n"
        "TILEWRIGHT_CHECK=bounds checks every access, and names the line of a wrong one;\n"
        "TILEWRIGHT_CRASH_REPORTS=0 turns this report off.\n\n");
}

// An integer argument of the type with this code of Python's `struct`.
static int64_t integer_value(int kind, uint64_t bits) {
    switch (kind) {
    case 'b':
        return (int8_t)bits;
    case 'h':
        return (int16_t)bits;
    case 'i':
        return (int32_t)bits;
    case '?':
    case 'B':
        return (uint8_t)bits;
    case 'H':
        return (uint16_t)bits;
    case 'I':
        return (uint32_t)bits;
    default:
        return bits;
    }
}

// A line for an argument, 64 bits of the type `kind`: a code of Python's `struct`, P for a pointer.
static void report_argument(const char *name, int kind, uint64_t bits) {
    uint32_t low = bits;
    float single;
    double wide;
    __builtin_memcpy(&single, &low, sizeof single);
    __builtin_memcpy(&wide, &bits, sizeof wide);
    switch (kind) {
    case 'P':
    case 'Q':
        dprintf(STDERR, "  %s = %#llx\n", name, (unsigned long long)bits);
        break;
    case 'f':
        dprintf(STDERR, "  %s = %g\n", name, single);
        break;
    case 'd':
        dprintf(STDERR, "  %s = %g\n", name, wide);
        break;
    case 'e':
        dprintf(STDERR, "  %s = %#llx (bits of a half)\n", name, bits & 0xffffull);
        break;
    default:
        dprintf(STDERR, "  %s = %lld\n", name, (long long)integer_value(kind, bits));
    }
}

// The description of a fault in a report.
static const char *fault_text(int signal) {
    switch (signal) {
    case SIGILL:
        return "SIGILL: an instruction that this CPU does not have";
    case SIGFPE:
        return "SIGFPE: an integer division by zero, or one whose quotient is out of range";
    case SIGSEGV:
        return "SIGSEGV: an access to memory that is not there";
    default:
        return "SIGBUS: an access to memory that is not there";
    }
}

// Report a crash of the kernel that a thread runs. POSIX does not list `dprintf` as safe in
// handlers; but the thread is in a kernel, which never holds a lock of the C library, and dies
// anyway.
static void report_kernel(int signal, const char *info, const ThreadSlot *slot) {
    const KernelRecord *kernel = slot->kernel;
    void *address;
    __builtin_memcpy(&address, info + fault_address_at, sizeof address);
    dprintf(STDERR, "\ntilewright: %s in %s\n  at address %p\n", fault_text(signal),
            (const char *)kernel->title, address);
    dprintf(STDERR, "  programs %lld to %lld (x fastest) of the grid (%d, %d, %d)\n",
            (long long)slot->begin, (long long)slot->end - 1, pool.grid[0], pool.grid[1],
            pool.grid[2]);
    const char *const *names = kernel->names;
    const char *kinds = kernel->kinds;
    const uint64_t *args = slot->args;
    for (int64_t i = 0; i < kernel->count; i++)
        report_argument(names[i], kinds[i], args[i]);
    dprintf(STDERR, "An access outside the arrays is the usual cause. TILEWRIGHT_CHECK=bounds\n"
                    "checks every access, and names the line of a wrong one.\n\n");
}

// The slot of a thread that is running a kernel; null if it runs none.
static ThreadSlot *busy_slot(uint64_t thread) {
    for (int32_t i = 0; i < pool.threads; i++) {
        ThreadSlot *slot = &pool.slots[i];
        if (VOLATILE(slot->thread) == thread && VOLATILE(slot->kernel))
            return slot;
    }
    return nullptr;
}

// Several threads may crash at once: one reports, the others wait until it has, and all die.
static void report_once(int signal, const char *info, const ThreadSlot *slot, uint64_t self) {
    uint64_t holder = 0;
    if (__atomic_compare_exchange_n(&reporter, &holder, self, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
        report_kernel(signal, info, slot);
        // A thread that crashed at the same time may be writing faulthandler's traceback.
        usleep(REPORT_MICROSECONDS);
    } else if (holder != self) {
        for (;;)
            usleep(1000);
    }
}

// The handler of signals.
static void crashed(int signal, const SigInfo *info, void *context) {
    uint64_t self = pthread_self();
    ThreadSlot *slot = busy_slot(self);
    if (slot && signal != SIGABRT) // a kernel aborts only in a function that it calls
        report_once(signal, (const char *)info, slot, self);
    else
        report_latest_kernels(signal);
    sigaction(signal, &previous_actions[signal], nullptr);
    if (info->code <= 0) // sent by kill() or abort(): no instruction faults again
        raise(signal);
}

// Install the handler. kernels: of all pools of the process
void tw_report_crashes(LatestKernels *kernels) {
    latest = kernels;
    SigAction action = {0};
    action.handler = (void *)crashed;
    __builtin_memcpy(action.bytes + sigaction_flags_at, &sigaction_flags, sizeof sigaction_flags);
    alignas(16) const int signals[] = {SIGILL, SIGABRT, SIGFPE, SIGSEGV, sigbus};
    for (int i = 0; i < 5; i++)
        sigaction(signals[i], &action, &previous_actions[signals[i]]);
}
