// How long to wait between tries.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/rng.h"
#include "base/units.h"

namespace funcpipe {

struct BackoffOptions {
  Duration first = std::chrono::milliseconds(1);
  Duration most = std::chrono::milliseconds(50);
  double factor = 2;
  double jitter = 0;  // 0: exact; 1: uniform in (0, delay] ("full jitter")
};

// A growing sequence of delays. Not thread-safe: one object a wait.
class Backoff {
 public:
  explicit Backoff(const BackoffOptions& options, std::uint64_t seed = 0)
      : options_(options), delay_(std::min(options.first, options.most)), rng_(seed) {}

  Duration next() {
    const Duration delay = delay_;
    delay_ = std::min(options_.most, from_seconds(to_seconds(delay_) * options_.factor));
    if (options_.jitter <= 0) return delay;
    return from_seconds(to_seconds(delay) * (1 - options_.jitter * rng_.uniform()));
  }

 private:
  BackoffOptions options_;
  Duration delay_;
  Rng rng_;
};

}  // namespace funcpipe
