// Bayesian optimisation, the other planner the paper compares with: it evaluates one plan after the
// other, each where a Gaussian process expects most improvement over the best so far.
//
// Variables are those of the co-optimisation problem: number of stages, cuts, an option for every
// stage, degree. The process sees a plan as a point in a unit cube: degree, number of stages, and
// at each of several depths of the model (equal shares of its computation) the option there and how
// many stages end before it. Its values are logarithms of the objective; plans that do not fit or
// break a limit count as worse than the worst of the others, by how far they are off.
#pragma once

#include <cstdint>

#include "planner/planning_problem.h"

namespace funcpipe {

struct BayesOptions {
  int evaluations = 200;  // the first `initial` of them at random
  int initial = 20;
  int candidates = 500;  // plans compared by expected improvement before each evaluation
  std::uint64_t seed = 1;
};

// Deterministic for a seed. The proof is kFeasible without a bound, or kUnknown when no plan within
// the limits was met. Throws Error(kInvalidArgument) for a problem that check() rejects.
SolverResult solve_bayes(const PlanningProblem& problem, const Objective& objective,
                         const BayesOptions& options = {});

}  // namespace funcpipe
