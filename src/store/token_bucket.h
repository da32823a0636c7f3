// A link of a given bandwidth, in virtual time.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace funcpipe {

// A transfer occupies the link for bytes / rate seconds; transfer() returns when that time is over.
// Concurrent transfers take turns of 10 ms, so that they share the link. Turns are reckoned in
// exact time: late wake-ups do not add up, and in the long run a busy link moves `rate` bytes a
// second. Thread-safe. An infinite rate costs nothing.
class TokenBucket {
 public:
  // Throws Error(kInvalidArgument) for a rate that is not above 0. `clock` outlives the object.
  TokenBucket(double bytes_per_second, Clock& clock);

  void transfer(std::uint64_t bytes) { transfer(bytes, clock_.now()); }
  // The transfer began already at `begin`: the time since then counts.
  void transfer(std::uint64_t bytes, TimePoint begin);

 private:
  TimePoint reserve(double bytes, TimePoint begin);
  void note_wake_up(TimePoint end);

  const double bytes_per_second_;
  Clock& clock_;
  std::mutex mutex_;
  TimePoint free_at_;  // end of the last turn given out
  Duration late_{};    // by which the last sleeper overslept the end of its turn
};

}  // namespace funcpipe
