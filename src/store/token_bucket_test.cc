#include "store/token_bucket.h"

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;

// Wakes every sleeper late, as a busy machine does.
class LateClock : public Clock {
 public:
  explicit LateClock(Duration most) : most_(most) {}
  TimePoint now() const override { return clock_.now(); }
  void sleep_until(TimePoint until, std::stop_token stop) override {
    if (until <= now()) return;
    clock_.sleep_until(until + from_seconds(rng_.uniform() * to_seconds(most_)), stop);
  }
  void advance(Duration duration) { clock_.advance(duration); }

 private:
  const Duration most_;
  ManualClock clock_;
  Rng rng_{1};
};

TEST(TokenBucketTest, ATransferTakesBytesByRate) {
  ManualClock clock;
  TokenBucket link(1e6, clock);
  const auto begin = clock.now();
  link.transfer(1'500'000);
  EXPECT_EQ(clock.now() - begin, 1500ms);
  link.transfer(1);
  EXPECT_EQ(clock.now() - begin, 1500ms + 1us);
  link.transfer(0);
  EXPECT_EQ(clock.now() - begin, 1500ms + 1us);
}

TEST(TokenBucketTest, AnIdleLinkSavesNothingUp) {
  ManualClock clock;
  TokenBucket link(1e6, clock);
  clock.advance(1h);
  const auto begin = clock.now();
  link.transfer(200'000);
  EXPECT_EQ(clock.now() - begin, 200ms);
}

TEST(TokenBucketTest, AnInfiniteRateTakesNoTime) {
  ManualClock clock;
  TokenBucket link(std::numeric_limits<double>::infinity(), clock);
  link.transfer(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(clock.now(), TimePoint{});
}

TEST(TokenBucketTest, RatesMustBePositive) {
  ManualClock clock;
  for (const double rate : {0.0, -1.0, std::nan("")})
    EXPECT_THROW(TokenBucket(rate, clock), Error) << rate;
}

TEST(TokenBucketTest, ATransferThatBeganEarlierEndsEarlier) {
  ManualClock clock;
  TokenBucket link(1e6, clock);
  clock.advance(1s);
  const auto begin = clock.now();
  clock.advance(30ms);
  link.transfer(100'000, begin);
  EXPECT_EQ(clock.now() - begin, 100ms);
}

TEST(TokenBucketTest, LateWakeUpsDoNotAddUp) {
  for (const auto late : {Duration(100us), Duration(5ms), Duration(60ms)}) {
    LateClock clock(late);
    TokenBucket link(70e6, clock);
    const auto begin = clock.now();
    constexpr int kTransfers = 200;
    for (int i = 0; i < kTransfers; ++i) link.transfer(700'000);
    const double expected = kTransfers * 700'000 / 70e6;
    const double taken = to_seconds(clock.now() - begin);
    EXPECT_GE(taken, expected - 1e-6);
    EXPECT_LE(taken, expected + to_seconds(late)) << "late by up to " << format_duration(late);
  }
}

TEST(TokenBucketTest, TimeWithoutTransfersIsNotMadeUpFor) {
  LateClock clock(1ms);
  TokenBucket link(1e6, clock);
  const auto begin = clock.now();
  for (int i = 0; i < 100; ++i) {
    link.transfer(5'000);
    clock.advance(20ms);
  }
  EXPECT_GE(clock.now() - begin, 100 * 25ms - 100 * 1ms);
}

TEST(TokenBucketTest, ConcurrentTransfersShareTheLink) {
  SteadyClock clock;
  TokenBucket link(20e6, clock);
  const auto begin = clock.now();
  Duration big{};
  Duration small{};
  {
    std::jthread first([&] {
      link.transfer(4'000'000);
      big = clock.now() - begin;
    });
    std::jthread second([&] {
      clock.sleep_until(begin + 20ms, {});
      link.transfer(200'000);
      small = clock.now() - begin;
    });
  }
  EXPECT_GE(big, 205ms);  // 4.2 MB in all, but for a turn
  EXPECT_LT(small, big);  // not behind the whole of the big one
}

TEST(TokenBucketTest, TheRealClockAgreesOnTheAverage) {
  SteadyClock clock;
  TokenBucket link(100e6, clock);
  const auto begin = clock.now();
  for (int i = 0; i < 100; ++i) link.transfer(300'000);
  EXPECT_GE(clock.now() - begin, 299ms);
}

}  // namespace
}  // namespace funcpipe
