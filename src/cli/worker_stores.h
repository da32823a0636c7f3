// The stores of a function: every one behind the same links, counted together.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "store/counting_store.h"
#include "store/throttled_store.h"

namespace funcpipe {

// Thread-safe. The stores it opens must not outlive it.
class WorkerStores {
 public:
  // Limits come from what the local host sets in the environment (FUNCPIPE_UPLINK and
  // FUNCPIPE_DOWNLINK in bytes per second, FUNCPIPE_LATENCY_NS); without them nothing is limited.
  // Throws Error(kInvalidArgument) naming a variable that is no number.
  static std::unique_ptr<WorkerStores> from_environment(Clock& clock);

  WorkerStores(double uplink, double downlink, Duration latency, Clock& clock)
      : links_(uplink, downlink, latency, clock) {}
  std::unique_ptr<ObjectStore> open(const std::string& url);
  StoreUsage usage() const { return counter_.snapshot(); }

 private:
  FunctionLinks links_;
  UsageCounter counter_;
};

}  // namespace funcpipe
