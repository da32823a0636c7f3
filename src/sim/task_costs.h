// What each task of a step takes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batching.h"
#include "schedule/step_schedule.h"
#include "sim/sim_time.h"
#include "sim/stage_costs.h"

namespace funcpipe::sim {

struct StepContext {
  const std::vector<StageCosts>& stages;
  std::vector<MicroBatch> micro_batches;  // of the whole mini-batch
  std::int64_t micro_batch_size = 1;      // samples of a full one
  const SimulationOptions& options;
};

struct TaskCosts {
  SimTime work{};           // compute: all of it; send: before the request; receive: after it
  std::uint64_t bytes = 0;  // of the message
};

// Compute time and activations of a short micro-batch are in proportion to its samples. Loading a
// micro-batch of data costs its overhead only: the runtime reads ahead, into the function's cache.
TaskCosts task_costs(const StepContext& context, const WorkerShape& shape, const Task& task);

}  // namespace funcpipe::sim
