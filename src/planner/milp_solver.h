// The co-optimisation problem as a mixed-integer linear programme, solved by CBC: an independent
// check of the exact solver, for small models. Nothing is shared with that but planning_problem.h,
// evaluate() and ranking.h.
//
// There is one programme for each degree. Its stages s are all (first layer h, end e, option) that
// fit the memory; z_s says that s is in the plan, so that z is a path from layer 0 to layer L.
// "Over i" means the stages that contain layer i, of which exactly one is in the plan.
//
//   t = sum of forward terms(s) z_s + (mu - 1) X + R
//
// and for every layer i
//
//   X   >= sum over i of (largest forward term of s) z_s
//   R   >= sum over i of (B + down + tail) z_s + sum after i of (B + down + up) z_s + (mu - 1) Y_i
//   Y_i >= sum over i of max(B, down) z_s
//   Y_i >= Y_(i+1);   Y_i >= sum of up z_s over the stages s that begin at i + 1
//
// where `up` and `down` are those of gradients, and Y_i is the largest backward term of the suffix
// that begins with the stage of layer i. The plan's price is a sum over z; its product with t needs
// a variable w_s = t z_s for every stage, so that w is a flow of the amount t along the same path:
//
//   usd = rate * sum of price_s w_s + constants;   least_s z_s <= w_s <= most_s z_s
//
// with bounds least_s, most_s of t for plans that contain s: the former from shortest paths, the
// latter from the limits and the best plan known. A stage with least_s > most_s is left out.
#pragma once

#include "base/units.h"
#include "planner/planning_problem.h"

namespace funcpipe {

struct MilpOptions {
  Duration time_limit = Duration::max();
};

// Proves to CBC's tolerance, a relative 1e-9 of the objective; ties are not broken. The figures
// reported are those of evaluate(). Proofs as solve_exact; CBC looks at the clock between linear
// programmes, so that it may overrun the limit. Practical up to about 20 layers and 8 options;
// throws Error(kInvalidArgument) for a problem that check() rejects or with more stages than CBC
// can handle. Single-threaded, and not to be entered from two threads at a time.
SolverResult solve_milp(const PlanningProblem& problem, const Objective& objective,
                        const MilpOptions& options = {});

}  // namespace funcpipe
