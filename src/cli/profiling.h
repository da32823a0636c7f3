// Profiling a job's model on the job's platform: what `profile` does, and what an automatic plan
// without a profile needs first.
#pragma once

#include <filesystem>
#include <stop_token>
#include <vector>

#include "cli/job_setup.h"
#include "core/profile.h"

namespace funcpipe {

struct ProfilingOptions {
  std::vector<int> memory_mb;  // empty: default_memory_options
  int rounds = 7;
  int warm_up_passes = 3;
  int parallel = 1;    // memory options at a time
  bool fresh = false;  // leave out what an interrupted run has measured
  // The profile, as JSON. Beside it, while profiling: <output>.partial (what is measured; stays when
  // interrupted) and <output>.store.
  std::filesystem::path output;
};

// Where an interrupted run leaves what it has measured.
std::filesystem::path partial_profile(const std::filesystem::path& output);

// What an automatic plan is to choose from; else the size of the job's plan, and of AWS's usual ones
// those that this machine can be true to.
std::vector<int> default_memory_options(const JobSpec& job);

// Shows progress and cost on stderr, and writes `output` in the end.
ModelProfile measure_profile(const PreparedJob& prepared, const ProfilingOptions& options,
                             const std::stop_token& stop);

}  // namespace funcpipe
