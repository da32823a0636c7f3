// The stages a plan can have at one degree, with bounds on the plans they are in. Internal to the
// MILP solver.
#pragma once

#include <vector>

#include "planner/planning_problem.h"

namespace funcpipe {

struct MilpStage {
  StageChoice choice;
  double forward_terms = 0;     // F + up + down
  double largest_forward = 0;   // of these
  double backward = 0;          // B + down of the gradient
  double largest_backward = 0;  // of these
  double gradient_up = 0;       // to the stage before
  double tail = 0;              // update and synchronisation
  double usd_per_second = 0;    // of all its replicas
  double constant_usd = 0;      // the cut before it included
  // Every plan with this stage that is within the limits and no worse than `cutoff`:
  double least_seconds = 0;
  double most_seconds = 0;
  double least_value = 0;
};

// Those of use, sorted by first layer. `cutoff`: the value of the best plan known, or infinity.
// Bounds and limits give way by a relative 1e-7: CBC may lose a plan that only just holds.
std::vector<MilpStage> milp_stages(const PlanningProblem& problem, const Objective& objective,
                                   int degree, double cutoff);

}  // namespace funcpipe
