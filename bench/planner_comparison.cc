// The exact co-optimiser against its rivals and against its check, on synthetic profiles of the
// paper's models (src/planner/paper_profiles.h). Two tables:
//
//   planner_comparison rivals   TPDMP and Bayesian optimisation: how much worse their plans are
//   planner_comparison milp     CBC on more and more layers, as far as it gets within 60 s
//
// Everything runs in one thread. The first takes some five minutes, most of them in Bayes; the
// second up to fifteen.
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/platform_spec.h"
#include "planner/bayes.h"
#include "planner/exact_solver.h"
#include "planner/layer_merging.h"
#include "planner/milp_solver.h"
#include "planner/paper_profiles.h"
#include "planner/performance_model.h"
#include "planner/tpdmp.h"

namespace funcpipe {
namespace {

// The paper's weights of time for cost in MB-seconds of weight 1.
constexpr int kTimeWeights[] = {0, 1 << 16, 1 << 19, 1 << 20};

Objective weighted(int time_weight) {
  return {1, time_weight * aws_lambda_spec().usd_per_gb_second / 1024};
}

PlanningProblem problem_of(const ModelProfile& profile, std::int64_t batch_size) {
  PlanningInput input;
  input.batch_size = batch_size;
  input.platform = aws_lambda_spec();
  return make_problem(PerformanceModel::kPaper, profile, input);
}

// Stages x replicas, seconds and dollars of a step, seconds of the solver.
std::string row_of(const PlanningProblem& problem, const SolverResult& result) {
  if (!result.solution)
    return fmt::format("{:>8} {:>8} {:>9} {:8.3f}", "none", "", "", result.solver_seconds);
  const auto& solution = *result.solution;
  const auto replicas = problem.degrees[static_cast<std::size_t>(solution.degree)].replicas;
  return fmt::format("{:>8} {:8.3f} {:9.6f} {:8.3f}",
                     fmt::format("{} x {}", solution.stages.size(), replicas), result.seconds,
                     result.usd, result.solver_seconds);
}

std::string excess(const SolverResult& rival, const SolverResult& exact) {
  if (!rival.solution) return "";
  return fmt::format("{:+.1f} %", 100 * (rival.objective / exact.objective - 1));
}

void compare_rivals() {
  fmt::print("{:30}  {:36}  {:46}  {}\n", "", "exact (proved)", "TPDMP", "Bayes");
  fmt::print("{:14} {:>5} {:>9}", "model", "batch", "a2");
  for (const auto* last : {"", " objective", " objective"})
    fmt::print("  {:>8} {:>8} {:>9} {:>8}{}", "plan", "s", "$", "solver s", last);
  fmt::print("\n");
  for (const auto& model : paper_profile_names()) {
    const auto profile = paper_profile(model);
    for (const int batch_size : {16, 64, 256}) {
      const auto problem = problem_of(profile, batch_size);
      for (const int time_weight : kTimeWeights) {
        const auto objective = weighted(time_weight);
        const auto exact = solve_exact(problem, objective);
        const auto tpdmp = solve_tpdmp(problem, objective);
        const auto bayes = solve_bayes(problem, objective);
        fmt::print("{:14} {:5} {:9}  {}  {} {:>9}  {} {:>9}\n", model, batch_size, time_weight,
                   row_of(problem, exact), row_of(problem, tpdmp), excess(tpdmp, exact),
                   row_of(problem, bayes), excess(bayes, exact));
        std::fflush(stdout);
      }
    }
  }
}

// False: no proof within a minute.
bool compare_milp(const ModelProfile& profile, int layers, int batch_size) {
  const auto problem = problem_of(merge_layers(profile, layers).profile, batch_size);
  const auto objective = weighted(1 << 16);
  const auto exact = solve_exact(problem, objective);
  const auto milp = solve_milp(problem, objective, {.time_limit = std::chrono::minutes(1)});
  const bool proved = milp.proof.status == Proof::Status::kOptimal;
  fmt::print(
      "{:14} {:6} {:5} {:10.4f} {:10.2f} {:8.0f} {:>12}\n", profile.model, problem.layer_count(),
      batch_size, exact.solver_seconds, milp.solver_seconds,
      milp.solver_seconds / exact.solver_seconds,
      proved ? fmt::format("{:.0e}", std::fabs(milp.objective / exact.objective - 1)) : "no proof");
  std::fflush(stdout);
  return proved;
}

void compare_milp() {
  fmt::print("{:14} {:>6} {:>5} {:>10} {:>10} {:>8} {:>12}\n", "model", "layers", "batch",
             "exact s", "CBC s", "ratio", "difference");
  for (const auto& model : paper_profile_names()) {
    const auto profile = paper_profile(model);
    for (const int batch_size : {16, 64}) {
      for (const int layers : {8, 12, 16, 20, 24, 32}) {
        if (layers > profile.layer_count() || !compare_milp(profile, layers, batch_size)) break;
      }
    }
  }
}

}  // namespace
}  // namespace funcpipe

int main(int argc, char** argv) {
  const std::string_view table = argc == 2 ? argv[1] : "";
  if (table == "rivals") {
    funcpipe::compare_rivals();
  } else if (table == "milp") {
    funcpipe::compare_milp();
  } else {
    fmt::print(stderr, "usage: planner_comparison rivals|milp\n");
    return 2;
  }
  return 0;
}
