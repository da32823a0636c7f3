// A plan: where the model is cut, what memory every stage gets, how often it is replicated.
// Planner, simulator and runtime read this one object.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/config.h"

namespace funcpipe {

// How replicas of a stage sum their gradients (docs/concepts.md).
enum class AllReduceAlgorithm { kThreePhase, kPipelined };
std::string_view to_string(AllReduceAlgorithm algorithm);  // "three-phase", "pipelined"
AllReduceAlgorithm all_reduce_algorithm_from_config(const ConfigNode& node);

struct StagePlan {
  int first_layer = 0;
  int last_layer = 0;  // one past the end
  int memory_mb = 0;   // memory option of the stage's functions, in MiB (the vendors' "MB")
  bool operator==(const StagePlan&) const = default;
};

// A worker's place: one copy of one stage.
struct WorkerId {
  int stage = 0;
  int replica = 0;
  bool operator==(const WorkerId&) const = default;
  std::string text() const {
    return fmt::format("{}.{}", stage, replica);
  }  // "1.0": stage 1, replica 0
};

struct Plan {
  std::vector<StagePlan> stages;  // contiguous, from layer 0 to the model's last
  int replicas = 1;               // data-parallel degree d
  AllReduceAlgorithm all_reduce = AllReduceAlgorithm::kPipelined;

  int stage_count() const { return static_cast<int>(stages.size()); }
  std::vector<WorkerId> workers() const;  // stage by stage, replica by replica

  static Plan from_config(const ConfigNode& node);
  nlohmann::json to_json() const;
  bool operator==(const Plan&) const = default;
};

// Stages of the layers [0, layers) that begin at 0 and at every cut. Throws Error(kInvalidArgument)
// naming a cut that is out of range or not increasing. `memory_mb` holds one value for all stages,
// or one for each.
std::vector<StagePlan> stages_from_cuts(const std::vector<int>& cuts, int layers,
                                        const std::vector<int>& memory_mb);
// Cuts that give `stages` stages of layer counts as even as can be.
std::vector<int> even_cuts(int layers, int stages);

}  // namespace funcpipe
