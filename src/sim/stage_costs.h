// What the stages of a plan take by their profile.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan.h"
#include "core/profile.h"
#include "sim/simulation_options.h"

namespace funcpipe::sim {

// Of one stage; seconds and bytes of one full micro-batch.
struct StageCosts {
  int memory_mb = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;
  double update_seconds = 0;  // once a step
  double input_bytes = 0;     // over the cut before the stage, either way; 0 for the first
  double output_bytes = 0;    // over the cut behind it; 0 for the last
  std::uint64_t values = 0;   // floats that replicas sum: parameters and buffers
  int layers = 0;
  double uplink_bytes_per_second = 0;
  double downlink_bytes_per_second = 0;
  double latency_seconds = 0;
  double start_seconds = 0;  // cold start, and download of the layers
};

// Throws Error(kInvalidArgument) when the plan is not for the profile's model: layers missing or
// too many, a memory option that was not profiled, a layer that does not run at its stage's option.
std::vector<StageCosts> stage_costs(const ModelProfile& profile, const Plan& plan,
                                    const SimulationOptions& options);

}  // namespace funcpipe::sim
