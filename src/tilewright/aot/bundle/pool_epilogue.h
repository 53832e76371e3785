// After the thread pool's sources in a bundle.

#undef alignas
#undef nullptr
#undef static_assert
#pragma GCC diagnostic pop
