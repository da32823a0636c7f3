#include "cli/planning.h"

#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "core/batching.h"
#include "data/dataset.h"
#include "planner/bayes.h"
#include "planner/exact_solver.h"
#include "planner/infeasibility.h"
#include "planner/milp_solver.h"
#include "planner/performance_model.h"
#include "planner/tpdmp.h"
#include "store/open_store.h"

namespace funcpipe {
namespace {

void check_belongs(const JobSpec& job, const ModelProfile& profile) {
  if (job.training.micro_batch_size == profile.micro_batch_size) return;
  fail(ErrorCode::kInvalidArgument,
       "the profile is for micro-batches of {} samples, the job has {}: profile the job again, or "
       "set training.micro_batch_size={}",
       profile.micro_batch_size, job.training.micro_batch_size, profile.micro_batch_size);
}

PlanningInput planning_input(const JobSpec& job, const AutoPlanSpec& wishes,
                             std::int64_t train_records) {
  PlanningInput input;
  input.batch_size = job.training.batch_size;
  input.degrees = wishes.replicas;
  input.memory_mb = wishes.memory_mb;
  input.all_reduce = job.plan.all_reduce;
  input.optimizer = job.training.optimizer;
  input.clip = job.training.clip_norm > 0;
  if (train_records > 0) {
    input.steps = StepSequence(train_records, job.training.batch_size, job.training.epochs,
                               job.training.steps)
                      .steps();
  } else if (job.training.steps > 0) {
    input.steps = job.training.steps;
  }
  return input;
}

// Weights of the paper count cost in MB-seconds: USD are turned into those at the platform's price.
Objective objective_of(const AutoPlanSpec& wishes, const PlatformSpec& platform) {
  Objective objective;
  if (wishes.objective == PlanObjective::kFastest) objective = Objective::fastest();
  if (wishes.objective == PlanObjective::kWeighted) {
    objective.usd_weight = wishes.usd_weight / (usd_per_second(platform, 1024) / 1024);
    objective.seconds_weight = wishes.seconds_weight;
  }
  objective.max_seconds = wishes.max_seconds;
  objective.max_usd = wishes.max_usd;
  objective.max_functions = wishes.max_functions;
  return objective;
}

ExactOptions exact_options(const AutoPlanSpec& wishes) {
  ExactOptions options;
  if (std::isfinite(wishes.time_limit_seconds))
    options.time_limit = from_seconds(wishes.time_limit_seconds);
  return options;
}

SolverResult solve(const PlanningSetup& setup) {
  switch (setup.wishes.solver) {
    case PlanSolver::kMilp: {
      MilpOptions options;
      if (std::isfinite(setup.wishes.time_limit_seconds))
        options.time_limit = from_seconds(setup.wishes.time_limit_seconds);
      return solve_milp(setup.problem, setup.objective, options);
    }
    case PlanSolver::kTpdmp:
      return solve_tpdmp(setup.problem, setup.objective);
    case PlanSolver::kBayes:
      return solve_bayes(setup.problem, setup.objective);
    case PlanSolver::kExact:
      break;
  }
  return solve_exact(setup.problem, setup.objective, exact_options(setup.wishes));
}

[[noreturn]] void fail_infeasible(const PlanningSetup& setup) {
  std::vector<std::string> names;
  for (const auto& layer : setup.merged.profile.layers) names.push_back(layer.name);
  fail(ErrorCode::kInfeasible, "{}",
       explain_infeasible(setup.problem, setup.objective, names).describe());
}

// The recommended point is one of the frontier, so its proof is that of the frontier.
SolverResult recommend(const PlanningSetup& setup) {
  if (setup.wishes.solver != PlanSolver::kExact) {
    fail(ErrorCode::kInvalidArgument,
         "the {} solver gives no frontier to recommend a plan from: choose the exact solver, or "
         "the objective cheapest, fastest or weighted",
         to_string(setup.wishes.solver));
  }
  const auto frontier = make_frontier(setup);
  const auto index = recommended_point(frontier).value_or(frontier.points.size() - 1);
  SolverResult result;
  result.solution = frontier.points[index].solution;
  result.proof.status = frontier.complete ? Proof::Status::kOptimal : Proof::Status::kFeasible;
  result.solver_seconds = frontier.solver_seconds;
  return result;
}

}  // namespace

PlanningSetup prepare_planning(const JobSpec& job, const AutoPlanSpec& wishes,
                               const ModelProfile& profile, std::int64_t train_records,
                               const std::string& platform) {
  check_belongs(job, profile);
  PlanningSetup setup;
  setup.wishes = wishes;
  setup.merged = merge_layers(profile, wishes.merge > 0 ? wishes.merge : profile.layer_count());
  setup.platform = platform_spec(platform.empty() ? profile.platform : platform);
  auto input = planning_input(job, wishes, train_records);
  input.platform = setup.platform;
  setup.problem =
      make_problem(performance_model_from(wishes.performance_model), setup.merged.profile, input);
  setup.objective = objective_of(wishes, setup.platform);
  setup.all_reduce = job.plan.all_reduce;
  if (train_records > 0) {
    setup.steps_per_epoch =
        StepSequence(train_records, job.training.batch_size, 1, 0).steps_per_epoch();
  }
  return setup;
}

PlannedJob make_plan(const PlanningSetup& setup) {
  PlannedJob job;
  job.result =
      setup.wishes.objective == PlanObjective::kRecommended ? recommend(setup) : solve(setup);
  if (!job.result.solution) {
    if (job.result.proof.status == Proof::Status::kUnknown) {
      fail(ErrorCode::kDeadlineExceeded, "the {} solver found no plan in {}: give it more time",
           to_string(setup.wishes.solver),
           format_duration(from_seconds(job.result.solver_seconds)));
    }
    fail_infeasible(setup);
  }
  job.solution = *job.result.solution;
  job.evaluation = evaluate(setup.problem, job.solution);
  job.result.seconds = job.evaluation.seconds;
  job.result.usd = job.evaluation.usd;
  job.result.objective = setup.objective.value(job.evaluation.usd, job.evaluation.seconds);
  job.plan = unmerged(to_plan(setup.problem, job.solution, setup.all_reduce), setup.merged);
  job.performance_model = setup.wishes.performance_model;
  job.solver = to_string(setup.wishes.solver);
  job.objective = setup.wishes.describe();
  job.steps_per_epoch = setup.steps_per_epoch;
  return job;
}

Frontier make_frontier(const PlanningSetup& setup) {
  auto frontier = solve_frontier(setup.problem, setup.objective, exact_options(setup.wishes));
  if (!frontier.points.empty()) return frontier;
  if (!frontier.complete) {
    fail(ErrorCode::kDeadlineExceeded, "the solver found no plan in {}: give it more time",
         format_duration(from_seconds(frontier.solver_seconds)));
  }
  fail_infeasible(setup);
}

std::int64_t training_records(const JobSpec& job) {
  try {
    return read_dataset_index(*open_store(job.data.train, OpenMode::kExisting), "").records;
  } catch (const Error& error) {
    fmt::print(stderr, "note: figures for an epoch are left out: data.train ({}): {}\n",
               job.data.train, error.what());
    return 0;
  }
}

}  // namespace funcpipe
