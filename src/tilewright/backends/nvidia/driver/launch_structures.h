// Structures and constants that launch.c shares with Python; written by
// scripts/compile_native.py from the classes of ctypes.
// clang-format off
#pragma once

#include <stdint.h>

enum {
    LEADING = 4,
    KIND_POINTER = 0,
    KIND_INTEGER = 1,
    KIND_U64 = 2,
    KIND_F32 = 3,
    KIND_F64 = 4,
    LOG_MASK = 63,
    PAGE_BITS = 12,
    PAGE_MASK = 32767,
    MAP_BYTES = 128,
    MAP_WORDS = 10,
    MAP_SHIFT = 56,
    MAP_PROBES = 4,
};

// CUlaunchConfig of cuda.h.
typedef struct {
    uint32_t grid_x;
    uint32_t grid_y;
    uint32_t grid_z;
    uint32_t block_x;
    uint32_t block_y;
    uint32_t block_z;
    uint32_t shared_bytes;
    void *stream;
    void *attributes;
    uint32_t attribute_count;
} LaunchConfig;
static_assert(sizeof(LaunchConfig) == 56);

// The common parameters of a kernel's launches on a device. For handlers see `Handlers`.
typedef struct {
    LaunchConfig config;     // grid and stream are filled in a copy
    void *function;          // CUfunction
    void *launch;            // of cuLaunchKernelEx
    void *pointer_attribute; // of cuPointerGetAttribute
    int32_t device;          // ordinal
    void *pages;             // of the device's table of pages
    void *log;               // of the device's LogMemory
    void *data_ptr;          // the string "data_ptr"
    void *convert;           // handlers
    void *refuse;
    void *regrid;
    void *failed;
    void *after;             // or null
    void *none;              // None
    void *int_type;          // int
    int64_t cluster;         // blocks along x that run one program
    int64_t resident;        // most blocks, where these run several; 0: no limit
    int64_t pairs;           // 1: these blocks are clusters of two; 0: they are not
    int64_t count;           // of arguments of a call, with LEADING
    int64_t slots;           // how many arguments are passed to the kernel
    void *parameters;        // of a Parameter for each of these
    int64_t maps;            // how many tensor maps are passed after them
    void *map_tables;        // of a MapTable for each of these
    void *encode;            // handler
} LaunchRecord;
static_assert(sizeof(LaunchRecord) == 240);

// The description of one slot.
typedef struct {
    int64_t kind;       // see PARAMETER_KINDS
    int64_t index;      // of the argument among the kernel's, ignored ones included; or
    int64_t spare_bits; // of an integer: 64 less those of its type
    int64_t is_signed;  // whether an integer is
    void *fill_half;    // of a 16-bit float: function of launch_half.c
} Parameter;
static_assert(sizeof(Parameter) == 40);

// The tensor maps that were passed for one parameter.
typedef struct {
    int64_t count; // of the words that decide the map
    void *slots;   // of the number of the slot of each word
    void *entries; // of MAP_ENTRIES + MAP_PROBES entries
    int64_t turn;  // counts maps that found all their entries in use
} MapTable;
static_assert(sizeof(MapTable) == 32);

// A tensor map, and the words that determine it.
typedef struct {
    int64_t filled;
    uint64_t words[10];
    char map[128];
} MapEntry;
static_assert(sizeof(MapEntry) == 216);

// A launch in the log.
typedef struct {
    uint64_t function; // CUfunction; 0: the driver refused it
    uint32_t x;
    uint32_t y;
    uint32_t z;
    uint64_t stream;
} LogEntry;
static_assert(sizeof(LogEntry) == 32);

// The latest launches of a device; number n is at n % LOG_ENTRIES.
typedef struct {
    uint64_t count;
    LogEntry entries[64];
} LogMemory;
static_assert(sizeof(LogMemory) == 2056);
