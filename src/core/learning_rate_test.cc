#include "core/learning_rate.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace funcpipe {
namespace {

using Kind = LearningRateSpec::Kind;

// The rates of all steps must equal `expected` to the last digits.
void expect_rates(const LearningRateSpec& spec, double base, const std::vector<double>& expected) {
  const auto steps = static_cast<std::int64_t>(expected.size());
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto value = expected[static_cast<std::size_t>(step)];
    EXPECT_NEAR(learning_rate(spec, base, step, steps), value, 1e-14 * value) << "step " << step;
  }
}

TEST(LearningRateTest, Constant) { expect_rates({}, 0.3, {0.3, 0.3, 0.3}); }

// The figures below are what PyTorch 1.13 gives.
TEST(LearningRateTest, StepEqualsPyTorch) {  // StepLR(3, 0.5), StepLR(2, 0.1)
  expect_rates({.kind = Kind::kStep, .every_steps = 3, .factor = 0.5}, 0.8,
               {0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1});
  expect_rates({.kind = Kind::kStep, .every_steps = 2, .factor = 0.1}, 0.3,
               {0.3, 0.3, 0.03, 0.03, 0.003, 0.003, 0.0003});
}

TEST(LearningRateTest, CosineEqualsPyTorch) {  // CosineAnnealingLR(8, 0.01), (5)
  expect_rates({.kind = Kind::kCosine, .minimum = 0.01}, 0.1,
               {0.1, 0.096574578963007904, 0.08681980515339463, 0.072220754456429045, 0.055,
                0.037779245543570962, 0.023180194846605363, 0.013425421036992097});
  expect_rates(
      {.kind = Kind::kCosine}, 0.2,
      {0.2, 0.18090169943749476, 0.13090169943749475, 0.069098300562505266, 0.019098300562505267});
}

TEST(LearningRateTest, WarmUpRisesLinearlyAndTheRestCountsFromItsEnd) {
  expect_rates({.warmup_steps = 4}, 0.8, {0.2, 0.4, 0.6, 0.8, 0.8, 0.8});
  expect_rates({.kind = Kind::kStep, .warmup_steps = 2, .every_steps = 2, .factor = 0.5}, 0.8,
               {0.4, 0.8, 0.8, 0.8, 0.4, 0.4, 0.2});
  expect_rates({.kind = Kind::kCosine, .warmup_steps = 2}, 0.2,
               {0.1, 0.2, 0.2, 0.18090169943749476, 0.13090169943749475, 0.069098300562505266,
                0.019098300562505267});
}

TEST(LearningRateTest, AWarmUpMayBeLongerThanTheJob) {
  expect_rates({.kind = Kind::kCosine, .warmup_steps = 10}, 1, {0.1, 0.2, 0.3});
}

}  // namespace
}  // namespace funcpipe
