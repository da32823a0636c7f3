#include "base/clock.h"

#include <thread>

#include <gtest/gtest.h>

#include "base/backoff.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;

TEST(ManualClockTest, MovesForSleepersAndByHand) {
  ManualClock clock;
  const auto start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(5s);
  EXPECT_EQ(clock.now(), start + 5s);
  clock.sleep_for(2s);
  EXPECT_EQ(clock.now(), start + 7s);
  clock.sleep_until(start, {});  // in the past: time does not go back
  EXPECT_EQ(clock.now(), start + 7s);
}

TEST(ManualClockTest, AStoppedSleeperDoesNotMoveTime) {
  ManualClock clock;
  const auto start = clock.now();
  std::stop_source stop;
  stop.request_stop();
  clock.sleep_for(2s, stop.get_token());
  EXPECT_EQ(clock.now(), start);
}

TEST(SteadyClockTest, SleepsAtLeastAsLong) {
  SteadyClock clock;
  const auto start = clock.now();
  clock.sleep_for(5ms);
  EXPECT_GE(clock.now() - start, 5ms);
}

TEST(SteadyClockTest, StopEndsTheSleep) {
  SteadyClock clock;
  const auto start = clock.now();
  std::jthread sleeper([&](std::stop_token stop) { clock.sleep_for(Duration::max(), stop); });
  sleeper.request_stop();
  sleeper.join();
  EXPECT_LT(clock.now() - start, 60s);
}

TEST(DeadlineTest, ExpiresAtItsTime) {
  ManualClock clock;
  const auto deadline = Deadline::after(clock, 3s);
  EXPECT_FALSE(deadline.expired(clock));
  EXPECT_EQ(deadline.remaining(clock), 3s);
  clock.advance(3s);
  EXPECT_TRUE(deadline.expired(clock));
  clock.advance(1s);
  EXPECT_EQ(deadline.remaining(clock), 0s);
}

TEST(DeadlineTest, TheEarlierOfTwo) {
  ManualClock clock;
  const auto soon = Deadline::after(clock, 1s);
  const auto late = Deadline::after(clock, 2s);
  EXPECT_EQ(soon.earlier(late).time(), soon.time());
  EXPECT_EQ(late.earlier(soon).time(), soon.time());
}

TEST(DeadlineTest, TheLongestDurationDoesNotOverflow) {
  ManualClock clock;
  clock.advance(1h);
  EXPECT_FALSE(Deadline::after(clock, Duration::max()).expired(clock));
}

TEST(BackoffTest, GrowsToTheMost) {
  Backoff backoff({.first = 1ms, .most = 5ms, .factor = 2, .jitter = 0});
  for (const auto expected : {1ms, 2ms, 4ms, 5ms, 5ms}) EXPECT_EQ(backoff.next(), expected);
  Backoff low({.first = 10ms, .most = 5ms});
  EXPECT_EQ(low.next(), 5ms);
}

TEST(BackoffTest, JitterStaysWithinTheDelayAndIsSeeded) {
  const BackoffOptions options{.first = 8ms, .most = 8ms, .factor = 2, .jitter = 1};
  Backoff one(options, 1), same(options, 1), other(options, 2);
  int differences = 0;
  Duration least = 1s, most{};
  for (int i = 0; i < 1000; ++i) {
    const auto delay = one.next();
    EXPECT_EQ(delay, same.next());
    differences += delay != other.next();
    least = std::min(least, delay);
    most = std::max(most, delay);
  }
  EXPECT_GT(least, 0ms);
  EXPECT_LT(least, 1ms);
  EXPECT_GT(most, 7ms);
  EXPECT_LE(most, 8ms);
  EXPECT_GT(differences, 900);
}

}  // namespace
}  // namespace funcpipe
