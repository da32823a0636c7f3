// From a job's wishes and a profile to a plan: what `plan`, `simulate` and `train` share.
#pragma once

#include <cstdint>
#include <string>

#include "core/auto_plan.h"
#include "core/job.h"
#include "core/platform_spec.h"
#include "core/profile.h"
#include "planner/frontier.h"
#include "planner/layer_merging.h"
#include "planner/planning_problem.h"
#include "report/plan_report.h"

namespace funcpipe {

// What a plan is made from.
struct PlanningSetup {
  AutoPlanSpec wishes;
  MergedProfile merged;  // of as many layers as the wishes say; else the profile itself
  PlatformSpec platform;
  PlanningProblem problem;
  Objective objective;               // the limits alone for `recommended`
  std::int64_t steps_per_epoch = 0;  // 0: not known
  AllReduceAlgorithm all_reduce = AllReduceAlgorithm::kPipelined;
};

// `train_records`: of the job's dataset, 0 when it cannot be looked at. `platform`: whose prices
// count; empty: the profile's. Throws Error(kInvalidArgument) when profile and job do not belong
// together.
PlanningSetup prepare_planning(const JobSpec& job, const AutoPlanSpec& wishes,
                               const ModelProfile& profile, std::int64_t train_records,
                               const std::string& platform);

// Throws Error(kInfeasible) that says which constraint binds and what would help, and
// kDeadlineExceeded when the solver's time limit came before any plan.
PlannedJob make_plan(const PlanningSetup& setup);
Frontier make_frontier(const PlanningSetup& setup);

// Records of the job's training set; 0 when it is not there (a note says so).
std::int64_t training_records(const JobSpec& job);

}  // namespace funcpipe
