// The best plan that a search has seen, judged by evaluate() and ranking.h.
#pragma once

#include <optional>

#include "planner/planning_problem.h"
#include "planner/ranking.h"

namespace funcpipe {

// Borrows problem and objective. Not thread-safe.
class Incumbent {
 public:
  Incumbent(const PlanningProblem& problem, const Objective& objective)
      : problem_(problem), objective_(objective) {}

  // The plan's figures if it runs and is within the limits; it is kept if it is better.
  std::optional<Figures> offer(const Solution& solution);

  bool found() const { return solution_.has_value(); }
  // Infinity when nothing was found.
  double value() const;
  // Proof kFeasible or kUnknown, without a bound; `explored` is the number of offers.
  SolverResult result() const;

 private:
  const PlanningProblem& problem_;
  const Objective& objective_;
  std::optional<Solution> solution_;
  Figures figures_;
  std::int64_t offers_ = 0;
};

}  // namespace funcpipe
