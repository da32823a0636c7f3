// What a run did and used, as its client records it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "core/plan.h"
#include "core/usage.h"

namespace funcpipe {

// One training step over all replicas.
struct StepSummary {
  std::int64_t step = 0;  // 0-based
  std::int64_t steps = 0;
  std::int64_t epoch = 0;
  double loss = 0;      // mean over the samples of the mini-batch
  double accuracy = 0;  // of the mini-batch, for classification
  std::int64_t samples = 0;
  double learning_rate = 0;
  double seconds =
      0;  // since the end of the step before, in the platform's time; 0 for the first step
  std::uint64_t puts = 0,
                gets =
                    0;  // storage requests of the last stage's workers in their invocations so far
};

struct EvaluationSummary {
  std::int64_t step = 0;  // steps trained
  double loss = 0;
  double accuracy = 0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;
};

// What one worker used over all its attempts, in the platform's time.
struct WorkerAccount {
  WorkerId worker;
  int memory_mb = 0;
  int invocations = 0;
  int cold_starts = 0;
  Duration billed{};
  int max_memory_used_mb = 0;
  double compute_seconds = 0;
  StoreUsage usage;
};

}  // namespace funcpipe
