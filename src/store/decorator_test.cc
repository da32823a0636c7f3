// Each decorator on its own, on a manual clock.
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "store/counting_store.h"
#include "store/fault_store.h"
#include "store/memory_store.h"
#include "store/prefixed_store.h"
#include "store/retrying_store.h"
#include "store/testing_store.h"
#include "store/throttled_store.h"

namespace funcpipe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

class DecoratorTest : public ::testing::Test {
 protected:
  // The time that `call` takes.
  template <typename Call>
  Duration taken(Call call) {
    const auto begin = clock_.now();
    call();
    return clock_.now() - begin;
  }

  ManualClock clock_;
  MemoryStore memory_;
};

using ThrottledStoreTest = DecoratorTest;

TEST_F(ThrottledStoreTest, TransfersTakeTheirTimeInEachDirection) {
  FunctionLinks links(1e6, 2e6, 0s, clock_);
  ThrottledStore store(memory_, links);
  const auto bytes = random_bytes(500'000, 1);
  EXPECT_EQ(taken([&] { put(store, "k", bytes.view()); }), 500ms);
  EXPECT_EQ(taken([&] { put_if_absent(store, "k", bytes.view()); }), 500ms);
  EXPECT_EQ(taken([&] { store.get("k"); }), 250ms);
  EXPECT_EQ(taken([&] { store.get_range("k", {100'000, 100'000}); }), 50ms);
  EXPECT_EQ(taken([&] { store.get("missing"); }), 0ms);
  EXPECT_EQ(taken([&] { store.head("k"); }), 0ms);
}

TEST_F(ThrottledStoreTest, EveryRequestHasTheLatency) {
  FunctionLinks links(1e6, kUnlimited, 40ms, clock_);
  ThrottledStore store(memory_, links);
  EXPECT_EQ(taken([&] { put_text(store, "k", std::string(1000, 'x')); }), 41ms);
  EXPECT_EQ(taken([&] { put_if_absent(store, "k", {}); }), 40ms);
  EXPECT_EQ(taken([&] { store.get("k"); }), 40ms);
  EXPECT_EQ(taken([&] { store.get_range("k", {0, 1}); }), 40ms);
  EXPECT_EQ(taken([&] { store.head("k"); }), 40ms);
  EXPECT_EQ(taken([&] { store.list("", "", 1); }), 40ms);
  EXPECT_EQ(taken([&] { store.remove("k"); }), 40ms);
}

TEST_F(ThrottledStoreTest, StoresOfOneFunctionShareItsLinks) {
  SteadyClock clock;
  FunctionLinks links(10e6, 10e6, 0s, clock);
  MemoryStore other;
  ThrottledStore first(memory_, links);
  ThrottledStore second(other, links);
  const auto bytes = random_bytes(500'000, 1);
  put(other, "k", bytes.view());
  const auto begin = clock.now();
  {
    std::jthread a([&] { put(first, "k", bytes.view()); });
    std::jthread b([&] { put(second, "l", bytes.view()); });
    std::jthread c([&] { second.get("k"); });
  }
  EXPECT_GE(clock.now() - begin,
            99ms);  // two uploads one after the other, the download beside them
}

TEST_F(ThrottledStoreTest, ConcurrentLatenciesOverlap) {
  SteadyClock clock;
  FunctionLinks links(kUnlimited, kUnlimited, 60ms, clock);
  ThrottledStore store(memory_, links);
  const auto begin = clock.now();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 20; ++i) threads.emplace_back([&] { store.head("k"); });
  }
  EXPECT_GE(clock.now() - begin, 60ms);
  EXPECT_LT(clock.now() - begin, 20 * 60ms / 2);
}

using CountingStoreTest = DecoratorTest;

TEST_F(CountingStoreTest, CountsCallsAndBytes) {
  CountingStore store(memory_);
  put_text(store, "k", "12345");
  put_if_absent(store, "k", as_bytes("123"));
  store.get("k");
  store.get_range("k", {1, 2});
  store.get("missing");
  store.head("k");
  store.list("", "", 10);
  store.remove("k");
  store.remove("k");
  const StoreUsage expected = {.puts = 2,
                               .gets = 3,
                               .misses = 1,
                               .heads = 1,
                               .lists = 1,
                               .removes = 2,
                               .bytes_up = 8,
                               .bytes_down = 7};
  EXPECT_EQ(store.snapshot(), expected);
}

