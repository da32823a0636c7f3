// Why a planning problem has no solution, and what would make it have one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/exact_solver.h"
#include "planner/planning_problem.h"

namespace funcpipe {

struct Infeasibility {
  enum class Cause {
    kNone,            // there is a solution
    kLayerNeverRuns,  // a layer that no option runs, whatever the memory of the formula
    kLayerMemory,     // some layer alone is too large for every option, at every degree
    kCut,             // each layer fits, but no sequence of stages does: links that never end
    kFunctions,       // max_functions
    kDeadline,        // max_seconds
    kBudget,          // max_usd, alone or together with the other limits
  };
  Cause cause = Cause::kNone;

  // kLayerNeverRuns, kLayerMemory.
  int layer = -1;
  std::string layer_name;
  double parameter_bytes = 0;
  double activation_bytes = 0;  // for one micro-batch
  // kLayerMemory: at the degree and option that come nearest.
  double needed_bytes = 0;
  double available_bytes = 0;
  int option_mb = 0;
  // kLayerMemory, kFunctions.
  int replicas = 1;
  int micro_batches = 1;  // of each replica, held at a time
  int stages = 0;         // kFunctions: that the memory needs

  // kFunctions, kDeadline, kBudget: what was asked for, and the least there is.
  double limit = 0;
  double least = 0;
  double max_seconds = PlanningProblem::kNever;  // kBudget: the least is within this deadline
  bool functions_limited = false;                // kDeadline, kBudget: and within max_functions
  bool proved = true;                            // false: time ran out; `least` is the least found

  // One or two sentences, e.g. "deadline 1.2 s: the fastest plan takes 1.53 s".
  std::string describe() const;
};

// Cause kNone when there is a solution after all. `layer_names` may be empty.
Infeasibility explain_infeasible(const PlanningProblem& problem, const Objective& objective,
                                 const std::vector<std::string>& layer_names,
                                 const ExactOptions& options = {});

}  // namespace funcpipe
