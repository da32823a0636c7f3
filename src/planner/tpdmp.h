// TPDMP, the planner the paper compares with: throughput-maximising device placement of Tarnawski
// et al. (NeurIPS 2020), at each memory option and degree.
//
// All stages have one option. For every number of stages the layers are partitioned so that the
// largest load of a stage is least, subject to its memory, where the load is what a stage does for
// one micro-batch, nothing overlapped: computation plus communication, forward plus backward (their
// load without interleaving, for schedules like PipeDream's):
//
//   load = F + B + activation in and out + gradient in and out
//
// Of all these partitions the best under the objective is taken. Tarnawski et al. state an integer
// programme; on a chain dynamic programming reaches the same optimum, and is what is done here.
// Where several partitions have the least largest load, the programme leaves open which it returns;
// this one is as balanced in each of its prefixes.
#pragma once

#include <vector>

#include "planner/planning_problem.h"

namespace funcpipe {

// The partitions of least largest load into 1, 2, ... `max_stages` stages at this option and degree
// (indices). Numbers of stages without a partition that fits are left out.
std::vector<Solution> least_load_partitions(const PlanningProblem& problem, int option, int degree,
                                            int max_stages);

// The proof is kFeasible without a bound, or kUnknown when no partition is within the limits: this
// is a heuristic for the co-optimisation problem. Throws Error(kInvalidArgument) for a problem that
// check() rejects. Thread-safe.
SolverResult solve_tpdmp(const PlanningProblem& problem, const Objective& objective);

}  // namespace funcpipe
