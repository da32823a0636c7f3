#include "planner/gaussian_process.h"

#include <cmath>

#include <gtest/gtest.h>

namespace funcpipe {
namespace {

Eigen::MatrixXd grid(int count) { return Eigen::RowVectorXd::LinSpaced(count, 0, 1); }

Eigen::VectorXd wave(const Eigen::MatrixXd& points) {
  return 100 + 10 * (6 * points.row(0).array()).sin().transpose();
}

TEST(GaussianProcess, GoesThroughWhatItHasSeen) {
  GaussianProcess process;
  const auto points = grid(12);
  process.fit(points, wave(points));
  for (Eigen::Index i = 0; i < points.cols(); ++i) {
    const auto prediction = process.predict(points.col(i));
    EXPECT_NEAR(prediction.mean, wave(points)[i], 0.1);
    EXPECT_LT(prediction.deviation, 0.2);
  }
}

TEST(GaussianProcess, InterpolatesAndDoubtsWhatIsFar) {
  GaussianProcess process;
  const auto points = grid(12);
  process.fit(points, wave(points));
  const auto between = process.predict(Eigen::VectorXd::Constant(1, 0.47));
  EXPECT_NEAR(between.mean, 100 + 10 * std::sin(6 * 0.47), 0.5);
  const auto far = process.predict(Eigen::VectorXd::Constant(1, 30));
  EXPECT_GT(far.deviation, 10 * between.deviation);
  EXPECT_NEAR(far.mean, wave(points).mean(), 1);
}

TEST(GaussianProcess, TakesConstantValues) {
  GaussianProcess process;
  process.fit(grid(3), Eigen::VectorXd::Constant(3, 7));
  EXPECT_DOUBLE_EQ(process.predict(Eigen::VectorXd::Constant(1, 0.3)).mean, 7);
}

// E[max(best - N(mean, deviation), 0)]: at the mean it is deviation / sqrt(2 pi).
TEST(ExpectedImprovement, IsThatOfANormalVariable) {
  EXPECT_NEAR(expected_improvement({5, 2}, 5), 2 / std::sqrt(2 * M_PI), 1e-12);
  EXPECT_NEAR(expected_improvement({5, 1e-9}, 8), 3, 1e-8);
  EXPECT_EQ(expected_improvement({5, 0}, 4), 0);
  EXPECT_EQ(expected_improvement({5, 0}, 6), 1);
  EXPECT_GT(expected_improvement({5, 1}, 4), 0);
}

}  // namespace
}  // namespace funcpipe
