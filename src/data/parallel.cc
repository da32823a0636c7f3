#include "data/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace funcpipe {

void for_each_in_parallel(std::size_t count, int threads,
                          const std::function<void(std::size_t index)>& body) {
  std::atomic<std::size_t> next{0};
  std::once_flag first_failure;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    } catch (...) {
      next = count;
      std::call_once(first_failure, [&] { failure = std::current_exception(); });
    }
  };
  {
    std::vector<std::jthread> helpers;
    const auto wanted = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
    while (helpers.size() + 1 < wanted) helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace funcpipe
