// Structures and constants that native_dispatch.c shares with Python; written by
// scripts/compile_native.py from the classes of ctypes.
// clang-format off
#pragma once

#include <stdint.h>

enum {
    MAX_ARGUMENTS = 64,
    PROBES = 8,
    SLOT_SHIFT = 56,
    CONSTEXPR = 1,
    UNSPECIALIZED = 2,
    DECIDED_BY_VALUE = 9,
    DIVISIBILITY_OFF = 6,
    FLOAT = 16,
    SIGNED = 32,
    LAYOUT = 64,
    BOUNDED = 128,
    PARAMETER = 16,
    RANGE = 8,
    MULTIPLE = 32,
    SLOT_WORD = 0,
    SLOT_F32 = 1,
    SLOT_F64 = 2,
    SLOT_I1 = 3,
    GRID_STACK = 16,
    GRID_NUMBER = 0,
    GRID_ARGUMENT = 1,
    GRID_CELL = 2,
    GRID_GLOBAL = 3,
    GRID_POWER_OF_TWO = 4,
    GRID_ADD = 5,
    GRID_SUBTRACT = 6,
    GRID_MULTIPLY = 7,
    GRID_DIVIDE = 8,
    GRID_REMAINDER = 9,
    GRID_CDIV = 10,
    GRID_MIN = 11,
    GRID_MAX = 12,
    GRID_IN_DICT = 0,
    GRID_IN_CELL = 1,
    GRID_CODE = 2,
    DIVISORS = 2,
    ALIGNED = 15,
    HALF_ALIGNED = 7,
};

// The data of one kernel for machine code, written by Python.
typedef struct {
    void *known;     // of the KnownObjects
    void *table;     // of SLOTS + PROBES addresses of entries; 0 ends a search
    void *python;    // launch(grid, *arguments, **named)
    void *add_entry;
    uint64_t count;  // of parameters
    void *flags;     // of a word for each
    void *bounds;    // of two words for each, if it is BOUNDED: low <= value < high
    void *names;     // of each one's interned name
    void *assigned;  // dict: options set by the program; Python launches if there are any
    void *enter;     // lists: launch hooks; Python launches if there are any
    void *exit;
    void *before;    // of this kernel alone
    void *watching;  // of a word: the state of the watch for arguments that overlap
    void *clock;     // of a word that each launch increments
    void *grids;     // of addresses of GridPrograms, then 0
    void *add_grid;  // add_grid(function) adds a program to them; or 0
} DispatchRecord;
static_assert(sizeof(DispatchRecord) == 128);

// The launch with certain descriptors.
typedef struct {
    uint64_t size;      // of the descriptors, in words
    void *descriptors;
    void *call;         // call(x, y, z, [stream,] *values); 0 if `words` is called instead
    void *words;        // of int words(words_record, x, y, z, uint64_t *values), or 0
    void *words_record;
    void *slots;        // of a word for each value: what its 64 bits are, as SLOT_KINDS has it
    void *check;        // check(status), which raises the errors of a launch, and
    void *failures;
    void *kernel;       // what the launch returns
    uint64_t values;    // how many are passed
    void *sources;      // of a word for each: an item's position, or the object itself
    void *constants;
    void *grid;         // tuple; 0: the launch gives it
    uint64_t checks;    // number of globals
    void *globals;
    void *device;       // argument of stream_of
    void *stream_of;    // stream_of(device) -> stream; 0 if call takes none
    void *context_of;   // of int context_of(void **), or 0
    void *context;      // the expected context
    void *names;        // of the parameter or keyword of each argument
    uint64_t pairs;     // how many pairs of arguments must not overlap
    void *pair_list;    // of an OverlapPair for each
    void *latest;
    void *defaults;     // dict of the parameters that are not given
    void *owner;        // frees this memory; a running launch holds a reference
    uint64_t stamp;     // the clock at the latest launch
    uint64_t slot;      // index in the table at which a search for the entry starts
    void *noted;        // of a word to which each launch writes `note`, or 0
    uint64_t note;
} CacheEntry;
static_assert(sizeof(CacheEntry) == 232);

// Two items that must not overlap.
//
// sum_words: for each sum, the number of its terms, and for each term its factor, the number of
// its items, and their positions.
typedef struct {
    uint64_t first;        // positions of the items
    uint64_t second;
    uint64_t first_bytes;  // of their elements
    uint64_t second_bytes;
    uint64_t sums;
    void *sum_words;
} OverlapPair;
static_assert(sizeof(OverlapPair) == 48);

// Objects and types that machine code distinguishes, for all kernels.
typedef struct {
    void *int_type;
    void *float_type;
    void *bool_type;
    void *tuple_type;
    void *function_type;
    void *none;
    void *one;                  // the int 1
    void *data_ptr;             // names
    void *dtype;
    void *get_device;           // 0 if all tensors are in the memory of the host
    void *is_neg;
    void *numel;
    void *base;                 // fields of a tensor descriptor
    void *shape;
    void *strides;
    void *block_shape;
    void *padding;
    void *descriptor;           // type of tensor descriptors
    void *add_type;             // add_type(object): of an argument whose type is unknown
    void *boundary;             // exit(type, error, traceback) of the user boundary
    void *ndarray;              // type of NumPy's arrays once it is known, else 0
    void *tensors[8];           // types of tensors, then 0
    void *plain[8];             // those of them that `TensorHeader` describes, then 0
    void *describe_tensor;      // and its fields
    uint64_t implementation_at;
    uint64_t keys_at;
    uint64_t negative_key;
} KnownObjects;
static_assert(sizeof(KnownObjects) == 328);

// The part of an argument that decides the variant.
typedef struct {
    void *keyword;  // interned name, or 0 for a positional argument
    void *type;
    uint64_t value; // class, value or identity, by type and flags
} ArgumentDescriptor;
static_assert(sizeof(ArgumentDescriptor) == 24);

// The program that computes what a grid function returns.
typedef struct {
    void *code;       // of the function
    void *globals;    // dict: its globals
    uint64_t checks;  // number of checks
    void *check_list; // of a GridCheck for each
    uint64_t steps;   // number of steps
    void *step_list;  // of a GridStep for each
    uint64_t extents; // how many numbers the program leaves; 0: the function has no program
} GridProgram;
static_assert(sizeof(GridProgram) == 56);

// An object that must be the same as when a grid function was translated.
typedef struct {
    uint64_t kind; // as GRID_CHECKS
    void *holder;  // dict or function
    void *name;    // key of the dict, or index of the cell
    void *value;   // the object; 0: there is none
} GridCheck;
static_assert(sizeof(GridCheck) == 32);

// A step of a program: it appends a number, or combines the last ones.
typedef struct {
    uint64_t operation; // as GRID_OPERATIONS
    void *holder;       // dict of a global
    void *name;         // of an argument or global, index of a cell, or the number itself
} GridStep;
static_assert(sizeof(GridStep) == 24);
