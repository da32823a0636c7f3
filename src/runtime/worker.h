// A worker's whole life within one invocation: load the stage, work through the rounds, hand back
// the weights, or stop in time before the function's deadline and say where to go on.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/manifest.h"
#include "core/worker_task.h"
#include "runtime/stage_compute.h"
#include "store/object_store.h"

namespace funcpipe {

// What is needed to build a stage.
struct StageSource {
  const JobSpec& job;
  std::vector<LayerManifest> layers;      // of this stage only
  std::vector<Buffer> layer_files;        // one for each
  std::vector<TensorFacts> model_inputs;  // of the whole model
  int first_layer = 0;                    // index of the first in the whole model
  bool is_first = false;
  bool is_last = false;
  std::int64_t classes = 0;  // of the dataset's targets; 0: none
};
using StageFactory = std::function<std::unique_ptr<StageCompute>(StageSource source)>;

// Of a function's memory, what may be spent on keeping the training set and the test set.
constexpr double kTrainCacheShare = 1.0 / 8;
constexpr double kTestCacheShare = 1.0 / 16;

// Collaborators of a worker. `open_store` gives a store as this function sees it (throttled,
// counted ...), `usage` what has gone through all of them so far.
struct WorkerEnvironment {
  std::function<std::unique_ptr<ObjectStore>(const std::string& url)> open_store;
  std::function<StoreUsage()> usage;
  StageFactory make_stage;
  Clock& clock;
  Deadline deadline;               // when the platform ends the function
  std::uint64_t memory_bytes = 0;  // of the function: bounds the data cache
  std::stop_token stop;
};

// Throws Error with the worker's name as context: a missing object, a damaged one, a deadline, an
// error of the mathematics.
WorkerReport run_worker(const WorkerTask& task, const WorkerEnvironment& environment);

}  // namespace funcpipe
