// Python's operators on the sizes of a grid.

// The value of a grid expression that has no value: every operation with it results in it.
#define TW_INVALID INT64_MIN

// Python's operators on integers of 64 bits; an overflow or a division by zero is TW_INVALID.
static inline int64_t tw_add(int64_t a, int64_t b) {
    int64_t sum;
    bool bad = a == TW_INVALID || b == TW_INVALID || __builtin_add_overflow(a, b, &sum);
    return bad ? TW_INVALID : sum;
}

static inline int64_t tw_negate(int64_t a) { return a == TW_INVALID ? a : -a; }

static inline int64_t tw_subtract(int64_t a, int64_t b) { return tw_add(a, tw_negate(b)); }

static inline int64_t tw_multiply(int64_t a, int64_t b) {
    int64_t result;
    bool bad = a == TW_INVALID || b == TW_INVALID || __builtin_mul_overflow(a, b, &result);
    return bad ? TW_INVALID : result;
}

static inline int64_t tw_divide(int64_t a, int64_t b) { // rounds down
    if (a == TW_INVALID || b == TW_INVALID || b == 0)
        return TW_INVALID;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t tw_remainder(int64_t a, int64_t b) {
    return tw_subtract(a, tw_multiply(tw_divide(a, b), b));
}

static inline int64_t tw_cdiv(int64_t a, int64_t b) {
    return tw_negate(tw_divide(tw_negate(a), b));
}

static inline int64_t tw_minimum(int64_t a, int64_t b) {
    return a == TW_INVALID || b == TW_INVALID ? TW_INVALID : a < b ? a : b;
}

static inline int64_t tw_maximum(int64_t a, int64_t b) {
    return a == TW_INVALID || b == TW_INVALID ? TW_INVALID : a > b ? a : b;
}
