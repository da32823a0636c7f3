// Limits and time of the local host: memory, CPU, time limit, dilation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/testing_local_host.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

void expect_out_of_memory(TestingLocalHost& host) {
  EXPECT_EQ(host.call("small", {{"do", "eat"}, {"mb", 60}})["eaten_mb"], 60);
  const auto outcome = host.invoke("small", {{"do", "eat"}, {"mb", 400}});
  EXPECT_EQ(outcome.kind, Kind::kOutOfMemory) << outcome.error_message;
  EXPECT_EQ(outcome.error_type, "Runtime.OutOfMemory");
  EXPECT_THAT(outcome.error_message, HasSubstr("Runtime exited with error: signal: killed"));
  EXPECT_EQ(outcome.usage.max_memory_used_mb, 160);
  EXPECT_EQ(host.invoke("small", json::object()).kind, Kind::kSucceeded);
}

TEST(LocalHostLimits, EndsAFunctionAtItsMemoryLimit) {
  TestingLocalHost host;  // by cgroup where permitted
  expect_out_of_memory(host);
}

TEST(LocalHostLimits, EndsAFunctionAtItsMemoryLimitWithoutCgroups) {
  auto config = testing_config();
  config.use_cgroups = false;
  TestingLocalHost host(config);
  EXPECT_EQ(host.process().isolation(), "not available: switched off");
  expect_out_of_memory(host);
}

TEST(LocalHostLimits, CanDoWithoutAMemoryLimit) {
  auto config = testing_config();
  config.memory_limit = false;
  TestingLocalHost host(config);
  EXPECT_EQ(host.call("small", {{"do", "eat"}, {"mb", 300}})["eaten_mb"], 300);
}

TEST(LocalHostLimits, GivesTheCpuShareOfTheMemory) {
  TestingLocalHost host;
  if (!host.process().isolation().ends_with("cpu")) GTEST_SKIP() << host.process().isolation();
  const double used = host.call("half", {{"do", "spin"}, {"seconds", 1}})["cpu_seconds"];
  EXPECT_GT(used, 0.05);  // the rest may belong to others
  EXPECT_LT(used, 0.65);
  auto config = testing_config();
  config.cpu_limit = false;
  TestingLocalHost free(config);
  EXPECT_GT(free.call("small", {{"do", "spin"}, {"seconds", 0.3}})["cpu_seconds"].get<double>(),
            0.04);  // its share would be 0.027
}

TEST(LocalHostLimits, EndsAFunctionAtItsTimeLimit) {
  auto config = testing_config();
  config.time_limit = 300ms;
  TestingLocalHost host(config);
  const auto outcome = host.invoke("main", {{"do", "sleep"}, {"ms", 5000}});
  EXPECT_EQ(outcome.kind, Kind::kTimedOut);
  EXPECT_EQ(outcome.error_type, "Sandbox.Timedout");
  EXPECT_THAT(outcome.error_message, HasSubstr("Error: Task timed out after 0.30 seconds"));
  EXPECT_GE(outcome.usage.duration, 300ms);
  EXPECT_LT(outcome.usage.duration, 1s);
  EXPECT_EQ(host.invoke("main", json::object()).kind, Kind::kSucceeded);
}

TEST(LocalHostLimits, CountsInPlatformTime) {
  auto config = testing_config();
  config.time_dilation = 4;
  config.time_limit = 200ms;
  config.cold_start = 100ms;
  TestingLocalHost host(config);
  const auto start = std::chrono::steady_clock::now();
  const auto slept = host.invoke("main", {{"do", "sleep"}, {"ms", 400}});  // 100 ms of the platform
  EXPECT_EQ(slept.kind, Kind::kSucceeded);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 800ms);  // with 400 ms of cold start
  EXPECT_GE(slept.usage.duration, 100ms);
  EXPECT_LT(slept.usage.duration, 300ms);
  EXPECT_LT(slept.usage.initialisation, 100ms);  // the cold start's delay is not billed
  EXPECT_NEAR(host.call("main", {{"do", "context"}})["left_ms"].get<double>(), 800, 300);
  const auto late = host.invoke("main", {{"do", "sleep"}, {"ms", 1500}});
  EXPECT_EQ(late.kind, Kind::kTimedOut);
  EXPECT_GE(late.usage.duration, 200ms);
  EXPECT_LT(late.usage.duration, 700ms);
}

}  // namespace
}  // namespace funcpipe
