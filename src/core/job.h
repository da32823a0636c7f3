// A job: one training run as the user describes it. docs/job.md documents every key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/config.h"
#include "core/auto_plan.h"
#include "core/learning_rate.h"
#include "core/plan.h"

namespace funcpipe {

struct ModelSpec {
  std::string builtin;                                // name of a built-in model, or empty
  nlohmann::json options = nlohmann::json::object();  // of the built-in model
  std::string archive;                                // path of a model archive, or empty
  bool operator==(const ModelSpec&) const = default;
};

struct DataSpec {
  std::string train;                // dataset: a folder or store URL
  std::string test;                 // the same, or empty: no evaluation
  std::vector<double> mean, scale;  // inputs become (x / 255 if they are bytes, - mean) / scale;
                                    // one value, or one per channel (first dimension of a record)
  bool operator==(const DataSpec&) const = default;
};

enum class LossKind { kCrossEntropy, kMeanSquaredError };
std::string_view to_string(LossKind kind);  // "cross_entropy", "mse"

struct OptimizerSpec {
  enum class Kind { kSgd, kAdam, kAdamW };
  Kind kind = Kind::kSgd;
  double learning_rate = 0.01;
  double weight_decay = 0;
  double momentum = 0;                                // SGD
  double dampening = 0;                               // SGD
  bool nesterov = false;                              // SGD
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // Adam, AdamW
  bool operator==(const OptimizerSpec&) const = default;
  // float32 values kept per parameter beside weight and gradient.
  int state_values_per_parameter() const;
};

struct TrainingSpec {
  std::int64_t epochs = 1;
  std::int64_t steps = 0;  // > 0: exactly so many, whatever the epochs
  std::int64_t batch_size = 0;
  std::int64_t micro_batch_size = 0;
  bool shuffle = true;
  LossKind loss = LossKind::kCrossEntropy;
  OptimizerSpec optimizer;
  LearningRateSpec schedule;
  double clip_norm = 0;                    // > 0: largest global gradient norm
  std::int64_t evaluate_every_epochs = 1;  // 0: only after the last step
  bool operator==(const TrainingSpec&) const = default;
};

struct PlanSpec {
  std::string file;                       // a plan written by `funcpipe plan`, or empty
  std::optional<AutoPlanSpec> automatic;  // left to the planner; then only all_reduce counts beside
  std::optional<int> stage_count;         // even split; absent with `cuts` absent: one stage
  std::vector<int> cuts;
  std::vector<int> memory_mb = {1769};
  int replicas = 1;
  AllReduceAlgorithm all_reduce = AllReduceAlgorithm::kPipelined;
  bool operator==(const PlanSpec&) const = default;
};

struct LocalPlatformSpec {
  Duration time_limit = std::chrono::seconds(900);
  double uplink_bytes_per_second;  // per function; infinity: not limited
  double downlink_bytes_per_second;
  Duration latency{};     // of every storage request
  Duration cold_start{};  // added to every start of a function's process
  double time_dilation = 1;
  int max_concurrency = 1000;
  bool memory_limit = true;
  bool cpu_limit = true;
  LocalPlatformSpec();
  bool operator==(const LocalPlatformSpec&) const = default;
};

struct PlatformSection {
  std::string kind = "local";
  LocalPlatformSpec local;
  bool operator==(const PlatformSection&) const = default;
};

struct JobSpec {
  std::string name = "job";  // 1 to 64 letters, digits, '-' and '_'
  std::uint64_t seed = 0;
  ModelSpec model;
  DataSpec data;
  TrainingSpec training;
  PlanSpec plan;
  PlatformSection platform;
  std::string store;  // URL or path of the messages' store; empty: "store" inside the run directory

  // Throws Error(kInvalidArgument) with file, line, key and what would be right for whatever can be
  // told from the file alone.
  static JobSpec from_config(const ConfigNode& node);
  // Readable by from_config again, with equal result.
  nlohmann::json to_json() const;
  bool operator==(const JobSpec&) const = default;
};

}  // namespace funcpipe
