#include "core/batching.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

namespace funcpipe {
namespace {

using testing::ElementsAre;

std::vector<std::int64_t> counts(const std::vector<MicroBatch>& micro_batches) {
  std::vector<std::int64_t> result;
  for (const auto& micro_batch : micro_batches) result.push_back(micro_batch.count);
  return result;
}

TEST(BatchingTest, AShortLastStepAndUnevenMicroBatches) {
  const StepSequence steps(10, 4, 2, 0);
  EXPECT_EQ(steps.steps_per_epoch(), 3);
  EXPECT_EQ(steps.steps(), 6);
  EXPECT_EQ(steps.at(2).first, 8);
  EXPECT_EQ(steps.at(2).count, 2);
  EXPECT_EQ(steps.at(3).epoch, 1);
  EXPECT_EQ(steps.at(3).first, 0);
  EXPECT_TRUE(steps.ends_epoch(2));
  EXPECT_FALSE(steps.ends_epoch(3));
  EXPECT_THAT(counts(split_mini_batch(7, 3)), ElementsAre(3, 3, 1));
  EXPECT_THAT(counts(split_mini_batch(2, 5)), ElementsAre(2));
}

TEST(BatchingTest, AGivenNumberOfStepsOverridesTheEpochs) {
  const StepSequence steps(10, 4, 1, 100);
  EXPECT_EQ(steps.steps(), 100);
  EXPECT_EQ(steps.at(99).epoch, 33);
}

TEST(BatchingTest, ADatasetWithoutSamplesIsAnError) {
  EXPECT_THROW(StepSequence(0, 4, 1, 0), Error);
}

TEST(BatchingTest, SharesOfUnevenCounts) {
  const auto all = split_mini_batch(5, 1);
  EXPECT_EQ(share_of(all, 0, 3).size(), 1U);
  EXPECT_EQ(share_of(all, 1, 3).size(), 2U);
  EXPECT_EQ(share_of(all, 2, 3).size(), 2U);
  EXPECT_TRUE(share_of(split_mini_batch(1, 1), 0, 2).empty());
}

// Whatever the numbers are, an epoch trains on every sample exactly once, in contiguous shares that
// differ by at most one micro-batch.
TEST(BatchingTest, EverySampleExactlyOnceAnEpoch) {
  Rng rng(11);
  for (int round = 0; round < 300; ++round) {
    const auto samples = static_cast<std::int64_t>(1 + rng.below(200));
    const auto batch_size = static_cast<std::int64_t>(1 + rng.below(60));
    const auto micro_batch_size = static_cast<std::int64_t>(1 + rng.below(batch_size));
    const int replicas = static_cast<int>(1 + rng.below(5));
    const auto epoch = static_cast<std::int64_t>(rng.below(3));
    const auto order = epoch_order(static_cast<std::uint32_t>(samples), epoch, rng(), true);
    const StepSequence steps(samples, batch_size, 3, 0);

    std::multiset<std::uint32_t> trained;
    for (auto s = epoch * steps.steps_per_epoch(); s < (epoch + 1) * steps.steps_per_epoch(); ++s) {
      const auto step = steps.at(s);
      ASSERT_EQ(step.epoch, epoch);
      ASSERT_EQ(step.index, s);
      ASSERT_EQ(steps.ends_epoch(s), s + 1 == (epoch + 1) * steps.steps_per_epoch());
      const auto all = split_mini_batch(step.count, micro_batch_size);
      std::int64_t next = 0;
      std::size_t least = all.size(), most = 0;
      for (int replica = 0; replica < replicas; ++replica) {
        const auto share = share_of(all, replica, replicas);
        least = std::min(least, share.size());
        most = std::max(most, share.size());
        for (const auto& micro_batch : share) {
          ASSERT_EQ(micro_batch.first, next);
          ASSERT_LE(micro_batch.count, micro_batch_size);
          ASSERT_GT(micro_batch.count, 0);
          ASSERT_EQ(all[static_cast<std::size_t>(micro_batch.index)].first, micro_batch.first);
          next += micro_batch.count;
          for (auto i = micro_batch.first; i < next; ++i)
            trained.insert(order[static_cast<std::size_t>(step.first + i)]);
        }
      }
      ASSERT_EQ(next, step.count);
      ASSERT_LE(most - least, 1U);
    }
    ASSERT_EQ(trained.size(), static_cast<std::size_t>(samples));
    ASSERT_EQ(std::set(trained.begin(), trained.end()).size(), static_cast<std::size_t>(samples));
  }
}

TEST(BatchingTest, OrdersDifferByEpochAndSeed) {
  EXPECT_EQ(epoch_order(100, 1, 5, true), epoch_order(100, 1, 5, true));
  EXPECT_NE(epoch_order(100, 1, 5, true), epoch_order(100, 2, 5, true));
  EXPECT_NE(epoch_order(100, 1, 5, true), epoch_order(100, 1, 6, true));
  std::vector<std::uint32_t> in_order(100);
  std::iota(in_order.begin(), in_order.end(), 0U);
  EXPECT_EQ(epoch_order(100, 3, 5, false), in_order);
}

TEST(BatchingTest, DropoutSeedsDifferEverywhere) {
  std::set<std::uint64_t> seeds;
  for (std::int64_t step = 0; step < 20; ++step) {
    for (int micro_batch = 0; micro_batch < 20; ++micro_batch) {
      for (int layer = 0; layer < 20; ++layer)
        seeds.insert(dropout_seed(1, step, micro_batch, layer));
    }
  }
  EXPECT_EQ(seeds.size(), 8000U);
}

}  // namespace
}  // namespace funcpipe
