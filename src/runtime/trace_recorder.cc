#include "runtime/trace_recorder.h"

#include <chrono>
#include <utility>

namespace funcpipe {

std::int64_t unix_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void TraceRecorder::add(TraceEvent event) {
  std::lock_guard lock(mutex_);
  if (event.lane == 0) compute_ns_ += event.end_unix_ns - event.begin_unix_ns;
  if (events_.size() < capacity_) {
    events_.push_back(std::move(event));
  } else {
    ++dropped_;
  }
}

std::vector<TraceEvent> TraceRecorder::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

std::int64_t TraceRecorder::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

double TraceRecorder::compute_seconds() const {
  std::lock_guard lock(mutex_);
  return static_cast<double>(compute_ns_) * 1e-9;
}

TraceRecorder::Scope::Scope(TraceRecorder& recorder, int lane, std::string name, std::int64_t step)
    : recorder_(recorder), event_{lane, std::move(name), step, unix_now_ns(), 0} {}

TraceRecorder::Scope::~Scope() {
  event_.end_unix_ns = unix_now_ns();
  recorder_.add(std::move(event_));
}

}  // namespace funcpipe
