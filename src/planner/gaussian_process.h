// Gaussian-process regression with a Matern 5/2 kernel (Rasmussen and Williams 2006, algorithm
// 2.1).
#pragma once

#include <Eigen/Dense>

namespace funcpipe {

// Not thread-safe while fit() runs.
class GaussianProcess {
 public:
  struct Prediction {
    double mean = 0;
    double deviation = 0;
  };

  // `points`: one in each column. Values are standardised; the length scale, of all dimensions
  // alike, and the noise are those of greatest marginal likelihood among a few.
  void fit(const Eigen::MatrixXd& points, const Eigen::VectorXd& values);

  // After fit(): what it holds for likely at this point, in the units of the values.
  Prediction predict(const Eigen::VectorXd& point) const;

  double length_scale() const { return length_scale_; }

 private:
  // Log marginal likelihood, but for a constant.
  double factorise(double length_scale, double noise);

  Eigen::MatrixXd points_;
  Eigen::VectorXd values_;  // standardised
  double mean_ = 0, scale_ = 1;
  double length_scale_ = 1;
  Eigen::LLT<Eigen::MatrixXd> factor_;
  Eigen::VectorXd weights_;
};

// How much lower than `best` the value at a point is expected to be (Jones et al. 1998).
double expected_improvement(const GaussianProcess::Prediction& prediction, double best);

}  // namespace funcpipe
