#include "base/clock.h"

#include <algorithm>

namespace funcpipe {

void SteadyClock::sleep_until(TimePoint until, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_until(lock, std::move(stop), until, [] { return false; });
}

TimePoint ManualClock::now() const {
  std::lock_guard lock(mutex_);
  return now_;
}

void ManualClock::sleep_until(TimePoint until, std::stop_token stop) {
  if (stop.stop_requested()) return;
  std::lock_guard lock(mutex_);
  now_ = std::max(now_, until);
}

void ManualClock::advance(Duration duration) {
  std::lock_guard lock(mutex_);
  now_ += duration;
}

}  // namespace funcpipe
