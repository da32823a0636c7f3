#include "planner/frontier.h"

#include <algorithm>
#include <cmath>

#include "planner/evaluate.h"
#include "planner/exact_driver.h"
#include "planner/exact_target.h"
#include "planner/ranking.h"

namespace funcpipe {
namespace {

constexpr double kWorthIt = 0.8;  // of the recommended point's ratio

}  // namespace

Frontier solve_frontier(const PlanningProblem& problem, const Objective& limits,
                        const ExactOptions& options) {
  check(problem);
  exact::Watch watch(options);
  exact::FrontierTarget target(limits);
  // The fastest plan comes first: no plan that costs more is of use.
  auto fastest = limits;
  fastest.usd_weight = 0;
  fastest.seconds_weight = 1;
  fastest.max_usd = PlanningProblem::kNever;
  const auto first = solve_exact(problem, fastest, options);
  if (first.solution) target.offer(*first.solution, *figures_of(problem, *first.solution));
  exact::Driver driver(problem, limits.max_functions, true, first.proof.bound);
  driver.scan(target, watch);
  Frontier frontier;
  frontier.complete = driver.run(target, watch);
  for (const auto& point : target.points())
    frontier.points.push_back({point.solution, point.figures.seconds, point.figures.usd});
  frontier.solver_seconds = watch.seconds();
  return frontier;
}

std::optional<std::size_t> recommended_point(const Frontier& frontier) {
  if (frontier.points.empty()) return std::nullopt;
  const auto& cheapest = frontier.points.back();
  std::size_t best = frontier.points.size() - 1;
  double best_ratio = kWorthIt;
  for (std::size_t i = frontier.points.size() - 1; i-- > 0;) {
    const auto& point = frontier.points[i];
    const double saved = (cheapest.seconds - point.seconds) / cheapest.seconds;
    const double added = (point.usd - cheapest.usd) / cheapest.usd;
    if (saved < best_ratio * added) continue;
    best_ratio = saved / added;
    best = i;
  }
  return best;
}

}  // namespace funcpipe
