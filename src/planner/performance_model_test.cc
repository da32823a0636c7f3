#include "planner/performance_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "planner/evaluate.h"

namespace funcpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Three layers, two options, figures that are easy to reckon with.
ModelProfile small_profile() {
  ModelProfile profile;
  profile.model = "small";
  profile.platform = "aws-lambda";
  profile.micro_batch_size = 4;
  profile.options = {{1024, 10e6, 10e6, 0.01, 2.0, 100'000'000},
                     {2048, 20e6, 20e6, 0.01, 2.0, 100'000'000}};
  for (int i = 0; i < 3; ++i) {
    ProfiledLayer layer;
    layer.name = std::to_string(i);
    layer.parameter_bytes = 1'000'000;
    layer.buffer_bytes = 1000;
    layer.activation_bytes = 5'000'000;
    layer.workspace_bytes = 7'000'000;
    layer.output_bytes = 2'000'000;
    layer.timings = {{true, 0.4, 0.8, 0.05, 0, 0}, {true, 0.2, 0.4, 0.025, 0, 0}};
    profile.layers.push_back(layer);
  }
  return profile;
}

PlanningInput small_input() {
  PlanningInput input;
  input.batch_size = 32;  // 8 micro-batches
  input.platform = aws_lambda_spec();
  return input;
}

Solution two_stages(int degree) { return {{{0, 2, 1}, {2, 3, 0}}, degree}; }

// The formulas of the paper, written out: stage 0 = two layers at 2,048 MB, stage 1 = one at 1,024.
TEST(PerformanceModel, PaperIsTheFormulaOfThePaper) {
  const auto problem = make_problem(PerformanceModel::kPaper, small_profile(), small_input());
  ASSERT_EQ(problem.degrees.size(), 4U);  // 1, 2, 4, 8
  const auto result = evaluate(problem, two_stages(1));
  const double up = 2e6 / 20e6 + 0.01, down = 2e6 / 10e6 + 0.01;
  const double forward = 0.4 + up + down + 0.4 + 3 * 0.4;
  EXPECT_DOUBLE_EQ(result.forward_seconds, forward);
  // The gradient crosses the cut the other way: up from the slow function, down to the fast one.
  const double backward_1 = 0.8 + 3 * 0.8;
  const double backward_0 = 0.8 + down + up + 0.8 + 3 * 0.8;
  EXPECT_DOUBLE_EQ(result.stages[1].backward_total, backward_1);
  EXPECT_DOUBLE_EQ(result.stages[0].backward_total, backward_0);
  const double sync_0 = 2 * 2e6 / 20e6 + 4 * 0.01, sync_1 = 2 * 1e6 / 10e6 + 4 * 0.01;
  EXPECT_DOUBLE_EQ(result.stages[0].sync, sync_0);
  EXPECT_DOUBLE_EQ(result.seconds, forward + std::max(backward_0 + sync_0, backward_1 + sync_1));
  EXPECT_NEAR(result.usd, 1.66667e-5 * 2 * 3 * result.seconds, 1e-15);
  EXPECT_DOUBLE_EQ(result.stages[0].memory_bytes, 100e6 + 4 * 5e6 * 2 + 4 * 2e6);
  EXPECT_DOUBLE_EQ(evaluate(problem, two_stages(0)).stages[0].memory_bytes,
                   100e6 + 8 * 5e6 * 2 + 2 * 2e6);
}

