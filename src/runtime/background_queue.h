// Small jobs that must not hold up a lane: metrics, traces, removal of old messages.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace funcpipe {

// One thread performs posted jobs in order. The first one that throws ends the queue: its exception
// comes out of the next post() or finish(). Destruction drops what has not begun.
class BackgroundQueue {
 public:
  explicit BackgroundQueue(std::size_t capacity = 1024);
  ~BackgroundQueue();

  // Blocks while `capacity` jobs wait.
  void post(std::function<void()> job);
  // Returns when all posted jobs are done.
  void finish();

 private:
  void serve();
  void rethrow() const;  // with the mutex held

  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool busy_ = false;
  bool closing_ = false;
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace funcpipe
