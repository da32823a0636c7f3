// What a job that leaves its plan to the planner wishes for (docs/job.md, section plan).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/config.h"

namespace funcpipe {

// Objectives, performance models and solvers by name; the planner knows what they mean.
enum class PlanObjective { kRecommended, kCheapest, kFastest, kWeighted };
enum class PlanSolver { kExact, kMilp, kTpdmp, kBayes };
std::string_view to_string(PlanObjective objective);  // "recommended", ...
std::string_view to_string(PlanSolver solver);        // "exact", ...
// The value of this name; throws Error(kInvalidArgument) naming all there are.
PlanObjective plan_objective_from(std::string_view name);
PlanSolver plan_solver_from(std::string_view name);

struct AutoPlanSpec {
  static constexpr double kNoBound = std::numeric_limits<double>::infinity();

  PlanObjective objective = PlanObjective::kRecommended;
  double usd_weight = 1, seconds_weight = 0;  // alpha 1 and 2, for kWeighted: cost in MB-seconds
  double max_seconds = kNoBound;              // of one iteration
  double max_usd = kNoBound;                  // of one iteration
  std::int64_t max_functions = std::numeric_limits<std::int64_t>::max();
  std::vector<int> memory_mb;  // options to choose from; empty: all of the profile
  std::vector<int> replicas;   // degrees to choose from; empty: all that divide the mini-batch
  std::string profile;         // path, or empty: measured first
  std::string performance_model = "full";
  PlanSolver solver = PlanSolver::kExact;
  int merge = 0;                         // > 0: layers are merged to so many first
  double time_limit_seconds = kNoBound;  // for the solver
  bool operator==(const AutoPlanSpec&) const = default;

  // Reads the keys that only an automatic plan has; `reader` is that of the plan section.
  static AutoPlanSpec from_reader(ConfigReader& reader);
  // Readable by from_reader again, with equal result.
  nlohmann::json to_json() const;
  // "cheapest", "weighted 1,65536 under 2 s", ...
  std::string describe() const;
};

// Two numbers, "1,65536": throws Error(kInvalidArgument) for anything else, negative ones, or two
// zeros.
std::pair<double, double> parse_alpha(std::string_view text);

}  // namespace funcpipe
