// Bandwidth and latency of an object store, as one function sees it.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "core/profile_task.h"
#include "store/object_store.h"

namespace funcpipe {

struct LinkProbeOptions {
  // What the platform lets through at more than its lasting rate: so much is moved first.
  std::uint64_t burst_bytes = 0;
  // A direction is measured for about so long at most, even if the burst is not over.
  Duration transfer_time = std::chrono::seconds(5);
};

// Moves objects under `prefix` up, then down, one after the other: one byte for the latency, then
// objects so large that the latency hardly counts. Removes them. In real time.
LinkReport probe_links(ObjectStore& store, const std::string& prefix, Clock& clock,
                       const LinkProbeOptions& options);

}  // namespace funcpipe
