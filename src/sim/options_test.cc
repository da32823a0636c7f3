// Jitter, limits of the store, and what is refused.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "sim/sim_fixture.h"

namespace funcpipe {
namespace {

std::vector<TestStage> random_stages(Rng& rng, std::size_t count) {
  std::vector<TestStage> stages(count);
  for (auto& stage : stages) {
    stage = {.forward = 0.1 * rng.uniform(),
             .backward = 0.1 * rng.uniform(),
             .output_bytes = rng.below(100'000),
             .parameter_bytes = rng.below(400'000),
             .uplink = 1e6 + 1e6 * rng.uniform(),
             .downlink = 1e6 + 1e6 * rng.uniform(),
             .latency = 0.01 * rng.uniform()};
  }
  return stages;
}

void expect_same(const SimulationResult& a, const SimulationResult& b) {
  EXPECT_EQ(a.step_ends, b.step_ends);
  EXPECT_EQ(a.iteration_seconds, b.iteration_seconds);
  EXPECT_EQ(a.requests.misses, b.requests.misses);
  EXPECT_EQ(a.events, b.events);
  ASSERT_EQ(a.critical_path.segments.size(), b.critical_path.segments.size());
  for (std::size_t i = 0; i < a.critical_path.segments.size(); ++i) {
    EXPECT_EQ(a.critical_path.segments[i].task, b.critical_path.segments[i].task);
    EXPECT_EQ(a.critical_path.segments[i].seconds, b.critical_path.segments[i].seconds);
  }
}

TEST(Options, TheSameArgumentsGiveTheSameBits) {
  Rng rng(1);
  const TestCase test(random_stages(rng, 4), 3);
  for (const auto waiting : {Waiting::kPolling, Waiting::kIdeal}) {
    SimulationOptions options;
    options.waiting = waiting;
    options.jitter = {0.2, 0.5, 0.3};
    options.store = {3e6, 500};
    expect_same(test.run(9, options, true), test.run(9, options, true));
  }
}

TEST(Jitter, NoneIsNoneWhateverTheSeed) {
  Rng rng(2);
  const TestCase test(random_stages(rng, 3), 2);
  SimulationOptions options, seeded;
  seeded.seed = 99;
  expect_same(test.run(6, options), test.run(6, seeded));
  options.jitter.compute = seeded.jitter.compute = 0.1;
  EXPECT_NE(test.run(6, options).step_ends, test.run(6, seeded).step_ends);
}

TEST(Jitter, HasMeanOneAndTheGivenVariation) {
  const TestCase test({TestStage{.forward = 1}});
  SimulationOptions options;
  options.steps = 20'001;
  options.jitter.compute = 0.3;
  const auto result = test.run(1, options);
  double sum = 0, squares = 0;
  for (std::size_t i = 1; i < result.step_ends.size(); ++i) {
    const double time = result.step_ends[i] - result.step_ends[i - 1];
    sum += time;
    squares += time * time;
  }
  const double mean = sum / 20'000;
  EXPECT_NEAR(mean, 1, 0.01);
  EXPECT_NEAR(std::sqrt(squares / 20'000 - mean * mean), 0.3, 0.02);
}

// The factor of a task does not depend on what else happens.
TEST(Jitter, BelongsToTheTask) {
  Rng rng(3);
  const TestCase test(random_stages(rng, 3), 2);
  SimulationOptions options;
  options.jitter = {0.3, 0.2, 0.2};
  const auto polling = test.run(6, options);
  options.waiting = Waiting::kIdeal;
  const auto ideal = test.run(6, options);
  EXPECT_NEAR(polling.kind(TaskKind::kForward).busy, ideal.kind(TaskKind::kForward).busy, 1e-9);
  EXPECT_NEAR(polling.kind(TaskKind::kSendSplit).busy, ideal.kind(TaskKind::kSendSplit).busy, 1e-9);
}

// Every request one after the other, in the order in which they came: two replicas' splits at 0 s
// and 1 s; parts 2 s and 3 s; merged splits 4 s and 5 s, and their downloads 6 s and 7 s.
TEST(StoreLimits, RequestsTakeTurns) {
  auto options = SimulationOptions::closed_form();
  options.steps = 1;
  options.store.requests_per_second = 1;
  const auto result = TestCase({{}}, 2).run(2, options);
  EXPECT_EQ(result.iteration_seconds, 7);
  EXPECT_EQ(result.requests.puts + result.requests.gets, 8);
}

TEST(StoreLimits, BandwidthIsShared) {
  const TestStage stage{.parameter_bytes = 200, .uplink = 100, .downlink = 100};
  auto options = SimulationOptions::closed_form();
  EXPECT_EQ(TestCase({stage}, 2).run(2, options).iteration_seconds, 4);
  options.store.bytes_per_second = 200;
  EXPECT_NEAR(TestCase({stage}, 2).run(2, options).iteration_seconds, 4, 1e-9);
  options.store.bytes_per_second = 100;
  EXPECT_NEAR(TestCase({stage}, 2).run(2, options).iteration_seconds, 8, 1e-9);
}

// Limits that do not bind change nothing, though requests and transfers are simulated one by one.
TEST(StoreLimits, WideLimitsDoNotBind) {
  Rng rng(4);
  for (int round = 0; round < 100; ++round) {
    const TestCase test(random_stages(rng, 1 + rng.below(4)), 1 + static_cast<int>(rng.below(3)));
    SimulationOptions options;
    options.waiting = rng.below(2) == 0 ? Waiting::kPolling : Waiting::kIdeal;
    const auto free = test.run(6, options, true);
    options.store = {1e12, 1e12};
    const auto limited = test.run(6, options, true);
    for (std::size_t i = 0; i < free.step_ends.size(); ++i)
      EXPECT_NEAR(limited.step_ends[i], free.step_ends[i], 1e-8) << round;
    EXPECT_EQ(limited.requests.misses, free.requests.misses);
    EXPECT_EQ(limited.requests.puts, free.requests.puts);
    EXPECT_NEAR(limited.kind(TaskKind::kReceiveSplit).waiting,
                free.kind(TaskKind::kReceiveSplit).waiting, 1e-7);
  }
}

// What `act` is refused with.
template <typename Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(Refusals, PlansThatAreNotForTheProfile) {
  TestCase test({{.forward = 1}, {.forward = 1}, {.forward = 1}});
  test.profile.layers[1].name = "fc6";
  test.profile.layers[1].timings[1].fits = false;
  const auto simulated = [&](const std::vector<StagePlan>& stages, int replicas = 1) {
    test.plan.stages = stages;
    test.plan.replicas = replicas;
    return refusal([&] { test.run(1, {}); });
  };
  EXPECT_EQ(simulated({{0, 3, 2048}}),
            "stage 0 of the plan has 2048 MB, an option that was not profiled; the profile of "
            "'test' has 1024, 1025, 1026");
  EXPECT_EQ(simulated({{0, 1, 1024}, {1, 3, 1025}}),
            "layer 1 ('fc6') does not run in the 1025 MB of stage 1 of the plan; it does in 1024, "
            "1026 MB");
  EXPECT_EQ(simulated({{0, 2, 1024}}), "the plan has 2 layers, the profile of 'test' has 3");
  EXPECT_EQ(simulated({}), "the plan has 0 layers, the profile of 'test' has 3");
  EXPECT_EQ(simulated({{0, 1, 1024}, {2, 3, 1024}}),
            "stage 1 of the plan has the layers 2 to 3; it must begin with layer 1 and have at "
            "least one");
  EXPECT_EQ(simulated({{0, 3, 1024}}, 0), "a plan of 0 replicas cannot be simulated");
  EXPECT_EQ(simulated({{0, 3, 1024}}), "accepted");
}

TEST(Refusals, ShapesAndOptionsOutOfRange) {
  const TestCase test({TestStage{.forward = 1}});
  const auto with_shape = [&](const TrainingShape& shape) {
    return refusal([&] { simulate(test.profile, test.plan, shape); });
  };
  EXPECT_EQ(with_shape({0}), "simulation: a mini-batch of 0 samples of 0; at least one is needed");
  EXPECT_EQ(with_shape({8, 4}),
            "the profile of 'test' was taken with micro-batches of 1 samples, the job has 4: "
            "profile it again, or take micro-batches of 1");
  const auto with = [&](auto change) {
    SimulationOptions options;
    change(options);
    return refusal([&] { test.run(1, options); });
  };
  using O = SimulationOptions;
  EXPECT_EQ(with([](O& o) { o.steps = 0; }), "simulation: 0 steps; at least one is needed");
  EXPECT_EQ(with([](O& o) { o.jitter.latency = -1; }),
            "simulation: a latency jitter of -1; it must be between 0 and 10");
  EXPECT_EQ(with([](O& o) { o.latency_seconds = std::nan(""); }),
            "simulation: a latency in seconds of nan; it must be between 0 and 1000000");
  EXPECT_EQ(with([](O& o) { o.backoff.first = Duration(0); }),
            "simulation: a first delay in seconds of 0; it must be between 1e-06 and 1000");
  EXPECT_EQ(with([](O& o) { o.store.bytes_per_second = -5; }),
            "simulation: a store bandwidth of -5; it must be between 0 and 1e+18");
  EXPECT_EQ(
      with([](O& o) { o.overhead(TaskKind::kForward).seconds = -1; }),
      "simulation: an overhead of 'forward' in seconds of -1; it must be between 0 and 1000000");
}

TEST(Refusals, TimesBeyondMeasure) {
  EXPECT_EQ(refusal([] { TestCase({TestStage{.forward = 1e7}}).run(1, {}); }),
            "a task of 10000000 s cannot be simulated; times lie between 0 and 1000000 s");
  EXPECT_EQ(refusal([] { TestCase({TestStage{.forward = 9e5}}).run(10, {}); }),
            "the simulated run takes more than 5000000 s");
}

}  // namespace
}  // namespace funcpipe
