// Time as a collaborator, so that tests run on a manual clock. Every wait in the project takes a
// Deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "base/units.h"

namespace funcpipe {

using TimePoint = std::chrono::steady_clock::time_point;

// Thread-safe. now() never goes back.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  // Returns at `until`, or earlier when `stop` is requested.
  virtual void sleep_until(TimePoint until, std::stop_token stop) = 0;

  void sleep_for(Duration duration, std::stop_token stop = {}) {
    sleep_until(later(now(), duration), std::move(stop));
  }

  // time + duration, or the end of time where that would overflow.
  static TimePoint later(TimePoint time, Duration duration) {
    return duration > TimePoint::max() - time ? TimePoint::max() : time + duration;
  }
};

class SteadyClock : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  void sleep_until(TimePoint until, std::stop_token stop) override;
};

// Time stands still but for sleepers: a sleep moves it to the sleeper's `until` at once. advance()
// moves it by hand.
class ManualClock : public Clock {
 public:
  TimePoint now() const override;
  void sleep_until(TimePoint until, std::stop_token stop) override;
  void advance(Duration duration);

 private:
  mutable std::mutex mutex_;
  TimePoint now_{};
};

// A point in time after which waiting is an error. Copyable value; compare with the clock it was
// made from.
class Deadline {
 public:
  static Deadline at(TimePoint time) { return Deadline(time); }
  static Deadline after(const Clock& clock, Duration duration) {
    return Deadline(Clock::later(clock.now(), duration));
  }

  TimePoint time() const { return time_; }
  bool expired(const Clock& clock) const { return clock.now() >= time_; }
  Duration remaining(const Clock& clock) const {
    const auto now = clock.now();
    return now >= time_ ? Duration::zero() : Duration(time_ - now);
  }
  Deadline earlier(Deadline other) const { return time_ < other.time_ ? *this : other; }

 private:
  explicit Deadline(TimePoint time) : time_(time) {}
  TimePoint time_;
};

}  // namespace funcpipe
