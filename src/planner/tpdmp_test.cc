#include "planner/tpdmp.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "planner/brute_force.h"
#include "planner/evaluate.h"
#include "planner/milp_model.h"
#include "planner/random_problem.h"

namespace funcpipe {
namespace {

constexpr double kNever = PlanningProblem::kNever;

double largest_load(const Evaluation& evaluation) {
  double largest = 0;
  for (const auto& stage : evaluation.stages) {
    largest = std::max(largest, stage.forward + stage.backward + stage.up + stage.down +
                                    stage.gradient_up + stage.gradient_down);
  }
  return largest;
}

// The integer programme of Tarnawski et al. on a chain: x[i][k] puts layer i into stage k of K, in
// order and without an empty stage; enter[i][k] >= x[i][k] - x[i - 1][k] pays for the cut before
// layer i, leave[i][k] for the one behind it.
class PlacementProgramme {
 public:
  PlacementProgramme(const PlanningProblem& problem, int option, int degree, int stages)
      : problem_(problem),
        j_(static_cast<std::size_t>(option)),
        degree_(problem.degrees[static_cast<std::size_t>(degree)]),
        layers_(problem.layer_count()),
        stages_(stages) {
    largest_ = model_.add_continuous(0, kNever, 1);
    for (int i = 0; i < layers_ * stages_; ++i) model_.add_binary(0);
    for (int i = 0; i < layers_; ++i) add_order(i);
    for (int k = 0; k < stages_; ++k) add_stage(k);
  }

  // Infinity: no partition fits.
  double solve() const {
    const auto result = funcpipe::solve(model_, {});
    EXPECT_NE(result.status, MilpResult::Status::kStopped);
    return result.values.empty() ? kNever : result.values[static_cast<std::size_t>(largest_)];
  }

 private:
  int x(int layer, int stage) const { return 1 + layer * stages_ + stage; }

  // One stage for each layer, the same as for the layer before or the next one.
  void add_order(int i) {
    std::vector<MilpModel::Term> one, step;
    for (int k = 0; k < stages_; ++k) {
      one.push_back({x(i, k), 1});
      step.push_back({x(i, k), 1.0 * k});
      if (i > 0) step.push_back({x(i - 1, k), -1.0 * k});
    }
    model_.add_row(1, one, 1);
    model_.add_row(0, step, i == 0 ? 0 : 1);
  }

  void add_stage(int k) {
    std::vector<MilpModel::Term> any, memory, load{{largest_, -1}};
    for (int i = 0; i < layers_; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto& layer = problem_.layers[at];
      any.push_back({x(i, k), 1});
      memory.push_back({x(i, k), degree_.state_factor * layer.parameter_bytes + layer.fixed_bytes +
                                     degree_.micro_batches * layer.activation_bytes});
      load.push_back({x(i, k), problem_.forward[j_][at] + problem_.backward[j_][at]});
      if (i > 0) {
        load.push_back({add_change(x(i, k), x(i - 1, k)), cut_load(at)});
        load.push_back({add_change(x(i - 1, k), x(i, k)), cut_load(at)});
      }
    }
    const auto& option = problem_.options[j_];
    model_.add_row(1, any, kNever);
    model_.add_row(-kNever, memory, option.memory_bytes - option.base_bytes);
    model_.add_row(-kNever, load, 0);
  }

  // A column that is at least a - b.
  int add_change(int a, int b) {
    const int column = model_.add_continuous(0, 1, 0);
    model_.add_row(0, {{column, 1}, {a, -1}, {b, 1}}, kNever);
    return column;
  }

  double cut_load(std::size_t cut) const { return problem_.up[j_][cut] + problem_.down[j_][cut]; }

  const PlanningProblem& problem_;
  const std::size_t j_;
  const PlanningProblem::Degree& degree_;
  const int layers_, stages_;
  MilpModel model_;
  int largest_ = 0;
};

TEST(Tpdmp, PartitionsAreThoseOfTheIntegerProgramme) {
  int partitions = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    const auto problem =
        random_problem(rng, {.max_layers = 6, .exact = seed % 2 == 0, .asymmetric_links = true});
    for (int option = 0; option < problem.option_count(); ++option) {
      const auto found = least_load_partitions(problem, option, 0, problem.layer_count());
      auto next = found.begin();
      for (int stages = 1; stages <= problem.layer_count(); ++stages) {
        const bool fits =
            next != found.end() && next->stages.size() == static_cast<std::size_t>(stages);
        const double least = fits ? largest_load(evaluate(problem, *next++)) : kNever;
        const double expected = PlacementProgramme(problem, option, 0, stages).solve();
        if (fits)
          EXPECT_NEAR(least, expected, 1e-6 * (1 + least)) << seed << " " << stages;
        else
          EXPECT_EQ(expected, kNever) << seed << " " << stages;
        partitions += fits;
      }
      EXPECT_EQ(next, found.end());
    }
  }
  EXPECT_GT(partitions, 50);
}

TEST(Tpdmp, PartitionsFitAndHaveTheLeastLoad) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    auto options = with_random_extras(rng, {.max_layers = 7});
    options.max_options = options.max_degrees = 1;
    const auto problem = random_problem(rng, options);
    std::vector<double> least(problem.layers.size() + 1, kNever);
    for (unsigned cuts = 0; cuts < 1u << (problem.layers.size() - 1); ++cuts) {
      Solution plan{{{0, 0, 0}}, 0};
      for (int i = 1; i <= problem.layer_count(); ++i) {
        plan.stages.back().last = i;
        if (i < problem.layer_count() && (cuts >> (i - 1) & 1)) plan.stages.push_back({i, i, 0});
      }
      const auto evaluation = evaluate(problem, plan);
      auto& known = least[plan.stages.size()];
      if (evaluation.fits) known = std::min(known, largest_load(evaluation));
    }
    for (const auto& plan : least_load_partitions(problem, 0, 0, problem.layer_count())) {
      const auto evaluation = evaluate(problem, plan);
      auto& known = least[plan.stages.size()];
      EXPECT_TRUE(evaluation.fits);
      EXPECT_NEAR(largest_load(evaluation), known, 1e-12 * known) << seed;
      known = kNever;
    }
    EXPECT_EQ(*std::min_element(least.begin(), least.end()), kNever)
        << "one was not found: " << seed;
  }
}

TEST(Tpdmp, HasOneOptionForAllStagesAndNoBound) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    const auto problem = random_problem(rng, with_random_extras(rng, {.max_layers = 8}));
    Objective objective;
    objective.max_functions = 4;
    const auto result = solve_tpdmp(problem, objective);
    EXPECT_EQ(result.proof.bound, -kNever);
    EXPECT_EQ(result.proof.status,
              result.solution ? Proof::Status::kFeasible : Proof::Status::kUnknown);
    if (!result.solution) continue;
    const auto& stages = result.solution->stages;
    for (const auto& stage : stages) EXPECT_EQ(stage.option, stages.front().option);
    EXPECT_TRUE(within_limits(objective, *figures_of(problem, *result.solution)));
  }
}

}  // namespace
}  // namespace funcpipe
