// A kernel that flushes memory from the caches of all cores; the thread pool runs it.

#include "atomics.h"
#include "cache_flush_structures.h"

// `clflushopt` and `mfence`, defined when the program is loaded: the target of this file lacks
// them.
extern void flush_line(const void *address);
extern void fence(void);

// Flush the blocks `begin` ... `end` - 1. The parameters are those of every kernel for CPUs.
int64_t tw_drop_lines(const MemoryBlock *blocks, int64_t begin, int64_t end, const int32_t *grid,
                      void *scratch, const int32_t *poll) {
    fence();
    for (int64_t i = begin; i < end; i++) {
        for (uint64_t line = blocks[i].first; line < blocks[i].end; line += LINE_BYTES)
            flush_line((const void *)line);
    }
    fence(); // the flushes are complete before the caller measures anything
    return end;
}
