#include "nn/pass_times.h"

#include <gtest/gtest.h>

namespace funcpipe::nn {
namespace {

PassTimes pass(std::vector<double> wall, std::vector<double> cpu) {
  PassTimes times(wall.size());
  times.wall = std::move(wall);
  times.cpu = std::move(cpu);
  return times;
}

TEST(TypicalPass, OneThreadIsTimedByTheCpuClock) {
  const std::vector passes = {pass({1, 3}, {1, 3}), pass({9, 3}, {1, 3.5}), pass({1, 7}, {1.5, 3})};
  const auto typical = typical_pass(passes, {24, 13}, {.threads = 1, .cpus = 1});
  EXPECT_EQ(typical.seconds, (std::vector<double>{1, 3}));
  EXPECT_EQ(typical.stretch, 1);  // others on the machine are not the platform's
}

// A quarter of a CPU: 12 s pass for 3 s of CPU time, of which half a second lies between the parts.
TEST(TypicalPass, PausesOfAQuotaStretchAllParts) {
  const std::vector passes = {pass({0.5, 9.5}, {0.5, 2})};
  const auto typical = typical_pass(passes, {12, 3}, {.threads = 1, .cpus = 0.25});
  EXPECT_EQ(typical.seconds, (std::vector<double>{0.5, 2}));
  EXPECT_DOUBLE_EQ(typical.stretch, 4);
}

TEST(TypicalPass, SeveralThreadsAreTimedByTheWallClock) {
  const std::vector passes = {pass({2, 5}, {4, 5}), pass({2, 5}, {4, 5}), pass({2, 50}, {4, 5})};
  const auto typical = typical_pass(passes, {66, 27}, {.threads = 2, .cpus = 2});
  EXPECT_EQ(typical.seconds, (std::vector<double>{2, 5}));
  EXPECT_EQ(typical.stretch, 1);
}

// 1.25 CPUs for two threads: the part that uses both is slower than its own wall times show, the one
// that uses one thread is not.
TEST(TypicalPass, AQuotaBelowTheThreadsSlowsWhatUsesThemAll) {
  const std::vector passes = {pass({1, 3}, {2, 3})};
  const auto typical = typical_pass(passes, {4.6, 5}, {.threads = 2, .cpus = 1.25});
  EXPECT_EQ(typical.seconds, (std::vector<double>{1.6, 3}));
  EXPECT_DOUBLE_EQ(typical.stretch, 1);
}

TEST(Stopwatch, ShowsTimeThatPasses) {
  const Stopwatch stopwatch;
  double sum = 0;
  while (stopwatch.elapsed().wall < 0.02) sum += 1;
  const auto elapsed = stopwatch.elapsed();
  EXPECT_GT(sum, 0);
  EXPECT_GT(elapsed.cpu, 0);
  EXPECT_LE(elapsed.cpu, elapsed.wall * 1.5);
}

}  // namespace
}  // namespace funcpipe::nn
