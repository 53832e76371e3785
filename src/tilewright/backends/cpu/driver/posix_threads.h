// The functions of the C library that the thread pool calls.
#pragma once

#include <stdint.h>

// 128 bytes hold a pthread mutex or condition on every platform (at most 64), on lines of their
// own.
typedef struct {
    alignas(128) char storage[128];
} Mutex, Condition;

extern int pthread_create(uint64_t *thread, const void *attributes, void *(*function)(void *),
                          void *argument);
extern int pthread_detach(uint64_t thread);
extern uint64_t pthread_self(void);
extern int pthread_sigmask(int how, const void *set, void *previous);
extern int pthread_mutex_init(Mutex *mutex, const void *attributes);
extern int pthread_mutex_lock(Mutex *mutex);
extern int pthread_mutex_trylock(Mutex *mutex);
extern int pthread_mutex_unlock(Mutex *mutex);
extern int pthread_cond_init(Condition *condition, const void *attributes);
extern int pthread_cond_wait(Condition *condition, Mutex *mutex);
extern int pthread_cond_signal(Condition *condition);
extern int pthread_cond_broadcast(Condition *condition);
extern int sched_yield(void);
extern int usleep(unsigned microseconds);

// Linux only; elsewhere the loader defines them as functions that fail.
extern int sched_getcpu(void);
extern int pthread_getaffinity_np(uint64_t thread, size_t bytes, void *set);
extern int pthread_setaffinity_np(uint64_t thread, size_t bytes, const void *set);

extern int posix_memalign(void **memory, size_t alignment, size_t bytes);
extern void free(void *memory);

extern int sigaction(int signal, const void *action, void *previous);
extern int raise(int signal);
[[gnu::format(printf, 2, 3)]] extern int dprintf(int file, const char *format, ...);
extern int64_t write(int file, const void *text, size_t bytes);
extern size_t strlen(const char *text);
