// From records as a dataset holds them to what a model and its loss take. Only for src/nn.
#pragma once

#include <cstdint>
#include <vector>

#include "core/job.h"
#include "core/manifest.h"

namespace at {
class Tensor;
}

namespace funcpipe::nn {

// Inputs of the first stage: each to the type the model takes (bytes become value / 255 where that
// is a floating-point type); then (x - mean) / scale, with one value or one per channel (the first
// dimension of a record). Integer inputs are left as they are.
class InputConversion {
 public:
  // Throws Error(kInvalidArgument) when mean and scale do not fit the inputs.
  InputConversion(std::vector<TensorFacts> inputs, std::vector<double> mean,
                  std::vector<double> scale);
  // Throws Error(kInvalidArgument) when a record's shape is not the model's.
  void apply(std::vector<at::Tensor>& batch) const;

 private:
  at::Tensor convert(const at::Tensor& tensor, const TensorFacts& facts) const;

  std::vector<TensorFacts> inputs_;
  std::vector<double> mean_, scale_;
};

struct LossTerms {
  double mean_loss;      // over the samples of the micro-batch
  std::int64_t correct;  // classification
};

// The mean loss over a micro-batch as a scalar on the autograd graph, times `weight`; its plain
// values go to `terms`. Throws Error(kInvalidArgument) when outputs and targets do not fit, or a
// class is out of range.
at::Tensor weighted_loss(LossKind kind, const at::Tensor& output, const at::Tensor& target,
                         double weight, LossTerms& terms);

}  // namespace funcpipe::nn
