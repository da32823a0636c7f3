#include "planner/bayes.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "planner/evaluate.h"
#include "planner/plan_sampler.h"
#include "planner/random_problem.h"
#include "planner/ranking.h"

namespace funcpipe {
namespace {

PlanningProblem some_problem(std::uint64_t seed, int layers) {
  Rng rng(seed);
  PlanningProblem problem;
  do {
    problem = random_problem(rng, with_random_extras(rng, {.max_layers = layers}));
  } while (problem.layer_count() < layers);
  return problem;
}

void expect_whole(const PlanningProblem& problem, const Solution& plan) {
  int next = 0;
  for (const auto& stage : plan.stages) {
    ASSERT_EQ(stage.first, next);
    ASSERT_GT(stage.last, stage.first);
    ASSERT_TRUE(stage.option >= 0 && stage.option < problem.option_count());
    next = stage.last;
  }
  ASSERT_EQ(next, problem.layer_count());
  ASSERT_LT(static_cast<std::size_t>(plan.degree), problem.degrees.size());
}

TEST(PlanSampler, PlansAreWhole) {
  for (const int layers : {1, 2, 9}) {
    const auto problem = some_problem(3, layers);
    PlanSampler sampler(problem, 1);
    auto plan = sampler.random();
    for (int i = 0; i < 1000; ++i) {
      plan = i % 10 == 0 ? sampler.random() : sampler.neighbour(plan);
      expect_whole(problem, plan);
    }
  }
}

TEST(Bayes, KeepsItsPromises) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const auto problem = some_problem(seed, 6);
    const Objective objective{1, 1e-5};
    const auto result = solve_bayes(problem, objective, {.evaluations = 40, .seed = seed});
    EXPECT_LE(result.explored, 40);
    EXPECT_EQ(result.proof.bound, -PlanningProblem::kNever);
    if (!result.solution) {
      EXPECT_EQ(result.proof.status, Proof::Status::kUnknown);
      continue;
    }
    EXPECT_EQ(result.proof.status, Proof::Status::kFeasible);
    const auto figures = figures_of(problem, *result.solution);
    ASSERT_TRUE(figures);
    EXPECT_EQ(figures->seconds, result.seconds);
    EXPECT_EQ(figures->usd, result.usd);
    EXPECT_EQ(objective.value(figures->usd, figures->seconds), result.objective);
  }
}

TEST(Bayes, IsDeterministicForASeed) {
  const auto problem = some_problem(5, 6);
  const BayesOptions options{.evaluations = 40, .seed = 9};
  EXPECT_EQ(solve_bayes(problem, {}, options).solution, solve_bayes(problem, {}, options).solution);
}

// The model earns its keep: better than as many random plans, on the whole.
TEST(Bayes, BeatsRandomSearch) {
  int better = 0, worse = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const auto problem = some_problem(100 + seed, 12);
    const auto random = solve_bayes(problem, {}, {.evaluations = 80, .initial = 80, .seed = seed});
    const auto guided = solve_bayes(problem, {}, {.evaluations = 80, .seed = seed});
    if (!random.solution || !guided.solution) continue;
    better += guided.objective < random.objective;
    worse += guided.objective > random.objective;
  }
  EXPECT_GT(better, 2 * worse);
}

TEST(Bayes, StaysWithinLimits) {
  const auto problem = some_problem(6, 6);
  const auto fastest = solve_bayes(problem, Objective::fastest());
  ASSERT_TRUE(fastest.solution);
  Objective limited = Objective::cheapest();
  limited.max_seconds = 1.5 * fastest.seconds;
  const auto result = solve_bayes(problem, limited);
  ASSERT_TRUE(result.solution);
  EXPECT_LE(result.seconds, limited.max_seconds);
}

TEST(Bayes, RejectsWhatItCannotUse) {
  const auto problem = some_problem(1, 4);
  EXPECT_THROW(solve_bayes(problem, {}, {.initial = 0}), Error);
  EXPECT_THROW(solve_bayes({}, {}), Error);
}

TEST(Bayes, EndsWhenAllPlansAreKnown) {
  auto problem = some_problem(2, 1);
  EXPECT_LE(solve_bayes(problem, {}).explored,
            static_cast<std::int64_t>(problem.options.size() * problem.degrees.size()));
}

}  // namespace
}  // namespace funcpipe
