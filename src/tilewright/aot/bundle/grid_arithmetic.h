// Python's operators on the sizes of a grid: integers of 64 bits.

// The value of an expression that overflows or divides by zero; every operation on it results in
// it.
#define TW_INVALID INT64_MIN
#define TW_ANY_INVALID(a, b) ((a) == TW_INVALID || (b) == TW_INVALID)

static inline int64_t tw_add(int64_t a, int64_t b) {
    int64_t sum;
    return TW_ANY_INVALID(a, b) || __builtin_add_overflow(a, b, &sum) ? TW_INVALID : sum;
}

static inline int64_t tw_negate(int64_t a) { return a == TW_INVALID ? a : -a; }

static inline int64_t tw_subtract(int64_t a, int64_t b) { return tw_add(a, tw_negate(b)); }

static inline int64_t tw_multiply(int64_t a, int64_t b) {
    int64_t result;
    return TW_ANY_INVALID(a, b) || __builtin_mul_overflow(a, b, &result) ? TW_INVALID : result;
}

static inline int64_t tw_divide(int64_t a, int64_t b) { // rounds down
    if (TW_ANY_INVALID(a, b) || b == 0)
        return TW_INVALID;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t tw_remainder(int64_t a, int64_t b) {
    return tw_subtract(a, tw_multiply(tw_divide(a, b), b));
}

static inline int64_t tw_cdiv(int64_t a, int64_t b) {
    return tw_negate(tw_divide(tw_negate(a), b));
}

// TW_INVALID is the least integer
static inline int64_t tw_minimum(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t tw_maximum(int64_t a, int64_t b) {
    return TW_ANY_INVALID(a, b) ? TW_INVALID : a > b ? a : b;
}
