// The exact co-optimiser: cut points, memory options and data-parallel degree together, with proof.
//
// It takes the layers as they are, un-merged, and proves its optimum. How, and why nothing is lost:
//
//   exact_labels.h  partial plans of a suffix of the layers, and which of them can be forgotten
//   exact_bounds.h  how good a partial plan can still become
//   exact_scan.h    good plans to begin with
//   exact_search.h  the pass over all layers that puts these together, for one degree
//
// Thread-safe: a call shares nothing with another.
#pragma once

#include <stop_token>

#include "base/units.h"
#include "planner/planning_problem.h"

namespace funcpipe {

struct ExactOptions {
  Duration time_limit = Duration::max();
  std::stop_token stop;  // as if the time limit had struck
};

// Minimises the objective within its limits and the memory of the options. Limits hold, and plans
// are equal, to a relative 1e-12 (ranking.h). The proof is kOptimal or kInfeasible; when time ran
// out, kFeasible with the best plan so far and a bound that no plan is below, or kUnknown when there
// was none yet. Throws Error(kInvalidArgument) for a problem that check() rejects.
SolverResult solve_exact(const PlanningProblem& problem, const Objective& objective,
                         const ExactOptions& options = {});

}  // namespace funcpipe
