// What a step asks of the store, what it costs, and the timeline it leaves.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/sim_fixture.h"

namespace funcpipe {
namespace {

SimulationOptions without_misses() {
  SimulationOptions options;
  options.waiting = Waiting::kIdeal;
  options.step_records = false;
  return options;
}

// The figures of the schedule: s = 3 stages, d = 2 replicas, m = 8 micro-batches.
TEST(Requests, FollowFromTheSchedule) {
  const TestStage stage{.forward = 1, .backward = 1, .output_bytes = 1000, .parameter_bytes = 4000};
  const auto requests = TestCase({stage, stage, stage}, 2).run(8, without_misses(), true).requests;
  const int crossings = 2 * 2 * 8;  // two cuts, both ways
  const int splits = 3 * 2, merged = 3 * 2;
  const int norms = 3;
  EXPECT_EQ(requests.puts, crossings + splits + merged + norms);
  EXPECT_EQ(requests.gets, crossings + splits + merged + 2 * 3 * 2);
  EXPECT_EQ(requests.removes, requests.puts);
  EXPECT_EQ(requests.misses, 0);
  EXPECT_EQ(requests.heads, 0);
  // 500 floats a split: 2,000 bytes are padded to 2,048, and have a header of 64.
  const int all_reduce = (splits + merged) * (2048 + 64);
  EXPECT_EQ(requests.bytes_up, crossings * 1000 + all_reduce + norms * 128);
  EXPECT_EQ(requests.bytes_down, crossings * 1000 + all_reduce + 12 * 128);
}

// Literal figures of real workers on a MemoryStore behind a CountingStore (bench/sim_accuracy.cc,
// the plans "2 x 3, uneven shares, clipping" and "1 x 4"), the same for every step.
TEST(Requests, EqualThoseOfRealWorkers) {
  const std::uint64_t output = 128 + 400'000;  // the bench's layers give 100,000 floats a sample
  const TestStage one{
      .forward = 0.02, .backward = 0.04, .output_bytes = output, .parameter_bytes = 4'000'000};
  TestCase clipped({one, one, one}, 3);
  clipped.plan.stages = {{0, 1, 1024}, {1, 3, 1025}};
  auto requests = clipped.run(8, without_misses(), true).requests;
  EXPECT_EQ(requests.puts, 36);
  EXPECT_EQ(requests.gets, 46);
  EXPECT_EQ(requests.removes, 36);
  EXPECT_EQ(requests.bytes_down, 54'405'120);

  TestCase four({one, one}, 4);
  four.plan.stages = {{0, 2, 1024}};
  requests = four.run(8, without_misses()).requests;
  EXPECT_EQ(requests.puts, 16);
  EXPECT_EQ(requests.gets, 24);
  EXPECT_EQ(requests.removes, 16);
  EXPECT_EQ(requests.bytes_down, 48'001'536);
}

TEST(Requests, StepRecordsAreAtMostTwoASecond) {
  auto options = without_misses();
  options.step_records = true;
  options.steps = 11;
  const auto puts = [&](double forward) {
    return TestCase({TestStage{.forward = forward}}).run(1, options).requests.puts;
  };
  EXPECT_EQ(puts(1), 1);
  EXPECT_EQ(puts(0.25), 0.5);
}

TEST(Requests, CostOfAStep) {
  const TestStage stage{.forward = 1, .backward = 2, .output_bytes = 1000, .cold_start = 4};
  auto options = without_misses();
  options.cold_starts = true;
  const auto result = TestCase({stage, stage}).run(1, options);
  PlatformSpec platform;
  platform.usd_per_gb_second = 1;
  platform.usd_per_put = 10;
  platform.usd_per_get = 1;
  platform.usd_per_invocation = 100;
  const auto cost = step_cost(result, platform);
  EXPECT_DOUBLE_EQ(cost.compute_usd, result.iteration_seconds * (1024 + 1025) / 1024.0);
  EXPECT_DOUBLE_EQ(cost.storage_usd, 2 * 10 + 2 * 1);
  EXPECT_DOUBLE_EQ(cost.total_usd(), cost.compute_usd + cost.storage_usd);
  EXPECT_DOUBLE_EQ(start_usd(result, platform), 200 + 4 * (1024 + 1025) / 1024.0);
}

TEST(Traces, HaveTheFormOfARealRun) {
  const TestStage stage{
      .forward = 1, .backward = 2, .output_bytes = 1000, .uplink = 1e3, .downlink = 1e3};
  auto options = SimulationOptions::closed_form();
  options.steps = 2;
  EXPECT_TRUE(TestCase({stage, stage}).run(1, options).traces.empty());
  options.traces = true;
  const auto traces = TestCase({stage, stage}, 2).run(2, options).traces;
  ASSERT_EQ(traces.size(), 4U);
  EXPECT_EQ(traces[3].worker, (WorkerId{1, 1}));
  const auto& events = traces[0].events;
  const auto send = std::find_if(events.begin(), events.end(), [](const TraceEvent& event) {
    return event.name == "send activation 0" && event.step == 1;
  });
  ASSERT_NE(send, events.end());
  EXPECT_EQ(send->lane, 1);
  EXPECT_EQ(send->begin_unix_ns, 11'000'000'000);  // 1 + 1 + 1 + 1 + 2 + 1 + 1 + 2 = 10 s a step
  EXPECT_EQ(send->end_unix_ns, 12'000'000'000);
}

}  // namespace
}  // namespace funcpipe