TEST(PerformanceModel, FullCountsWhatIsOnTheBill) {
  auto input = small_input();
  input.optimizer.kind = OptimizerSpec::Kind::kAdam;
  input.all_reduce = AllReduceAlgorithm::kThreePhase;
  input.steps = 100;
  const auto problem = make_problem(PerformanceModel::kFull, small_profile(), input);
  const auto result = evaluate(problem, two_stages(1));
  const auto& platform = input.platform;
  EXPECT_DOUBLE_EQ(result.stages[0].update, 0.05);
  EXPECT_DOUBLE_EQ(result.stages[0].sync, (3 - 2.0 / 2) * 2'002'000 / 20e6 + (3 * 2 - 2) * 0.01);
  const double gb = 3 * 2;  // 3 GB, twice
  const double cuts = 8 * 2 * (platform.usd_per_put + platform.usd_per_get);
  const double all_reduce = 2 * 2 * (2 * platform.usd_per_put + 2 * platform.usd_per_get);
  const double start = (4 * platform.usd_per_invocation + gb * 2.0 * 1.66667e-5) / 100;
  EXPECT_NEAR(result.usd, gb * result.seconds * 1.66667e-5 + cuts + all_reduce + start, 1e-12);
  // weights, gradients, two moments, a second copy for the all-reduce; buffers; workspace
  EXPECT_DOUBLE_EQ(result.stages[0].memory_bytes, 100e6 + 5 * 2e6 + 2000 + 4 * 5e6 * 2 + 7e6);
}

TEST(PerformanceModel, AStageKeepsWhatItReceives) {
  auto profile = small_profile();
  profile.layers[0].output_bytes = 3'000'000;
  profile.layers[1].output_bytes = 30'000'000;
  const auto problem = make_problem(PerformanceModel::kFull, profile, small_input());
  EXPECT_DOUBLE_EQ(problem.layers[2].input_bytes, 30e6);
  // A stage that begins with layer 1 could as well begin with layer 2, and must have the memory.
  EXPECT_DOUBLE_EQ(problem.layers[1].input_bytes, 25e6);
  EXPECT_DOUBLE_EQ(problem.layers[0].input_bytes, 20e6);
  EXPECT_DOUBLE_EQ(evaluate(problem, two_stages(1)).stages[1].memory_bytes,
                   100e6 + 3 * 1e6 + 1000 + 4 * (5e6 + 30e6) + 7e6);
}

TEST(PerformanceModel, PricesOfEveryFormBecomeWholeUnits) {
  auto profile = small_profile();
  profile.options[1].memory_mb = 3072;
  auto input = small_input();
  input.platform = aliyun_fc_spec();
  const auto problem = make_problem(PerformanceModel::kFull, profile, input);
  for (const auto& option : problem.options) {
    EXPECT_NEAR(static_cast<double>(option.price_units) * problem.usd_per_unit_second,
                usd_per_second(input.platform, option.memory_mb), 1e-15);
  }
  EXPECT_EQ(problem.options[0].price_units, 1);
  EXPECT_EQ(problem.options[1].price_units, 3);
}

TEST(PerformanceModel, TakesOnlyTheOptionsAskedFor) {
  auto input = small_input();
  input.memory_mb = {2048};
  const auto problem = make_problem(PerformanceModel::kPaper, small_profile(), input);
  ASSERT_EQ(problem.option_count(), 1);
  EXPECT_EQ(problem.forward[0][0], 0.2);
  input.memory_mb = {4096};
  try {
    make_problem(PerformanceModel::kPaper, small_profile(), input);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("1024, 2048"));
  }
}

TEST(PerformanceModel, ADegreeThatDoesNotDivideIsAnError) {
  auto input = small_input();
  input.degrees = {3};
  try {
    make_problem(PerformanceModel::kPaper, small_profile(), input);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("1, 2, 4, 8"));
  }
  EXPECT_THAT(dividing_degrees(64, 32), ElementsAre(1, 2, 4, 8, 16, 32));
}

TEST(PerformanceModel, PlansAndSolutionsAreTheSame) {
  const auto problem = make_problem(PerformanceModel::kPaper, small_profile(), small_input());
  const auto plan = to_plan(problem, two_stages(2), AllReduceAlgorithm::kPipelined);
  EXPECT_EQ(plan.replicas, 4);
  EXPECT_EQ(plan.stages[0], (StagePlan{0, 2, 2048}));
  EXPECT_EQ(to_solution(problem, plan), two_stages(2));
}

}  // namespace
}  // namespace funcpipe
