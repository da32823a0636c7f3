// The Pareto frontier of time and cost: every plan that no other beats in both.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "planner/exact_solver.h"
#include "planner/planning_problem.h"

namespace funcpipe {

struct FrontierPoint {
  Solution solution;
  double seconds = 0;
  double usd = 0;
};

struct Frontier {
  // Increasing seconds, decreasing usd. Plans that are equal in both (to a relative 1e-12) are one
  // point.
  std::vector<FrontierPoint> points;
  bool complete = false;  // false: time ran out; points are plans, but better ones may exist
  double solver_seconds = 0;
};

// Of all plans within the limits of `limits`, whose weights do not matter. No points: there is no
// such plan (if complete). Throws as solve_exact does.
Frontier solve_frontier(const PlanningProblem& problem, const Objective& limits,
                        const ExactOptions& options = {});

// The plan to recommend (Liu et al. 2023): the point that saves most time for its money, both
// relative to the cheapest plan, [(t_cheapest - t) / t_cheapest] / [(c - c_cheapest) / c_cheapest],
// if that ratio is at least 0.8; the cheapest plan otherwise. Nothing for an empty frontier.
std::optional<std::size_t> recommended_point(const Frontier& frontier);

}  // namespace funcpipe
