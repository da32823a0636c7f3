#include "planner/milp_solver.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "core/platform_spec.h"
#include "planner/bayes.h"
#include "planner/brute_force.h"
#include "planner/exact_solver.h"
#include "planner/layer_merging.h"
#include "planner/milp_model.h"
#include "planner/paper_profiles.h"
#include "planner/performance_model.h"
#include "planner/random_problem.h"
#include "planner/tpdmp.h"

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
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    const auto problem = random_problem(rng, with_random_extras(rng, {.max_layers = 5}));
    const auto plans = enumerate_plans(problem);
    const auto objective = random_objective(rng, plans);
    expect_proof(solve_milp(problem, objective), brute_force_best(plans, objective), objective,
                 seed);
  }
}

void expect_equal(const SolverResult& milp, const SolverResult& exact, const std::string& what) {
  EXPECT_EQ(milp.proof.status, exact.proof.status) << what;
  EXPECT_NEAR(milp.objective, exact.objective, 1e-9 * exact.objective) << what;
  EXPECT_EQ(milp.solution ? milp.objective : PlanningProblem::kNever, milp.proof.bound) << what;
}

// The two have nothing in common but evaluate(): each is the other's proof.
TEST(MilpSolver, EqualsTheExactSolverOnRandomProblems) {
  int solved = 0;
  for (std::uint64_t seed = 1; solved < 40; ++seed) {
    Rng rng(seed);
    const auto extras = with_random_extras(rng, {.max_layers = 12, .max_options = 8});
    const auto problem = random_problem(rng, extras);
    if (problem.layer_count() < 9 || problem.option_count() < 2) continue;
    const Objective objective{1, 1e-4 * static_cast<double>(rng.below(3))};
    const auto exact = solve_exact(problem, objective);
    solved += exact.solution.has_value();
    expect_equal(solve_milp(problem, objective), exact, fmt::format("seed {}", seed));
  }
}

PlanningProblem merged_model(std::string_view model, int layers, PerformanceModel performance) {
  PlanningInput input;
  input.batch_size = 16;
  input.platform = aws_lambda_spec();
  return make_problem(performance, merge_layers(paper_profile(model), layers).profile, input);
}

TEST(MilpSolver, EqualsTheExactSolverOnThePapersModels) {
  for (const auto& model : paper_profile_names()) {
    for (const auto performance : {PerformanceModel::kPaper, PerformanceModel::kFull}) {
      const auto problem = merged_model(model, 8, performance);
      const auto cheapest = solve_exact(problem, Objective::cheapest());
      const auto fastest = solve_exact(problem, Objective::fastest());
      ASSERT_TRUE(cheapest.solution && fastest.solution);
      Objective deadline = Objective::cheapest(), budget = Objective::fastest();
      deadline.max_seconds = (cheapest.seconds + fastest.seconds) / 2;
      budget.max_usd = (cheapest.usd + fastest.usd) / 2;
      for (const auto& objective :
           {Objective::cheapest(), Objective::fastest(), Objective{1, 1e-3}, deadline, budget}) {
        expect_equal(solve_milp(problem, objective), solve_exact(problem, objective),
                     fmt::format("{} {}", model, to_string(performance)));
      }
    }
  }
}

TEST(MilpSolver, SaysWhatItKnowsWhenTimeIsUp) {
  const auto problem = merged_model("amoebanet-d36", 18, PerformanceModel::kPaper);
  const Objective objective{1, 1e-3};
  const auto exact = solve_exact(problem, objective);
  for (const double seconds : {0.0, 0.001, 0.3}) {
    const auto result = solve_milp(problem, objective, {.time_limit = from_seconds(seconds)});
    if (result.proof.status == Proof::Status::kOptimal) continue;  // a fast machine
    ASSERT_EQ(result.proof.status, Proof::Status::kFeasible);
    EXPECT_GE(result.objective, exact.objective * (1 - 1e-9));
    EXPECT_LE(result.proof.bound, exact.objective * (1 + 1e-9));
    EXPECT_GT(result.proof.bound, 0.3 * exact.objective);
  }
}

TEST(MilpSolver, IsSilent) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  solve_milp(merged_model("resnet101", 8, PerformanceModel::kPaper), {1, 1e-3});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(MilpSolver, RejectsWhatIsNoProblemOrTooLarge) {
  EXPECT_THROW(solve_milp({}, {}), Error);
  EXPECT_THROW(solve_milp(merged_model("resnet101", 304, PerformanceModel::kPaper), {1, 1e-3}),
               Error);
}

TEST(MilpModel, SaysWhatThereIs) {
  // Two of three items of weights 3, 4, 5 into 8: the most valuable are the first and the third.
  MilpModel model;
  for (const double value : {2, 1, 2}) model.add_binary(-value);
  model.add_row(0, {{0, 3}, {1, 4}, {2, 5}}, 8);
  const auto result = solve(model, {});
  EXPECT_EQ(result.status, MilpResult::Status::kOptimal);
  EXPECT_EQ(result.values, (std::vector<double>{1, 0, 1}));
  EXPECT_DOUBLE_EQ(result.bound, -4);
  EXPECT_EQ(solve(model, {.cutoff = -4.5}).status, MilpResult::Status::kInfeasible);
  model.add_row(3, {{0, 1}, {1, 1}, {2, 1}}, 3);
  EXPECT_EQ(solve(model, {}).status, MilpResult::Status::kInfeasible);
}

// Neither rival finds a better plan than the exact solver, whatever the objective and its limits;
// and a plan of theirs is one that it says exists.
TEST(Rivals, AreNeverBetterThanTheExactSolver) {
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    const auto problem = random_problem(rng, with_random_extras(rng, {.max_layers = 10}));
    const auto some = solve_tpdmp(problem, Objective::fastest());
    std::vector<Figures> known;
    if (some.solution) known.push_back(*figures_of(problem, *some.solution));
    const auto objective = random_objective(rng, known);
    const auto exact = solve_exact(problem, objective);
    for (const auto& rival : {solve_tpdmp(problem, objective),
                              solve_bayes(problem, objective, {.evaluations = 30, .seed = seed})}) {
      if (!rival.solution) continue;
      ++plans;
      ASSERT_EQ(exact.proof.status, Proof::Status::kOptimal) << seed;
      EXPECT_GE(rival.objective, exact.objective * (1 - kTolerance)) << seed;
    }
  }
  EXPECT_GT(plans, 300);
}

}  // namespace
}  // namespace funcpipe
