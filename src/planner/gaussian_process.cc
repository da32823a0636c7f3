#include "planner/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace funcpipe {
namespace {

// Squared distances between the columns of two matrices.
Eigen::MatrixXd squared_distances(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  Eigen::MatrixXd result = -2 * a.transpose() * b;
  result.colwise() += a.colwise().squaredNorm().transpose();
  result.rowwise() += b.colwise().squaredNorm();
  return result.cwiseMax(0);
}

Eigen::MatrixXd matern52(const Eigen::MatrixXd& squared, double length_scale) {
  const Eigen::ArrayXXd r = (5 * squared.array()).sqrt() / length_scale;
  return (1 + r + r.square() / 3) * (-r).exp();
}

}  // namespace

void GaussianProcess::fit(const Eigen::MatrixXd& points, const Eigen::VectorXd& values) {
  points_ = points;
  mean_ = values.mean();
  scale_ = std::sqrt((values.array() - mean_).square().mean());
  if (!(scale_ > 0)) scale_ = 1;
  values_ = (values.array() - mean_) / scale_;

  double best = -std::numeric_limits<double>::infinity(), best_scale = 1, best_noise = 1e-2;
  for (const double length_scale : {0.25, 0.5, 1.0, 2.0, 4.0, 8.0}) {
    for (const double noise : {1e-4, 1e-2}) {
      const double likelihood = factorise(length_scale, noise);
      if (likelihood <= best) continue;
      best = likelihood;
      best_scale = length_scale;
      best_noise = noise;
    }
  }
  factorise(best_scale, best_noise);
}

double GaussianProcess::factorise(double length_scale, double noise) {
  length_scale_ = length_scale;
  Eigen::MatrixXd kernel = matern52(squared_distances(points_, points_), length_scale);
  kernel.diagonal().array() += noise;
  factor_.compute(kernel);
  weights_ = factor_.solve(values_);
  const Eigen::MatrixXd& lower = factor_.matrixLLT();
  return -0.5 * values_.dot(weights_) - lower.diagonal().array().log().sum();
}

GaussianProcess::Prediction GaussianProcess::predict(const Eigen::VectorXd& point) const {
  const Eigen::VectorXd covariance = matern52(squared_distances(points_, point), length_scale_);
  const double explained = factor_.matrixL().solve(covariance).squaredNorm();
  return {mean_ + scale_ * covariance.dot(weights_),
          scale_ * std::sqrt(std::max(0.0, 1 - explained))};
}

double expected_improvement(const GaussianProcess::Prediction& prediction, double best) {
  const double gain = best - prediction.mean;
  if (!(prediction.deviation > 0)) return std::max(gain, 0.0);
  const double z = gain / prediction.deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double probability = std::erfc(-z / std::numbers::sqrt2) / 2;
  return gain * probability + prediction.deviation * density;
}

}  // namespace funcpipe
