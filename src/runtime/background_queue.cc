#include "runtime/background_queue.h"

#include <utility>

namespace funcpipe {

BackgroundQueue::BackgroundQueue(std::size_t capacity)
    : capacity_(capacity), thread_([this] { serve(); }) {}

BackgroundQueue::~BackgroundQueue() {
  std::lock_guard lock(mutex_);
  closing_ = true;
  changed_.notify_all();
}

void BackgroundQueue::rethrow() const {
  if (error_) std::rethrow_exception(error_);
}

void BackgroundQueue::post(std::function<void()> job) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || jobs_.size() < capacity_; });
  rethrow();
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

void BackgroundQueue::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || (jobs_.empty() && !busy_); });
  rethrow();
}

void BackgroundQueue::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || !jobs_.empty(); });
    if (closing_) return;
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      job();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    error_ = error;
    changed_.notify_all();
    if (error) return;
  }
}

}  // namespace funcpipe
