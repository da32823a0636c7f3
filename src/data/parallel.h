// A few calls at once on threads of their own, for requests that wait more than they compute.
#pragma once

#include <cstddef>
#include <functional>

namespace funcpipe {

// Calls body(0) ... body(count - 1), at most `threads` at a time, the caller's thread among them,
// and returns when all have ended. After a call has thrown no further ones begin, and the first
// exception is rethrown.
void for_each_in_parallel(std::size_t count, int threads,
                          const std::function<void(std::size_t index)>& body);

}  // namespace funcpipe