TEST_F(CountingStoreTest, CountsFailedAttemptsToo) {
  FaultStore faulty(memory_, FaultOptions::for_all({.refused = 1}, 0), clock_);
  CountingStore store(faulty);
  EXPECT_THROW(put_text(store, "k", "12345"), Error);
  EXPECT_THROW(store.get("k"), Error);
  const StoreUsage expected = {.puts = 1, .gets = 1, .bytes_up = 5};
  EXPECT_EQ(store.snapshot(), expected);
}

TEST_F(CountingStoreTest, StoresMayShareACounterAmongThreads) {
  UsageCounter counter;
  CountingStore first(memory_, counter);
  CountingStore second(memory_, counter);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 500; ++i) put_text(t % 2 ? first : second, "k", "xy");
      });
    }
  }
  EXPECT_EQ(counter.snapshot().puts, 2000U);
  EXPECT_EQ(counter.snapshot().bytes_up, 4000U);
}

TEST(StoreUsageTest, AddsSubtractsAndTravelsAsJson) {
  const StoreUsage usage = {1, 2, 3, 4, 5, 6, 7, 1ULL << 60};
  StoreUsage sum = usage;
  sum += usage;
  EXPECT_EQ(sum.bytes_down, 1ULL << 61);
  EXPECT_EQ(sum.misses, 6U);
  EXPECT_EQ(sum - usage, usage);
  EXPECT_EQ(StoreUsage::from_json(nlohmann::json::parse(usage.to_json().dump())), usage);
  EXPECT_ANY_THROW(StoreUsage::from_json({{"puts", 1}}));
}

using FaultStoreTest = DecoratorTest;

TEST_F(FaultStoreTest, ARefusedCallDoesNothingALostOneDoesEverything) {
  FaultStore refusing(memory_, FaultOptions::for_all({.refused = 1}, 0), clock_);
  EXPECT_THROW(put_text(refusing, "k", "x"), Error);
  EXPECT_FALSE(memory_.get("k"));
  FaultStore losing(memory_, FaultOptions::for_all({.lost = 1}, 0), clock_);
  try {
    put_if_absent(losing, "k", as_bytes("x"));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_TRUE(error.retryable());
  }
  EXPECT_EQ(get_text(memory_, "k"), "x");
  EXPECT_THROW(losing.remove("k"), Error);
  EXPECT_FALSE(memory_.get("k"));
}

TEST_F(FaultStoreTest, FaultsAreChosenByOperation) {
  FaultOptions options;
  options.get = {.refused = 1};
  options.list = {.delayed = 1, .delay = 3s};
  FaultStore store(memory_, options, clock_);
  put_text(store, "k", "x");
  EXPECT_THROW(store.get("k"), Error);
  EXPECT_THROW(store.get_range("k", {0, 1}), Error);
  EXPECT_TRUE(store.head("k"));
  EXPECT_EQ(taken([&] { store.list("", "", 1); }), 3s);
  EXPECT_TRUE(store.remove("k"));
}

TEST_F(FaultStoreTest, ASeedGivesTheSameFaultsAgain) {
  const auto pattern = [&](std::uint64_t seed) {
    FaultStore store(memory_, FaultOptions::for_all({.refused = 0.3}, seed), clock_);
    std::string faults;
    for (int i = 0; i < 300; ++i) {
      try {
        store.head("k");
        faults += '.';
      } catch (const Error&) {
        faults += 'x';
      }
    }
    return faults;
  };
  const auto faults = pattern(1);
  EXPECT_EQ(faults, pattern(1));
  EXPECT_NE(faults, pattern(2));
  EXPECT_NEAR(static_cast<double>(std::count(faults.begin(), faults.end(), 'x')), 90, 30);
}

