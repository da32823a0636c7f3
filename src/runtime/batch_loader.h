// Reads the inputs or targets of coming micro-batches ahead of the lane that needs them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "core/tensor.h"

namespace funcpipe {

// `read_next` gives one micro-batch after the other, then nothing; it is called on a thread of the
// loader's own, at most `capacity` micro-batches ahead of take().
class BatchLoader {
 public:
  BatchLoader(std::function<std::optional<TensorBundle>()> read_next, std::size_t capacity);
  ~BatchLoader();

  // The next micro-batch. Rethrows what read_next threw; throws Error(kCancelled) when `stop` is
  // requested, and Error(kInternal) past the end.
  TensorBundle take(std::stop_token stop);

 private:
  void serve(std::stop_token stop);

  const std::function<std::optional<TensorBundle>()> read_next_;
  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<TensorBundle> ready_;
  bool ended_ = false;
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace funcpipe
