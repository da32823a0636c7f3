// Ctrl-C and SIGTERM as a stop token.
#pragma once

#include <stop_token>
#include <thread>

namespace funcpipe {

// From construction on the process no longer dies of SIGINT or SIGTERM: the first one requests a
// stop, a second one ends the process at once. Must be constructed before any other thread, which
// then inherit the blocked signals. One in a process.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool interrupted() const { return source_.stop_requested(); }

 private:
  void watch(std::stop_token stop);

  std::stop_source source_;
  std::jthread thread_;
};

}  // namespace funcpipe
