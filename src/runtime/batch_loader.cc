#include "runtime/batch_loader.h"

#include <utility>

#include "base/error.h"

namespace funcpipe {

BatchLoader::BatchLoader(std::function<std::optional<TensorBundle>()> read_next,
                         std::size_t capacity)
    : read_next_(std::move(read_next)),
      capacity_(capacity),
      thread_([this](std::stop_token stop) { serve(std::move(stop)); }) {}

BatchLoader::~BatchLoader() = default;

TensorBundle BatchLoader::take(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [&] { return error_ || ended_ || !ready_.empty(); })) {
    fail(ErrorCode::kCancelled, "stopped while waiting for data");
  }
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(error_);
    fail(ErrorCode::kInternal, "the data of the job has been read to its end");
  }
  TensorBundle batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

void BatchLoader::serve(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::optional<TensorBundle> batch;
    std::exception_ptr error;
    try {
      batch = read_next_();
    } catch (...) {
      error = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    if (batch) {
      changed_.wait(lock, stop, [&] { return ready_.size() < capacity_; });
      ready_.push_back(std::move(*batch));
    } else {
      error_ = error;
      ended_ = true;
    }
    changed_.notify_all();
    if (ended_) return;
  }
}

}  // namespace funcpipe
