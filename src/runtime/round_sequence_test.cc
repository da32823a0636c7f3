#include "runtime/round_sequence.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace funcpipe {
namespace {

std::vector<Round> all_rounds(const TrainingSpec& training, RoundSequence::Sizes sizes, int replica,
                              int replicas, std::int64_t first = 0) {
  RoundSequence sequence(training, sizes, replica, replicas, first);
  std::vector<Round> rounds;
  while (auto round = sequence.next()) rounds.push_back(std::move(*round));
  return rounds;
}

// Whatever the sizes: in every epoch each record is trained on exactly once over all replicas, in
// each evaluation each test record is seen exactly once.
TEST(RoundSequence, EveryRecordOnce) {
  Rng rng(1);
  for (int round = 0; round < 60; ++round) {
    TrainingSpec training;
    training.epochs = 1 + static_cast<std::int64_t>(rng.below(3));
    training.batch_size = 1 + static_cast<std::int64_t>(rng.below(20));
    training.micro_batch_size =
        1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(training.batch_size)));
    const RoundSequence::Sizes sizes{1 + static_cast<std::int64_t>(rng.below(60)),
                                     static_cast<std::int64_t>(rng.below(40))};
    const int replicas = 1 + static_cast<int>(rng.below(5));
    std::map<std::int64_t, std::multiset<std::uint32_t>> trained, evaluated;  // by epoch, by step
    for (int replica = 0; replica < replicas; ++replica) {
      RecordOrder order(sizes.train_records, 5, true);
      for (const auto& each : all_rounds(training, sizes, replica, replicas)) {
        for (const auto& micro_batch : each.own) {
          auto& seen = each.training ? trained[each.step.epoch] : evaluated[each.step.index];
          for (const auto record : order.records(each, micro_batch)) seen.insert(record);
        }
      }
    }
    EXPECT_EQ(trained.size(), static_cast<std::size_t>(training.epochs));
    EXPECT_EQ(evaluated.size(), sizes.test_records > 0 ? trained.size() : 0U);
    for (const auto& [epoch, seen] : trained) {
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(sizes.train_records));
      EXPECT_EQ(std::set<std::uint32_t>(seen.begin(), seen.end()).size(), seen.size());
    }
    for (const auto& [step, seen] : evaluated)
      EXPECT_EQ(std::set<std::uint32_t>(seen.begin(), seen.end()).size(),
                static_cast<std::size_t>(sizes.test_records));
  }
}

TEST(RoundSequence, GoesOnFromAnyStepAsIfNothingHadHappened) {
  TrainingSpec training;
  training.epochs = 3;
  training.batch_size = 4;
  training.micro_batch_size = 2;
  const RoundSequence::Sizes sizes{10, 5};
  const auto whole = all_rounds(training, sizes, 0, 2);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (!whole[i].training) continue;
    const auto rest = all_rounds(training, sizes, 0, 2, whole[i].step.index + 1);
    ASSERT_EQ(rest.size(), whole.size() - i - 1) << "after step " << whole[i].step.index;
    for (std::size_t j = 0; j < rest.size(); ++j) {
      EXPECT_EQ(rest[j].training, whole[i + 1 + j].training);
      EXPECT_EQ(rest[j].step.index, whole[i + 1 + j].step.index);
    }
  }
}

TEST(RoundSequence, EvaluatesEveryNthEpochAndAtTheEnd) {
  TrainingSpec training;
  training.epochs = 5;
  training.batch_size = training.micro_batch_size = 10;
  training.evaluate_every_epochs = 2;
  std::vector<std::int64_t> evaluated;
  for (const auto& round : all_rounds(training, {20, 3}, 0, 1)) {
    if (!round.training) evaluated.push_back(round.step.index);
  }
  EXPECT_EQ(evaluated, (std::vector<std::int64_t>{4, 8, 10}));
}

}  // namespace
}  // namespace funcpipe
