// Only in builds with sanitizers: what differs from their defaults.

extern "C" const char* __asan_default_options();  // NOLINT: the sanitizer's name

// A request for more memory than there is must be std::bad_alloc, as without the sanitizer.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
