#include "base/rng.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace funcpipe {
namespace {

using testing::ElementsAre;

TEST(RngTest, IsSplitMix64) {
  // Outputs of the reference implementation (Vigna, prng.di.unimi.it/splitmix64.c).
  Rng rng(1234567);
  for (const std::uint64_t expected :
       {6457827717110365317ULL, 3203168211198807973ULL, 9817491932198370423ULL,
        4593380528125082431ULL, 16408922859458223821ULL}) {
    EXPECT_EQ(rng(), expected);
  }
  EXPECT_EQ(Rng(0)(), 0xe220a8397b1dcdafULL);
}

TEST(RngTest, BelowIsInRangeAndEven) {
  Rng rng(3);
  std::map<std::uint64_t, int> counts;
  for (int i = 0; i < 70'000; ++i) ++counts[rng.below(7)];
  ASSERT_EQ(counts.size(), 7U);
  EXPECT_EQ(counts.rbegin()->first, 6U);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 10'000, 500) << value;
  EXPECT_EQ(rng.below(1), 0U);
}

TEST(RngTest, UniformIsInRangeAndEven) {
  Rng rng(4);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = rng.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(RngTest, DerivedSeedsDependOnEveryIdAndTheirOrder) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t a = 0; a < 30; ++a) {
    for (std::uint64_t b = 0; b < 30; ++b) seeds.insert(derive_seed(7, {a, b}));
  }
  EXPECT_EQ(seeds.size(), 900U);
  EXPECT_NE(derive_seed(7, {1}), derive_seed(8, {1}));
  EXPECT_EQ(derive_seed(5, {}), 5U);
  EXPECT_EQ(derive_seed(5, {6}), Rng(5 ^ 6)());
}

TEST(PermutationTest, HoldsEveryNumberOnce) {
  for (const std::uint32_t count : {0U, 1U, 2U, 17U, 1000U}) {
    auto order = permutation(count, count);
    std::sort(order.begin(), order.end());
    std::vector<std::uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0U);
    EXPECT_EQ(order, all);
  }
}

TEST(PermutationTest, DependsOnTheSeedAlone) {
  EXPECT_EQ(permutation(100, 1), permutation(100, 1));
  EXPECT_NE(permutation(100, 1), permutation(100, 2));
  // The documented algorithm, repeated: these numbers must never change.
  EXPECT_THAT(permutation(8, 42), ElementsAre(4, 3, 2, 0, 7, 6, 1, 5));
}

TEST(PermutationTest, EveryOrderIsEquallyLikely) {
  std::map<std::vector<std::uint32_t>, int> counts;
  for (std::uint64_t seed = 0; seed < 24'000; ++seed)
    ++counts[permutation(4, derive_seed(9, {seed}))];
  ASSERT_EQ(counts.size(), 24U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 160);
}

}  // namespace
}  // namespace funcpipe
