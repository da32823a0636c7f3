// Performance models: how a profile becomes the numbers of a planning problem. Everything that a
// model assumes is in performance_model.cc; solvers and reports only see the problem.
//
//   paper   the model of Liu et al. 2023, section 4: GB-seconds only; weights, gradients and, with
//           replicas, two buffers for synchronisation; the pipelined scatter-reduce.
//   full    adds what a bill and a real function have beside that: the platform's own price form,
//           storage requests, invocations and cold starts spread over the steps of the job; optimiser
//           state, buffers and workspace in the memory; the time of the optimiser's update; the
//           all-reduce algorithm in use.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/plan.h"
#include "core/platform_spec.h"
#include "core/profile.h"
#include "planner/planning_problem.h"

namespace funcpipe {

enum class PerformanceModel { kPaper, kFull };
std::string_view to_string(PerformanceModel model);  // "paper", "full"
// Throws Error(kInvalidArgument) naming the models there are.
PerformanceModel performance_model_from(std::string_view name);

// What a job adds to a profile.
struct PlanningInput {
  std::int64_t batch_size = 0;  // samples of a mini-batch; micro-batches are those of the profile
  std::vector<int> degrees;     // empty: every degree that divides the mini-batch
  int max_degree = 32;          // for empty `degrees`
  std::vector<int> memory_mb;   // options to choose from; empty: all of the profile
  AllReduceAlgorithm all_reduce = AllReduceAlgorithm::kPipelined;
  OptimizerSpec optimizer;
  bool clip = false;          // norms travel between the stages
  std::int64_t steps = 1000;  // of the job: what a cold start is spread over
  PlatformSpec platform;
};

// A degree divides the mini-batch when it divides its number of micro-batches. Throws
// Error(kInvalidArgument) for a degree that does not, naming those that do, and for memory options
// that the profile does not have.
PlanningProblem make_problem(PerformanceModel model, const ModelProfile& profile,
                             const PlanningInput& input);

// The degrees of a mini-batch up to `max_degree`.
std::vector<int> dividing_degrees(std::int64_t micro_batches, int max_degree);

// Seconds one all-reduce takes: per byte of the values, and beside that.
struct AllReduceCost {
  double seconds_per_byte = 0;
  double seconds = 0;
};
// As the paper has it: 2 s/w + (2 + n) lat.
AllReduceCost paper_all_reduce_cost(int replicas, const ProfiledOption& option);
// As it is: a lane makes one request after the other, so every one costs its latency.
AllReduceCost all_reduce_cost(AllReduceAlgorithm algorithm, int replicas,
                              const ProfiledOption& option);

// Between a solution of the problem and a plan. A plan without counterpart (a memory option or
// degree that the problem lacks) is an Error(kInvalidArgument).
Plan to_plan(const PlanningProblem& problem, const Solution& solution,
             AllReduceAlgorithm all_reduce);
Solution to_solution(const PlanningProblem& problem, const Plan& plan);

}  // namespace funcpipe
