#include "store/wait.h"

#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "store/forwarding_store.h"
#include "store/memory_store.h"
#include "store/testing_store.h"

namespace funcpipe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Notes when it is asked, and does `before_get` first. Lists are failures.
class Observed : public ForwardingStore {
 public:
  Observed(ObjectStore& base, Clock& clock) : ForwardingStore(base), clock_(clock) {}
  std::optional<Buffer> get(std::string_view key) override {
    times.push_back(clock_.now() - TimePoint{});
    if (before_get) before_get();
    return base_.get(key);
  }
  ListPage list(std::string_view, std::string_view, std::size_t) override {
    ADD_FAILURE() << "a wait must not list";
    return {};
  }
  std::vector<Duration> times;
  std::function<void()> before_get;

 private:
  Clock& clock_;
};

class WaitTest : public ::testing::Test {
 protected:
  WaitOptions within(Duration duration) {
    return {{1ms, 8ms, 2, 0}, Deadline::after(clock_, duration), clock_, stop_.get_token()};
  }

  ManualClock clock_;
  MemoryStore memory_;
  Observed store_{memory_, clock_};
  std::stop_source stop_;
};

TEST_F(WaitTest, WhatIsThereComesAtOnce) {
  put_text(memory_, "k", "x");
  EXPECT_EQ(wait_for(store_, "k", within(0s)).text(), "x");
  EXPECT_THAT(store_.times, ElementsAre(0ms));
}

TEST_F(WaitTest, DelaysGrowUpToTheirMostAndEndAtTheDeadline) {
  EXPECT_FALSE(try_wait_for(store_, "k", within(30ms)));
  EXPECT_THAT(store_.times, ElementsAre(0ms, 1ms, 3ms, 7ms, 15ms, 23ms, 30ms));
}

TEST_F(WaitTest, TheObjectComesWhenItIsPut) {
  store_.before_get = [&] {
    if (clock_.now() - TimePoint{} >= 7ms) put_text(memory_, "k", "x");
  };
  EXPECT_EQ(wait_for(store_, "k", within(1h)).text(), "x");
  EXPECT_EQ(store_.times.back(), 7ms);
}

TEST_F(WaitTest, AnObjectPutJustBeforeTheDeadlineIsFound) {
  store_.before_get = [&] {
    if (clock_.now() - TimePoint{} >= 30ms) put_text(memory_, "k", "x");
  };
  EXPECT_TRUE(try_wait_for(store_, "k", within(30ms)));
}

TEST_F(WaitTest, TheErrorNamesTheKeyAndTheTime) {
  try {
    wait_for(store_, "runs/1/x", within(2s));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_THAT(error.what(), HasSubstr("'runs/1/x' did not appear in the store within 2.00 s"));
  }
}

TEST_F(WaitTest, AStopEndsIt) {
  store_.before_get = [&] {
    if (store_.times.size() == 3) stop_.request_stop();
  };
  try {
    wait_for(store_, "k", within(1h));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
  EXPECT_EQ(store_.times.size(), 3U);
}

TEST_F(WaitTest, AStopWakesASleeper) {
  SteadyClock clock;
  const auto begin = clock.now();
  std::jthread stopper([&] {
    std::this_thread::sleep_for(20ms);
    stop_.request_stop();
  });
  const WaitOptions options{{1h, 1h, 2, 0}, Deadline::after(clock, 1h), clock, stop_.get_token()};
  EXPECT_THROW(wait_for(memory_, "k", options), Error);
  EXPECT_LT(clock.now() - begin, 30s);
}

}  // namespace
}  // namespace funcpipe::testing
