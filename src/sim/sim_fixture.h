// Small profiles and plans for tests.
#pragma once

#include <vector>

#include "core/plan.h"
#include "core/profile.h"
#include "sim/simulator.h"

namespace funcpipe {

// A model of one layer a stage, each stage with a memory option (1024, 1025, ... MB) of its own.
struct TestStage {
  double forward = 0, backward = 0, update = 0;
  std::uint64_t output_bytes = 0;  // over the cut behind the stage
  std::uint64_t parameter_bytes = 0;
  double uplink = 1e9, downlink = 1e9, latency = 0;
  double cold_start = 0;
};

struct TestCase {
  ModelProfile profile;
  Plan plan;

  explicit TestCase(const std::vector<TestStage>& stages, int replicas = 1,
                    AllReduceAlgorithm algorithm = AllReduceAlgorithm::kPipelined) {
    profile.model = "test";
    plan.replicas = replicas;
    plan.all_reduce = algorithm;
    for (const auto& stage : stages) add(stage, static_cast<int>(stages.size()));
  }

  // One sample a micro-batch.
  SimulationResult run(std::int64_t batch_size, const SimulationOptions& options,
                       bool clip = false) const {
    return simulate(profile, plan, {batch_size, 1, 0, clip}, options);
  }

 private:
  void add(const TestStage& stage, int stages) {
    const int index = profile.layer_count();
    ProfiledOption option;
    option.memory_mb = 1024 + index;
    option.uplink_bytes_per_second = stage.uplink;
    option.downlink_bytes_per_second = stage.downlink;
    option.latency_seconds = stage.latency;
    option.cold_start_seconds = stage.cold_start;
    profile.options.push_back(option);
    ProfiledLayer layer;
    layer.name = "layer" + std::to_string(index);
    layer.parameter_bytes = stage.parameter_bytes;
    layer.output_bytes = stage.output_bytes;
    LayerTiming timing;
    timing.forward_seconds = stage.forward;
    timing.backward_seconds = stage.backward;
    timing.update_seconds = stage.update;
    layer.timings.assign(static_cast<std::size_t>(stages), timing);
    profile.layers.push_back(layer);
    plan.stages.push_back({index, index + 1, option.memory_mb});
  }
};

}  // namespace funcpipe
