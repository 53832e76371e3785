// After the thread pool's sources in a bundle.

#undef alignas
#undef nullptr
#undef static_assert
#pragma GCC diagnostic pop

// The pool's functions are this bundle's own, also where a library contains it.
#define TW_TEXT(word) TW_TEXT_OF(word)
#define TW_TEXT_OF(word) #word
#define TW_HIDE(name) __asm__(".hidden " TW_TEXT(TW_FUNCTION(name)))
TW_HIDE(pool_launch);
TW_HIDE(pool_launch_packed);
TW_HIDE(pool_start);
TW_HIDE(pool_configure);
TW_HIDE(pool_stop);
TW_HIDE(pool_reset);
TW_HIDE(pool_pause);
TW_HIDE(pool_workers);
TW_HIDE(pool_raised);
TW_HIDE(pool_report_crashes);
TW_HIDE(pool_limit_waits);
TW_HIDE(pool_waited);