class RetryingStoreTest : public DecoratorTest {
 protected:
  // Fails the first `failures_` calls of put_if_absent and get in one way or the other.
  class Flaky : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) override {
      if (calls++ >= failures) return base_.put_if_absent(key, parts);
      if (answer_lost) base_.put_if_absent(key, parts);
      throw error;
    }
    std::optional<Buffer> get(std::string_view key) override {
      if (calls++ < failures) throw error;
      return base_.get(key);
    }
    int failures = 0;
    int calls = 0;
    bool answer_lost = false;
    Error error{ErrorCode::kUnavailable, "503", Error::Retry::kMayHelp};
  };

  RetryingStore retrying(int most_tries, Duration budget = 1h) {
    RetryOptions options;
    options.backoff = {1s, 4s, 2, 0};
    options.most_tries = most_tries;
    options.budget = budget;
    return RetryingStore(flaky_, options, clock_);
  }

  Flaky flaky_{memory_};
};

TEST_F(RetryingStoreTest, TriesUntilItWorks) {
  put_text(memory_, "k", "x");
  flaky_.failures = 4;
  auto store = retrying(5);
  EXPECT_EQ(taken([&] { EXPECT_EQ(get_text(store, "k"), "x"); }), 1s + 2s + 4s + 4s);
  EXPECT_EQ(flaky_.calls, 5);
}

TEST_F(RetryingStoreTest, GivesUpAfterItsTries) {
  flaky_.failures = 100;
  auto store = retrying(3);
  try {
    store.get("k");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("tried 3 times in 3.00 s: 503"));
  }
  EXPECT_EQ(flaky_.calls, 3);
}

TEST_F(RetryingStoreTest, GivesUpWhenItsBudgetIsSpent) {
  flaky_.failures = 100;
  auto store = retrying(100, 5s);
  EXPECT_EQ(taken([&] { EXPECT_THROW(store.get("k"), Error); }), 3s);
}

TEST_F(RetryingStoreTest, DoesNotTryAgainWhatCannotHelp) {
  flaky_.failures = 1;
  flaky_.error = Error(ErrorCode::kFailedPrecondition, "403");
  auto store = retrying(5);
  EXPECT_EQ(taken([&] { EXPECT_THROW(store.get("k"), Error); }), 0s);
  EXPECT_EQ(flaky_.calls, 1);
}

TEST_F(RetryingStoreTest, ALostAnswerDoesNotLoseThePut) {
  flaky_.failures = 2;
  flaky_.answer_lost = true;
  auto store = retrying(5);
  const std::vector<ByteView> parts = {as_bytes("mi"), {}, as_bytes("ne")};
  EXPECT_EQ(store.put_if_absent("k", parts), PutResult::kStored);
  EXPECT_EQ(get_text(memory_, "k"), "mine");
}

TEST_F(RetryingStoreTest, AnothersObjectIsNeverTakenForOurs) {
  for (const auto* other : {"them", "min", "mine!", ""}) {
    put_text(memory_, "k", other);
    flaky_.failures = 1;
    flaky_.calls = 0;
    auto store = retrying(5);
    EXPECT_EQ(put_if_absent(store, "k", as_bytes("mine")), PutResult::kAlreadyThere) << other;
  }
}

TEST_F(RetryingStoreTest, WithoutAFailureEqualBytesAreStillAnothers) {
  put_text(memory_, "k", "mine");
  auto store = retrying(5);
  EXPECT_EQ(put_if_absent(store, "k", as_bytes("mine")), PutResult::kAlreadyThere);
}

TEST(PrefixedStoreTest, KeysAreBelowThePrefixAndNothingElseIsSeen) {
  MemoryStore memory;
  put_text(memory, "a/bc/x", "foreign");
  put_text(memory, "a", "foreign");
  PrefixedStore store(memory, "a/b");
  put_text(store, "k", "x");
  EXPECT_EQ(get_text(memory, "a/b/k"), "x");
  EXPECT_THAT(keys_of(list_all(store, "")), ElementsAre("k"));
  EXPECT_EQ(store.head("k").value().key, "k");
  EXPECT_FALSE(store.get("c/x"));
  EXPECT_THROW(PrefixedStore(memory, ""), Error);
  EXPECT_THROW(PrefixedStore(memory, "a/"), Error);
}

}  // namespace
}  // namespace funcpipe::testing
