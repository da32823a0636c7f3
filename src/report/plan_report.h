// A plan for people and for programs: what each stage takes, what an iteration and an epoch cost,
// where the bottleneck is, and how sure the solver is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/plan.h"
#include "core/platform_spec.h"
#include "core/profile.h"
#include "planner/evaluate.h"
#include "planner/planning_problem.h"

namespace funcpipe {

struct PlannedJob {
  Plan plan;
  Solution solution;
  Evaluation evaluation;  // of the solution
  SolverResult result;
  std::string performance_model;     // "paper", "full"
  std::string solver;                // "exact", ...
  std::string objective;             // "cheapest", "weighted 1,65536", ...
  std::int64_t steps_per_epoch = 0;  // 0: not known
};

// "optimal", "within 3.2 % of the best (bound ...)", "heuristic, no bound".
std::string describe(const Proof& proof, double objective);
// What an iteration waits for most: "computation of stage 1 (62 % of the iteration)".
std::string bottleneck(const PlanningProblem& problem, const PlannedJob& job);

// `profile` is the one the problem was made from (merged layers included).
std::string plan_table(const ModelProfile& profile, const PlanningProblem& problem,
                       const PlatformSpec& platform, const PlannedJob& job);
// The plan file's content: Plan::to_json() with "made_by" beside it.
nlohmann::json plan_file(const PlanningProblem& problem, const PlannedJob& job);

}  // namespace funcpipe
