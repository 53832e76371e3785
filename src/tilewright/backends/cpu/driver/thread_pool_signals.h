// Signals during a launch: a ticker interrupts long launches, and a raised exception drops them.
//
// A launch runs without the GIL, so Python cannot run the handler of a signal (Ctrl-C). The ticker,
// a native thread, wakes every 50 ms and sets the `poll` flag of a launch that it has seen before.
// Kernels then return at the next end of a program. The caller's thread takes the GIL, lets Python
// run its handlers, clears the flag, and continues. If a handler has raised (KeyboardInterrupt,
// say), `dropped` is set, and chunks that have not begun count as done.
//
//     caller   watched += 1; active = 1; ... work ...; active = 0
//     ticker   loop { sleep 50 ms; if active and `watched` is that of the last look: poll = 1, wake
//              the caller; if nothing was launched for 2 s: sleep until the next launch }
//
// A program that polls memory for another one (lower/waiting_loops.py) returns where `poll` is 2 or
// more, and sets it to 3 + the number of its loop. The ticker sets it to 2 where no kernel has
// returned and no chunk is done since a number of looks that a setting gives. If a program then
// returns from such a loop, the launch is dropped, and returns 4. If none does, `poll` becomes 0
// again: they were not waiting.
//
// So a launch of less than 50 ms costs two stores and a load more, and nobody reads a clock.
#pragma once

#include "cpython.h"
#include "thread_pool_state.h"

enum { TICK_MICROSECONDS = 50000, QUIET_TICKS = 40 };

// A sigset_t with every signal but faults and SIGPROF, and SIG_SETMASK; defined when the program is
// loaded.
alignas(16) extern const char blocked_signals[128];
extern const int32_t sig_setmask;

// Start a detached thread that receives no signals but the faults that it causes itself, and
// SIGPROF: all others are for Python's main thread. Returns 0 or an error of pthread_create.
static int start_thread(void *(*function)(void *), void *argument) {
    uint64_t thread;
    alignas(16) char previous[128];
    pthread_sigmask(sig_setmask, blocked_signals, previous);
    int error = pthread_create(&thread, nullptr, function, argument);
    pthread_sigmask(sig_setmask, previous, nullptr);
    if (error == 0)
        pthread_detach(thread);
    return error;
}

// Let Python run the handlers of pending signals, in the caller's thread; drop the launch if one
// raises.
static void run_signal_handlers(void) {
    if (load_relaxed(&pool.dropped) != NOT_DROPPED)
        return;
    replace_relaxed(&pool.poll, RETURN, CONTINUE);
    int state = PyGILState_Ensure();
    if (PyErr_CheckSignals() != 0) {
        // Fetched for the Python code that called: an exception cannot wait without the GIL.
        PyErr_Fetch((PyObject **)&pool.raised.type, (PyObject **)&pool.raised.value,
                    (PyObject **)&pool.raised.traceback);
        store_ordered(&pool.dropped, RAISED);
        store_ordered(&pool.poll, RETURN_FROM_WAITING);
    }
    PyGILState_Release(state);
}

// Count looks without progress in a launch whose programs may wait; whether they are too many.
static bool is_stalled(void) {
    int64_t progress = load_ordered(&pool.done) + load_ordered(&pool.returns);
    bool none = progress == pool.progress;
    pool.progress = progress;
    pool.stalled = none ? pool.stalled + 1 : 0;
    uint32_t limit = load_relaxed(&pool.limit);
    return limit != 0 && load_relaxed(&pool.waits) != 0 && (uint32_t)pool.stalled >= limit;
}

// Interrupt a long launch, or judge how it has reacted to an interruption.
static void interrupt_launch(void) {
    int32_t poll = load_ordered(&pool.poll);
    if (poll == CONTINUE || poll == RETURN) {
        replace_ordered(&pool.poll, poll, is_stalled() ? RETURN_FROM_WAITING : RETURN);
    } else if (poll != RETURN_FROM_WAITING) { // unless a handler has raised before
        replace_ordered(&pool.dropped, NOT_DROPPED, WAITED_IN_VAIN);
    } else if (load_ordered(&pool.dropped) == NOT_DROPPED) { // no program was waiting
        replace_ordered(&pool.poll, RETURN_FROM_WAITING, CONTINUE);
        pool.stalled = 0;
    }
}

// Sleep until the next launch after number `seen`.
static void sleep_until_launch(int64_t seen) {
    pthread_mutex_lock(&pool.mutex);
    store_ordered(&pool.ticking, TICKER_ASLEEP);
    if (load_ordered(&pool.watched) == seen) {
        do
            pthread_cond_wait(&pool.tick, &pool.mutex);
        while (load_ordered(&pool.ticking) == TICKER_ASLEEP);
    } else {
        store_ordered(&pool.ticking, TICKER_AWAKE);
    }
    pthread_mutex_unlock(&pool.mutex);
}

// The function of the ticker.
static void *ticker(void *unused) {
    int64_t seen = -1;
    int32_t quiet = 0;
    for (;;) {
        usleep(TICK_MICROSECONDS);
        int64_t now = load_ordered(&pool.watched);
        bool same = now == seen;
        seen = now;
        if (load_ordered(&pool.active) && same) {
            // under the mutex, so that a caller that is about to sleep reads the flag
            pthread_mutex_lock(&pool.mutex);
            interrupt_launch();
            pthread_cond_signal(&pool.finished);
            pthread_mutex_unlock(&pool.mutex);
            quiet = 0;
            continue;
        }
        pool.stalled = 0;
        quiet = same ? quiet + 1 : 0;
        if (quiet >= QUIET_TICKS) {
            sleep_until_launch(now);
            seen = -1;
            quiet = 0;
        }
    }
}

// Before the first program: make sure that the ticker watches.
static void begin_watch(void) {
    store_relaxed(&pool.dropped, NOT_DROPPED);
    store_relaxed(&pool.poll, CONTINUE);
    add_ordered(&pool.watched, 1);
    store_ordered(&pool.active, true);
    int32_t state = load_ordered(&pool.ticking);
    if (state == NO_TICKER) {
        store_ordered(&pool.ticking, TICKER_AWAKE);
        start_thread(ticker, nullptr);
    } else if (state == TICKER_ASLEEP) {
        pthread_mutex_lock(&pool.mutex);
        store_ordered(&pool.ticking, TICKER_AWAKE);
        pthread_cond_signal(&pool.tick);
        pthread_mutex_unlock(&pool.mutex);
    }
}

// After the last program: the status of the launch; records the loop in which a program has waited
// in vain.
static int32_t end_watch(void) {
    store_ordered(&pool.active, false);
    uint32_t poll = exchange_relaxed(&pool.poll, CONTINUE);
    pool.waited = poll - WAITING_LOOP;
    if (load_relaxed(&pool.dropped) == RAISED)
        return STATUS_RAISED;
    return poll >= WAITING_LOOP ? STATUS_WAITED : STATUS_DONE;
}
