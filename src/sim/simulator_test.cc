#include "sim/simulator.h"

#include <ctime>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "sim/sim_fixture.h"

namespace funcpipe {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

// Two stages that differ in everything, two micro-batches; worked out by hand:
//
//   0 compute   F0 0-1, F1 1-2                              B1 16-18       B0 18.5-20.5, U 20.75
//   0 uplink    A0 1-2.5, A1 2.5-4
//   0 downlink                             G1 13.5-16, G0 16-18.5
//   1 downlink  A0 2.5-5, A1 5-7.5
//   1 compute   F0 5-8, F1 8-11, B1 11-12, B0 12-13, U 13.5
//   1 uplink                     G1 12-13.5, G0 13.5-15
std::vector<TestStage> worked_example() {
  return {
      {.forward = 1,
       .backward = 2,
       .update = 0.25,
       .output_bytes = 10,
       .uplink = 10,
       .downlink = 5,
       .latency = 0.5},
      {.forward = 3, .backward = 1, .update = 0.5, .uplink = 10, .downlink = 5, .latency = 0.5}};
}

TEST(Simulator, WorkedExample) {
  const auto result = TestCase(worked_example()).run(2, SimulationOptions::closed_form());
  EXPECT_THAT(result.step_ends, ElementsAre(20.75, 41.5, 62.25, 83));
  EXPECT_EQ(result.iteration_seconds, 20.75);
  ASSERT_EQ(result.workers.size(), 2U);
  const auto& [first, second] = std::tie(result.workers[0], result.workers[1]);
  const auto lane = [](const SimulatedWorker& worker, Lane which) {
    return worker.lanes[static_cast<std::size_t>(which)];
  };
  EXPECT_EQ(lane(first, Lane::kCompute).busy, 6.25);
  EXPECT_EQ(lane(first, Lane::kUplink).busy, 3);
  EXPECT_EQ(lane(first, Lane::kDownlink).busy, 5);
  EXPECT_EQ(lane(first, Lane::kDownlink).waiting, 13.5);
  EXPECT_EQ(lane(second, Lane::kCompute).busy, 8.5);
  EXPECT_EQ(lane(second, Lane::kUplink).busy, 3);
  EXPECT_EQ(lane(second, Lane::kDownlink).busy, 5);
  EXPECT_EQ(lane(second, Lane::kDownlink).waiting, 8.25);  // from 15 of the step before
  EXPECT_EQ(first.memory_mb, 1024);
  EXPECT_EQ(first.step_seconds, 20.75);
  EXPECT_EQ(first.utilisation(Lane::kCompute), 6.25 / 20.75);
  EXPECT_DOUBLE_EQ(result.bubble, 1 - (6.25 + 8.5) / 2 / 20.75);
  EXPECT_EQ(result.kind(TaskKind::kForward).busy, 8);
  EXPECT_EQ(result.kind(TaskKind::kBackward).busy, 6);
  EXPECT_EQ(result.kind(TaskKind::kUpdate).busy, 0.75);
  EXPECT_EQ(result.kind(TaskKind::kReceiveGradient).busy, 5);
}

TEST(Simulator, CriticalPathOfTheWorkedExample) {
  const auto result = TestCase(worked_example()).run(2, SimulationOptions::closed_form());
  std::vector<std::string> path;
  for (const auto& segment : result.critical_path.segments) {
    path.push_back(
        fmt::format("{} {} {}", segment.worker.text(), describe(segment.task), segment.seconds));
  }
  EXPECT_THAT(
      path, ElementsAre("0.0 forward 0 1", "0.0 send activation 0 1.5",
                        "1.0 receive activation 0 2.5", "1.0 forward 0 3", "1.0 forward 1 3",
                        "1.0 backward 1 1", "1.0 send gradient 1 1.5", "0.0 receive gradient 1 2.5",
                        "0.0 receive gradient 0 2.5", "0.0 backward 0 2", "0.0 update 0.25"));
  EXPECT_EQ(result.critical_path.seconds(TaskKind::kForward), 7);
  EXPECT_EQ(result.critical_path.seconds(TaskKind::kReceiveGradient), 5);
  EXPECT_EQ(result.critical_path.seconds(TaskKind::kUpdate), 0.25);
}

// stage 0: F 0-8 ms, sends until 10 ms. Stage 1 asks at 0, 1.2, 2.5, 3.95, 5.625, 7.6375 and
// 10.15625 ms; the last answer, after a latency of 1 ms, finds it. Stage 0 has asked for the
// gradient since 0, the last times at 13.434375 and 17.8515625 ms; it is there at 16.15625 ms.
TEST(Simulator, PollsAsTheRuntime) {
  const TestStage stage{
      .forward = 0.008, .backward = 0.002, .output_bytes = 1'000'000, .latency = 0.001};
  auto last = stage;
  last.forward = last.backward = 0.001;
  SimulationOptions options;
  options.steps = 1;
  options.step_records = false;
  const auto result = TestCase({stage, last}).run(1, options);
  EXPECT_NEAR(result.iteration_seconds, 0.0198515625 + 0.002, 1e-8);
  EXPECT_EQ(result.requests.misses, 6 + 8);
  EXPECT_EQ(result.requests.gets, 6 + 8 + 2);
  EXPECT_EQ(result.requests.puts, 2);
  EXPECT_NEAR(result.kind(TaskKind::kReceiveActivation).waiting, 0.01015625, 1e-8);
  EXPECT_NEAR(result.kind(TaskKind::kReceiveActivation).busy, 0.002, 1e-12);
}

TEST(Simulator, LongWaitsLookForAStop) {
  TestStage first{.forward = 12, .backward = 1, .output_bytes = 1, .latency = 0.01}, last = first;
  last.forward = 1;
  SimulationOptions options;
  options.steps = 1;
  const auto result = TestCase({first, last}).run(1, options);
  // 12 s for the activation, and 14 s for the gradient.
  EXPECT_EQ(result.requests.heads, 4);
  // Never later than a delay and a latency for each of the two messages.
  const double ideal =
      TestCase({first, last}).run(1, SimulationOptions::closed_form()).step_ends[0];
  EXPECT_GT(result.iteration_seconds, ideal);
  EXPECT_LT(result.iteration_seconds, ideal + 2 * 0.03);
}

TEST(Simulator, ColdStartsDelayTheFirstStepOnly) {
  auto stages = worked_example();
  stages[0].cold_start = 2;
  stages[1].cold_start = 4;
  stages[1].parameter_bytes = 20;  // 4 s
  auto options = SimulationOptions::closed_form();
  options.cold_starts = true;
  const auto result = TestCase(stages).run(2, options);
  EXPECT_EQ(result.workers[0].start_seconds, 2 + 3 * 0.5);
  EXPECT_EQ(result.workers[1].start_seconds, 4 + 3 * 0.5 + 4);
  // The first activation is there at 3.5 + 2.5; stage 1 begins to receive it at 9.5.
  EXPECT_EQ(result.step_ends[0], 20.75 + 9.5 - 2.5);
  EXPECT_EQ(result.iteration_seconds, 20.75);
  options.steps = 1;
  const auto path = TestCase(stages).run(2, options).critical_path;
  EXPECT_EQ(path.start_seconds, 9.5);
  EXPECT_EQ(path.segments.front().task.kind, TaskKind::kReceiveActivation);
}

TEST(Simulator, OverheadsCostTimeWhereTheyArise) {
  auto options = SimulationOptions::closed_form();
  options.overhead(TaskKind::kForward).seconds = 0.5;
  options.overhead(TaskKind::kForward).seconds_per_byte = 0.01;  // of 10 bytes over the cut
  options.overhead(TaskKind::kSendActivation).seconds_per_byte = 0.02;
  options.overhead(TaskKind::kReceiveGradient).seconds = 0.125;
  options.begin_step_seconds = 0.25;
  const auto result = TestCase(worked_example()).run(1, options);
  // forward 1 + 3, activation 1.5 + 2.5, backward 1 + 2, gradient 1.5 + 2.5, update
  EXPECT_DOUBLE_EQ(result.iteration_seconds, 15.25 + 0.25 + 2 * 0.6 + 0.2 + 0.125);
}

TEST(Simulator, LatencyCanBeReplaced) {
  auto options = SimulationOptions::closed_form();
  options.latency_seconds = 0;
  EXPECT_EQ(TestCase(worked_example()).run(1, options).iteration_seconds, 15.25 - 4 * 0.5);
}

// 5 samples in mini-batches of 4, micro-batches of 2: every second step has one micro-batch of one.
TEST(Simulator, ShortMiniBatches) {
  TestCase test({TestStage{.forward = 1, .backward = 2}});
  test.profile.micro_batch_size = 2;
  const auto result =
      simulate(test.profile, test.plan, {4, 2, 5}, SimulationOptions::closed_form());
  EXPECT_THAT(result.step_ends, ElementsAre(6, 7.5, 13.5, 15));
}

// 5 micro-batches on 2 replicas: 2 and 3.
TEST(Simulator, TheBusiestReplicaDecides) {
  const TestCase test({{.forward = 1, .backward = 2}}, 2);
  const auto result = test.run(5, SimulationOptions::closed_form());
  EXPECT_EQ(result.iteration_seconds, 9);
  EXPECT_EQ(result.workers[0].lanes[0].busy, 6);
  EXPECT_EQ(result.workers[1].lanes[0].busy, 9);
}

std::vector<TestStage> random_stages(Rng& rng) {
  std::vector<TestStage> stages(1 + rng.below(4));
  for (auto& stage : stages) {
    stage = {.forward = rng.uniform(),
             .backward = rng.uniform(),
             .update = 0.1 * rng.uniform(),
             .output_bytes = rng.below(1'000'000),
             .parameter_bytes = rng.below(4'000'000),
             .uplink = 1e6 + 1e6 * rng.uniform(),
             .downlink = 1e6 + 1e6 * rng.uniform(),
             .latency = 0.1 * rng.uniform()};
  }
  return stages;
}

TEST(Simulator, NothingFasterMakesAStepSlower) {
  Rng rng(11);
  for (int round = 0; round < 300; ++round) {
    auto stages = random_stages(rng);
    const int replicas = 1 + static_cast<int>(rng.below(3));
    const auto batch = static_cast<std::int64_t>(1 + rng.below(8));
    const auto algorithm =
        rng.below(2) == 0 ? AllReduceAlgorithm::kPipelined : AllReduceAlgorithm::kThreePhase;
    const auto options = SimulationOptions::closed_form();
    const auto before = TestCase(stages, replicas, algorithm).run(batch, options, true).step_ends;
    auto& stage = stages[rng.below(stages.size())];
    stage.uplink *= 1 + rng.uniform();
    stage.downlink *= 1 + rng.uniform();
    stage.latency *= rng.uniform();
    stage.forward *= rng.uniform();
    stage.backward *= rng.uniform();
    const auto after = TestCase(stages, replicas, algorithm).run(batch, options, true).step_ends;
    for (std::size_t i = 0; i < after.size(); ++i) EXPECT_LE(after[i], before[i]) << round;
  }
}

TEST(Simulator, TheCriticalPathFillsTheStep) {
  Rng rng(12);
  for (int round = 0; round < 200; ++round) {
    const TestCase test(random_stages(rng), 1 + static_cast<int>(rng.below(3)));
    SimulationOptions options;
    options.steps = 1 + static_cast<int>(rng.below(3));
    options.cold_starts = rng.below(2) == 0;
    options.jitter.compute = 0.5;
    const auto result = test.run(6, options, true);
    const auto& path = result.critical_path;
    double at = path.step > 0 ? result.step_ends[static_cast<std::size_t>(path.step - 1)] : 0;
    at += path.start_seconds;
    for (const auto& segment : path.segments) {
      EXPECT_NEAR(segment.begin_seconds, at, 1e-9);
      at += segment.seconds;
    }
    EXPECT_NEAR(at, result.step_ends[static_cast<std::size_t>(path.step)], 1e-9);
    const double sum =
        std::accumulate(path.seconds_by_kind.begin(), path.seconds_by_kind.end(), 0.0);
    EXPECT_NEAR(sum, at - path.segments.front().begin_seconds, 1e-9);
    if (options.steps > 1) {
      EXPECT_EQ(path.start_seconds, 0);
    }
    if (options.steps == 2) {
      EXPECT_NEAR(sum, result.iteration_seconds, 1e-9);
    }
  }
}

TEST(Simulator, AThousandFunctions) {
  std::vector<TestStage> stages(250, {.forward = 0.3,
                                      .backward = 0.6,
                                      .output_bytes = 1'000'000,
                                      .parameter_bytes = 4'000'000,
                                      .uplink = 70e6,
                                      .downlink = 70e6,
                                      .latency = 0.04});
  const TestCase test(stages, 4);
  SimulationOptions options;
  options.steps = 2;
  const auto begin = std::clock();
  const auto result = test.run(4 * 64, options);
  EXPECT_LT(std::clock() - begin, 10 * CLOCKS_PER_SEC);
  const double ideal = test.run(4 * 64, SimulationOptions::closed_form()).iteration_seconds;
  EXPECT_EQ(result.workers.size(), 1000U);
  EXPECT_NEAR(result.iteration_seconds, ideal, 0.05 * ideal);
}

}  // namespace
}  // namespace funcpipe
