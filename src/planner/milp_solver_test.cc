#include "planner/milp_solver.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "planner/brute_force.h"
#include "planner/evaluate.h"
#include "planner/random_problem.h"

namespace funcpipe {
namespace {

// Weights and limits of every kind, the latter such that they bind now and then.
Objective random_objective(Rng& rng, const std::vector<Figures>& plans) {
  Objective objective{rng.uniform() < 0.8 ? 1.0 : 0.0, 0};
  if (objective.usd_weight == 0 || rng.uniform() < 0.7)
    objective.seconds_weight = 1e-4 * rng.uniform();
  if (plans.empty()) return objective;
  const auto& some = plans[rng.below(plans.size())];
  if (rng.uniform() < 0.3) objective.max_seconds = some.seconds;
  if (rng.uniform() < 0.3) objective.max_usd = some.usd;
  if (rng.uniform() < 0.2) objective.max_functions = some.functions;
  return objective;
}

void expect_proof(const SolverResult& result, const std::optional<Figures>& best,
                  const Objective& objective, std::uint64_t seed) {
  if (!best) {
    EXPECT_EQ(result.proof.status, Proof::Status::kInfeasible) << "seed " << seed;
    return;
  }
  ASSERT_EQ(result.proof.status, Proof::Status::kOptimal) << "seed " << seed;
  const double expected = objective.value(best->usd, best->seconds);
  EXPECT_NEAR(result.objective, expected, 1e-9 * expected) << "seed " << seed;
}

TEST(MilpSolver, EqualsEnumeration) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    const auto problem = random_problem(rng, with_random_extras(rng, {.max_layers = 5}));
    const auto plans = enumerate_plans(problem);
    const auto objective = random_objective(rng, plans);
    expect_proof(solve_milp(problem, objective), brute_force_best(plans, objective), objective,
                 seed);
  }
}

}  // namespace
}  // namespace funcpipe
