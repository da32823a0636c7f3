// Random plans, and random neighbours of plans: what heuristic searches choose from.
#pragma once

#include "base/rng.h"
#include "planner/planning_problem.h"

namespace funcpipe {

// Borrows the problem. Plans cover all layers, but need not fit.
class PlanSampler {
 public:
  PlanSampler(const PlanningProblem& problem, std::uint64_t seed) : problem_(problem), rng_(seed) {}

  // Any degree, numbers of stages uniform in their logarithm, cuts anywhere; one option for all
  // stages in half of the cases.
  Solution random();
  // One to three changes: a cut moved, added or taken away, an option changed for one stage or for
  // all, another degree.
  Solution neighbour(Solution solution);

 private:
  std::size_t index(std::size_t count) { return rng_.below(count); }
  int random_option() { return static_cast<int>(index(problem_.options.size())); }
  void change(Solution& solution);
  void move_cut(Solution& solution);
  void add_cut(Solution& solution);
  void remove_cut(Solution& solution);

  const PlanningProblem& problem_;
  Rng rng_;
};

}  // namespace funcpipe
