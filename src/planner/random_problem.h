// Random planning problems for tests: small enough to enumerate, yet with everything a problem can
// have.
#pragma once

#include "base/rng.h"
#include "planner/planning_problem.h"

namespace funcpipe {

struct RandomProblemOptions {
  int max_layers = 6;
  int max_options = 3;
  int max_degrees = 3;  // 1, 2, 4, ... of `max_micro_batches`
  int max_micro_batches = 16;
  // Times and prices are small multiples of a power of two: sums are exact, and ties abound.
  bool exact = false;
  // What goes beyond the paper's model.
  bool asymmetric_links = false;  // up != down
  bool constant_usd = false;      // stage_usd, cut_usd
  bool update = false;            // update times, and sync tails for one replica too
  bool workspace = false;         // fixed_bytes, input_bytes, workspace_bytes
  bool never = false;             // layers that do not run at an option
  bool unordered_prices = false;  // price_units not in the order of the memory
  bool large_prices = false;      // price_units in the thousands without a common divisor
};

PlanningProblem random_problem(Rng& rng, const RandomProblemOptions& options);

// Every extra on or off by chance, and everything else as given.
RandomProblemOptions with_random_extras(Rng& rng, RandomProblemOptions options);

}  // namespace funcpipe
