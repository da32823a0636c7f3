// Notes when each task of a worker began and ended.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "core/trace.h"

namespace funcpipe {

// Thread-safe. Keeps the first `capacity` events and counts the rest, so that memory stays bounded
// in long runs.
class TraceRecorder {
 public:
  explicit TraceRecorder(std::size_t capacity = 60'000) : capacity_(capacity) {}

  void add(TraceEvent event);
  std::vector<TraceEvent> take();
  std::int64_t dropped() const;
  double compute_seconds() const;  // sum over all compute events, also the dropped ones

  // Records from construction to destruction.
  class Scope {
   public:
    Scope(TraceRecorder& recorder, int lane, std::string name, std::int64_t step);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TraceRecorder& recorder_;
    TraceEvent event_;
  };

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::vector<TraceEvent> events_;
  std::int64_t dropped_ = 0;
  std::int64_t compute_ns_ = 0;
};

std::int64_t unix_now_ns();

}  // namespace funcpipe
