#include "planner/exact_solver.h"

#include <cmath>

#include "planner/evaluate.h"
#include "planner/exact_driver.h"
#include "planner/exact_target.h"

namespace funcpipe {
namespace {

using exact::BestTarget;
using exact::Driver;
using exact::Watch;

class Solver {
 public:
  Solver(const PlanningProblem& problem, const Objective& objective, const ExactOptions& options)
      : problem_(problem), objective_(objective), watch_(options) {}

  SolverResult run() {
    auto result = solve(objective_);
    result.solver_seconds = watch_.seconds();
    result.explored = explored_;
    return result;
  }

 private:
  SolverResult solve(const Objective& objective) {
    if (objective.usd_weight == 0 && std::isinf(objective.max_usd)) return fastest(objective);
    return best(objective, true, nullptr);
  }

  // The least time first, with prices left out; then the least cost of the plans that take it.
  SolverResult fastest(const Objective& objective) {
    auto result = best(objective, false, nullptr);
    if (result.proof.status != Proof::Status::kOptimal) return result;
    auto cheapest = objective;
    cheapest.usd_weight = 1;
    cheapest.seconds_weight = 0;
    cheapest.max_seconds = result.seconds;
    const auto bound = result.proof.bound;
    result = best(cheapest, true, &*result.solution);
    result.objective = objective.value(result.usd, result.seconds);
    result.proof.bound = bound;
    if (result.proof.status == Proof::Status::kOptimal) result.proof.bound = result.objective;
    return result;
  }

  SolverResult best(const Objective& objective, bool counted, const Solution* first) {
    BestTarget target(objective);
    if (first) target.offer(*first, *figures_of(problem_, *first));
    Driver driver(problem_, objective.max_functions, counted);
    driver.scan(target, watch_);
    const bool complete = driver.run(target, watch_);
    explored_ += driver.explored();
    return result_of(target, driver, complete);
  }

  SolverResult result_of(const BestTarget& target, const Driver& driver, bool complete) const {
    SolverResult result;
    if (target.solution()) {
      result.solution = target.solution();
      result.seconds = target.figures().seconds;
      result.usd = target.figures().usd;
      result.objective = target.objective().value(result.usd, result.seconds);
      result.proof.status = complete ? Proof::Status::kOptimal : Proof::Status::kFeasible;
    } else if (complete) {
      result.proof.status = Proof::Status::kInfeasible;
    }
    result.proof.bound = driver.value_bound(target);
    return result;
  }

  const PlanningProblem& problem_;
  const Objective& objective_;
  Watch watch_;
  std::int64_t explored_ = 0;
};

}  // namespace

SolverResult solve_exact(const PlanningProblem& problem, const Objective& objective,
                         const ExactOptions& options) {
  check(problem);
  return Solver(problem, objective, options).run();
}

}  // namespace funcpipe
