#include "planner/milp_solver.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "planner/evaluate.h"
#include "planner/incumbent.h"
#include "planner/milp_programme.h"
#include "planner/milp_stages.h"
#include "planner/tpdmp.h"

namespace funcpipe {
namespace {

constexpr std::size_t kMostStages = 10'000;  // CBC gets no further than the root within minutes

using SteadyTime = std::chrono::steady_clock::time_point;

class MilpSearch {
 public:
  MilpSearch(const PlanningProblem& problem, const Objective& objective, Duration time_limit)
      : problem_(problem),
        objective_(objective),
        time_limit_(time_limit),
        best_(problem, objective) {}

  SolverResult run() {
    // A plan to begin with makes the programmes smaller.
    if (const auto rival = solve_tpdmp(problem_, objective_).solution) best_.offer(*rival);
    double bound = PlanningProblem::kNever;
    for (const int degree : by_least_value()) bound = std::min(bound, solve_degree(degree));
    auto result = best_.result();
    result.explored = nodes_;
    result.proof = {status(bound), std::min(bound, best_.value())};
    result.solver_seconds = to_seconds(elapsed());
    return result;
  }

 private:
  Duration elapsed() const { return std::chrono::steady_clock::now() - start_; }

  std::vector<MilpStage> stages(int degree) const {
    return milp_stages(problem_, objective_, degree, best_.value());
  }

  // Degrees that can hold the best plan, the most promising first.
  std::vector<int> by_least_value() const {
    std::vector<std::pair<double, int>> order;
    for (int degree = 0; degree < static_cast<int>(problem_.degrees.size()); ++degree) {
      const auto of_use = stages(degree);
      check_size(of_use.size());
      if (!of_use.empty()) order.emplace_back(least_value(of_use), degree);
    }
    std::sort(order.begin(), order.end());
    std::vector<int> degrees;
    for (const auto& [value, degree] : order) degrees.push_back(degree);
    return degrees;
  }

  void check_size(std::size_t stage_count) const {
    if (stage_count <= kMostStages) return;
    fail(ErrorCode::kInvalidArgument,
         "a model of {} layers has {} possible stages at {} memory options, too many for a linear "
         "programme (at most {}): merge layers to 40 or fewer, or use the exact solver",
         problem_.layer_count(), stage_count, problem_.option_count(), kMostStages);
  }

  static double least_value(const std::vector<MilpStage>& stages) {
    double least = PlanningProblem::kNever;
    for (const auto& stage : stages) least = std::min(least, stage.least_value);
    return least;
  }

  // A value that no plan of this degree is below but the best one. Infinity: proved.
  double solve_degree(int degree) {
    const auto of_use = stages(degree);
    if (of_use.empty()) return PlanningProblem::kNever;
    MilpProgramme programme(problem_, objective_, degree, of_use, best_.value());
    for (double bound = least_value(of_use);;) {
      const auto left = time_limit_ - elapsed();
      if (left <= Duration::zero()) return bound;
      const auto result = programme.solve(left);
      nodes_ += result.nodes;
      bound = std::max(bound, result.bound);
      const bool proved = result.status != MilpResult::Status::kStopped;
      if (result.values.empty()) return proved ? PlanningProblem::kNever : bound;
      const auto plan = programme.plan(result);
      if (best_.offer(plan)) return proved ? PlanningProblem::kNever : bound;
      programme.exclude(plan);  // within the limits only to CBC's tolerance
    }
  }

  Proof::Status status(double bound) const {
    const bool proved = bound >= best_.value();
    if (best_.found()) return proved ? Proof::Status::kOptimal : Proof::Status::kFeasible;
    return proved ? Proof::Status::kInfeasible : Proof::Status::kUnknown;
  }

  const PlanningProblem& problem_;
  const Objective& objective_;
  const Duration time_limit_;
  const SteadyTime start_ = std::chrono::steady_clock::now();
  Incumbent best_;
  std::int64_t nodes_ = 0;
};

}  // namespace

SolverResult solve_milp(const PlanningProblem& problem, const Objective& objective,
                        const MilpOptions& options) {
  check(problem);
  return MilpSearch(problem, objective, options.time_limit).run();
}

}  // namespace funcpipe
