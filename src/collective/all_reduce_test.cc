#include "collective/all_reduce.h"

#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "store/memory_store.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;
using Values = std::vector<std::vector<float>>;  // by rank

Values random_values(int ranks, std::size_t length, std::uint64_t seed) {
  Rng rng(seed);
  Values values(static_cast<std::size_t>(ranks), std::vector<float>(length));
  for (auto& rank : values) {
    for (auto& value : rank)
      value = static_cast<float>(std::ldexp(rng.uniform() - 0.5, static_cast<int>(rng.below(20))));
  }
  return values;
}

std::vector<float> sequential_sum(const Values& values) {
  auto sum = values[0];
  for (std::size_t rank = 1; rank < values.size(); ++rank) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[rank][i];
  }
  return sum;
}

// Every rank on a thread of its own, starting with a random delay.
Values reduce_all(AllReduceAlgorithm algorithm, ObjectStore& store, Values values,
                  std::uint64_t seed, std::int64_t step = 0) {
  SteadyClock clock;
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    threads.emplace_back([&, rank] {
      std::this_thread::sleep_for(std::chrono::microseconds(Rng(seed + rank).below(2000)));
      Mailbox mailbox(store, "run", "run/stop", clock);
      LaneExecutor lanes;
      all_reduce(algorithm, mailbox,
                 {step, 0, static_cast<int>(rank), static_cast<int>(values.size()),
                  Deadline::after(clock, 20s)},
                 values[rank], lanes);
    });
  }
  threads.clear();
  return values;
}

TEST(AllReduce, AllRanksHoldTheSequentialSumBitForBit) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const int ranks = 1 + static_cast<int>(rng.below(seed % 10 == 0 ? 16 : 6));
    const auto length = rng.below(3) == 0 ? rng.below(4) : rng.below(5000);
    const auto values = random_values(ranks, length, seed);
    const auto expected = sequential_sum(values);
    for (const auto algorithm : {AllReduceAlgorithm::kThreePhase, AllReduceAlgorithm::kPipelined}) {
      MemoryStore store;
      for (const auto& got : reduce_all(algorithm, store, values, seed)) {
        ASSERT_EQ(got, expected) << ranks << " ranks, " << length << " values, "
                                 << to_string(algorithm);
      }
    }
  }
}

// A second attempt of a rank, with other values, changes nothing: what is stored wins.
TEST(AllReduce, AZombieCannotForkTheResult) {
  const auto values = random_values(3, 1000, 5);
  MemoryStore store;
  const auto first = reduce_all(AllReduceAlgorithm::kPipelined, store, values, 1);
  auto again = random_values(3, 1000, 6);
  const auto second = reduce_all(AllReduceAlgorithm::kPipelined, store, again, 2);
  EXPECT_EQ(second, first);
}

TEST(AllReduce, MovesTheBytesOfItsFormula) {
  constexpr int kRanks = 4;
  constexpr std::size_t kLength = 4096;
  MemoryStore store;
  reduce_all(AllReduceAlgorithm::kPipelined, store, random_values(kRanks, kLength, 1), 1);
  // n - 1 splits and one merged split per rank: s bytes up for each, plus headers.
  std::uint64_t stored = 0;
  const auto objects = list_all(store, "run/");
  for (const auto& object : objects) stored += object.size;
  EXPECT_EQ(objects.size(), static_cast<std::size_t>(kRanks * kRanks));
  EXPECT_LE(stored, kRanks * (kLength * sizeof(float) + kRanks * 128));
}

TEST(AllReduce, LeavesNothingWhenMessagesAreRemoved) {
  constexpr int kRanks = 3;
  MemoryStore store;
  SteadyClock clock;
  reduce_all(AllReduceAlgorithm::kPipelined, store, random_values(kRanks, 100, 1), 1);
  Mailbox mailbox(store, "run", "run/stop", clock);
  for (int rank = 0; rank < kRanks; ++rank) {
    AllReduce::remove_messages(mailbox, {0, 0, rank, kRanks, Deadline::after(clock, 1s)});
  }
  EXPECT_TRUE(list_all(store, "").empty());
}

TEST(AllReduce, AMissingRankEndsInADeadlineNotAHang) {
  MemoryStore store;
  SteadyClock clock;
  Mailbox mailbox(store, "run", "run/stop", clock);
  LaneExecutor lanes;
  std::vector<float> values(10);
  try {
    all_reduce(AllReduceAlgorithm::kPipelined, mailbox, {0, 0, 0, 2, Deadline::after(clock, 50ms)},
               values, lanes);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  }
}

}  // namespace
}  // namespace funcpipe
