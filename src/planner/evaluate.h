// What a given solution takes: the formulas of planning_problem.h, written once and plainly. The
// reference that every solver is checked against.
#pragma once

#include <string>
#include <vector>

#include "planner/planning_problem.h"

namespace funcpipe {

struct StageEvaluation {
  double forward = 0, backward = 0;           // F, B: seconds for one micro-batch
  double up = 0, down = 0;                    // activation out, activation in
  double gradient_up = 0, gradient_down = 0;  // gradient of the input out, of the output in
  double sync = 0, update = 0;
  double backward_total = 0;  // t_b(k)
  double memory_bytes = 0;
};

struct Evaluation {
  std::vector<StageEvaluation> stages;
  double forward_seconds = 0;  // t_f
  double seconds = 0;          // t_iter
  double usd = 0;              // of one iteration
  int critical_stage = 0;      // whose backward and synchronisation end last
  bool fits = true;            // every stage runs, and within its memory
};

// `solution` must cover all layers with options and a degree of the problem.
Evaluation evaluate(const PlanningProblem& problem, const Solution& solution);

// Memory of layers [first, last) at this option and degree; infinity if one does not run there.
double stage_memory(const PlanningProblem& problem, const StageChoice& stage,
                    const PlanningProblem::Degree& degree);

// Throws Error(kInvalidArgument) when tables do not match in size or hold what no profile gives
// (negative, NaN, no layers, no options, no degrees).
void check(const PlanningProblem& problem);

}  // namespace funcpipe
