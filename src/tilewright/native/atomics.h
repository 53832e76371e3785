// Integers, atomic accesses and volatile accesses: what the C sources share.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define load_relaxed(place) __atomic_load_n(place, __ATOMIC_RELAXED)
#define load_acquire(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define load_ordered(place) __atomic_load_n(place, __ATOMIC_SEQ_CST)
#define store_relaxed(place, value) __atomic_store_n(place, value, __ATOMIC_RELAXED)
#define store_release(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
#define store_ordered(place, value) __atomic_store_n(place, value, __ATOMIC_SEQ_CST)
#define add_relaxed(place, value) __atomic_fetch_add(place, value, __ATOMIC_RELAXED)
#define add_ordered(place, value) __atomic_fetch_add(place, value, __ATOMIC_SEQ_CST)
#define exchange_relaxed(place, value) __atomic_exchange_n(place, value, __ATOMIC_RELAXED)
#define exchange_ordered(place, value) __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST)

// Store `value` where `expected` is; whether it was there. Orders: on success, on failure.
#define compare_exchange(place, expected, value, success, failure)                                 \
    __atomic_compare_exchange_n(place, &(__typeof__(*(place))){expected}, value, false, success,   \
                                failure)
#define replace_relaxed(place, expected, value)                                                    \
    compare_exchange(place, expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define replace_acq_rel(place, expected, value)                                                    \
    compare_exchange(place, expected, value, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
#define replace_ordered(place, expected, value)                                                    \
    compare_exchange(place, expected, value, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

// A place that is also read by a signal handler, in the thread that it interrupts.
#define VOLATILE(place) (*(volatile __typeof__(place) *)&(place))
