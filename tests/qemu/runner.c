// A Linux program without a C library, which runs a kernel on memory that it is given.
//
//   standard input:   a job | its maps | its pieces | the bytes of each piece
//   standard output:  the bytes of each piece after the kernel has run
//
// A map is memory to have at an address, a piece a part of it. The functions of the C library that
// LLVM calls are also here: those of memory byte by byte, remainders bit by bit.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *address;
    uint64_t bytes;
} Range;

typedef struct {
    uint64_t maps; // how many
    Range *pieces; // table
    uint64_t piece_count;
    void *args;
    const int32_t *grid;
    void *scratch;
    int64_t programs;
} Job;

extern int64_t kernel(void *args, int64_t begin, int64_t end, const int32_t *grid, void *scratch,
                      int32_t *poll);

// Linux: see system_calls_*.s, where the program starts.
extern int64_t read(int64_t file, void *to, uint64_t bytes);
extern int64_t write(int64_t file, const void *from, uint64_t bytes);
extern void map(void *address, uint64_t bytes);
[[noreturn]] extern void exit(int64_t status);

enum { STANDARD_INPUT, STANDARD_OUTPUT, FAILURE = 3 };

// Read or write all of some memory: a pipe transfers some bytes at a time.
static void transfer_all(char *memory, uint64_t bytes, int64_t file) {
    for (uint64_t done = 0; done < bytes;) {
        int64_t count = file == STANDARD_OUTPUT ? write(file, memory + done, bytes - done)
                                                : read(file, memory + done, bytes - done);
        if (count <= 0)
            exit(FAILURE);
        done += count;
    }
}

static void transfer_pieces(const Job *job, int64_t file) {
    for (uint64_t i = 0; i < job->piece_count; i++)
        transfer_all(job->pieces[i].address, job->pieces[i].bytes, file);
}

[[noreturn]] void run(void) {
    Job job;
    int32_t poll = 0;
    transfer_all((char *)&job, sizeof job, STANDARD_INPUT);
    for (uint64_t i = 0; i < job.maps; i++) {
        Range range;
        transfer_all((char *)&range, sizeof range, STANDARD_INPUT);
        map(range.address, range.bytes);
    }
    transfer_all((char *)job.pieces, job.piece_count * sizeof(Range), STANDARD_INPUT);
    transfer_pieces(&job, STANDARD_INPUT);
    kernel(job.args, 0, job.programs, job.grid, job.scratch, &poll);
    transfer_pieces(&job, STANDARD_OUTPUT);
    exit(0);
}

void *memmove(void *to, const void *from, size_t bytes) {
    char *target = to;
    const char *source = from;
    bool backwards = target > source;
    for (size_t i = 0; i < bytes; i++) {
        size_t at = backwards ? bytes - 1 - i : i;
        target[at] = source[at];
    }
    return to;
}

void *memcpy(void *to, const void *from, size_t bytes) { return memmove(to, from, bytes); }

void *memset(void *to, int value, size_t bytes) {
    volatile char *target = to; // else LLVM makes this loop a call of memset
    for (size_t i = 0; i < bytes; i++)
        target[i] = (char)value;
    return to;
}

// By long division, whose steps are exact: y doubled while it stays below x, then subtracted.
double fmod(double x, double y) {
    double rest = __builtin_fabs(x), divisor = __builtin_fabs(y);
    if (!(rest < __builtin_inf()) || !(divisor > 0))
        return __builtin_nan("");
    if (rest < divisor)
        return x;
    double multiple = divisor;
    while (multiple <= rest - multiple)
        multiple += multiple;
    for (; multiple >= divisor; multiple *= 0.5)
        if (rest >= multiple)
            rest -= multiple;
    return __builtin_copysign(rest, x);
}

float fmodf(float x, float y) { return (float)fmod(x, y); }
