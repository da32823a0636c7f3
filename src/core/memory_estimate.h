// How much memory a stage needs, before it runs: to reject memory options that are too small.
#pragma once

#include <cstdint>
#include <string>

#include "core/job.h"
#include "core/manifest.h"

namespace funcpipe {

// Bytes.
struct MemoryEstimate {
  std::uint64_t base = 0;     // a process with libtorch after its first operation
  std::uint64_t weights = 0;  // parameters and buffers
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;
  std::uint64_t exchange = 0;     // all-reduce: a second copy of the gradients
  std::uint64_t activations = 0;  // of all micro-batches in flight
  std::uint64_t workspace = 0;    // temporaries: of the largest layer, or of the largest update

  std::uint64_t total() const;
  // "about 312 MB: libtorch 190, weights 10, ..."; parts of 0 are left out.
  std::string describe() const;
};

struct StageMemoryOptions {
  int first_layer = 0, last_layer = 0;  // [first, last)
  std::int64_t micro_batch_size = 1;
  std::int64_t micro_batches_in_flight = 1;  // of one replica: all of its share with GPipe
  OptimizerSpec optimizer;
  int replicas = 1;
};

// From the manifest alone; docs/models.md compares it with measured peaks. What one layer keeps
// inside is guessed by its sub-modules.
MemoryEstimate estimate_stage_memory(const ModelManifest& manifest,
                                     const StageMemoryOptions& options);

}  // namespace funcpipe
