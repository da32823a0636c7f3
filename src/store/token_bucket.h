// A link of a given bandwidth, in virtual time.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace funcpipe {

// Each transfer occupies the link for bytes / rate seconds after all earlier ones; transfer()
// returns when its time is up. Slots are reckoned in exact time, so that late wake-ups do not add
// up: in the long run the link moves `rate` bytes a second. Thread-safe. An infinite rate costs
// nothing.
class TokenBucket {
 public:
  TokenBucket(double bytes_per_second, Clock& clock)
      : bytes_per_second_(bytes_per_second), clock_(clock) {}
  void transfer(std::uint64_t bytes);

 private:
  const double bytes_per_second_;
  Clock& clock_;
  std::mutex mutex_;
  TimePoint free_at_{};
};

}  // namespace funcpipe
