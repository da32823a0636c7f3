#include "nn/input_conversion.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"
#include "nn/torch_bridge.h"

namespace funcpipe::nn {
namespace {

bool is_floating(DType dtype) { return c10::isFloatingType(to_scalar_type(dtype)); }

// `values` along the channels of a batch with `dimensions` dimensions.
at::Tensor along_channels(const std::vector<double>& values, std::int64_t dimensions) {
  const auto tensor = at::tensor(values, at::kFloat);
  if (values.size() == 1) return tensor.squeeze();
  std::vector<std::int64_t> shape(static_cast<std::size_t>(dimensions), 1);
  shape.at(1) = static_cast<std::int64_t>(values.size());
  return tensor.view(shape);
}

at::Tensor class_ids(const at::Tensor& target, std::int64_t classes) {
  const auto ids = target.to(at::kLong);
  const auto bad = (ids.lt(0) | ids.ge(classes)).nonzero();
  if (bad.numel() > 0) {
    const auto position = bad[0].item<std::int64_t>();
    fail(ErrorCode::kInvalidArgument,
         "target {} of a sample is out of range: the model has {} outputs, so classes are 0 to {}",
         ids[position].item<std::int64_t>(), classes, classes - 1);
  }
  return ids;
}

at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& target, LossTerms& terms) {
  if (output.dim() != 2 || target.dim() != 1 || output.size(0) != target.size(0) ||
      target.is_floating_point()) {
    fail(ErrorCode::kInvalidArgument,
         "cross_entropy needs outputs of shape [samples, classes] and one whole number per sample "
         "as target; got outputs {} and targets {}",
         describe({output}), describe({target}));
  }
  const auto ids = class_ids(target, output.size(1));
  terms.correct = output.detach().argmax(1).eq(ids).sum().item<std::int64_t>();
  return at::cross_entropy_loss(output, ids);
}

at::Tensor mean_squared_error(const at::Tensor& output, const at::Tensor& target) {
  if (output.numel() != target.numel() || output.size(0) != target.size(0)) {
    fail(ErrorCode::kInvalidArgument, "mse needs targets of the outputs' shape {}; got {}",
         describe({output}), describe({target}));
  }
  return at::mse_loss(output, target.to(at::kFloat).reshape(output.sizes()));
}

}  // namespace

InputConversion::InputConversion(std::vector<TensorFacts> inputs, std::vector<double> mean,
                                 std::vector<double> scale)
    : inputs_(std::move(inputs)), mean_(std::move(mean)), scale_(std::move(scale)) {
  if (mean_.empty()) return;
  if (inputs_.size() != 1 || !is_floating(inputs_.front().dtype)) {
    fail(ErrorCode::kInvalidArgument,
         "normalize needs a model with one floating-point input; leave it out");
  }
  const auto& shape = inputs_.front().shape;
  const auto channels = shape.empty() ? 1 : shape.front();
  if (mean_.size() != 1 && static_cast<std::int64_t>(mean_.size()) != channels) {
    fail(ErrorCode::kInvalidArgument,
         "normalize gives {} values, but the model's input has shape {}: give one value, or {}, "
         "one for each channel",
         mean_.size(), to_string(shape), channels);
  }
}

at::Tensor InputConversion::convert(const at::Tensor& tensor, const TensorFacts& facts) const {
  if (tensor.sizes().slice(1) != facts.shape) {
    fail(ErrorCode::kInvalidArgument, "a record of the dataset has shape {}, the model takes {}",
         to_string(tensor.sizes().slice(1).vec()), to_string(facts.shape));
  }
  auto result = tensor.to(to_scalar_type(facts.dtype));
  if (tensor.scalar_type() == at::kByte && is_floating(facts.dtype)) result.div_(255);
  if (mean_.empty()) return result;
  return (result - along_channels(mean_, result.dim())) / along_channels(scale_, result.dim());
}

void InputConversion::apply(std::vector<at::Tensor>& batch) const {
  if (batch.size() != inputs_.size()) {
    fail(ErrorCode::kInvalidArgument, "a record of the dataset has {} inputs, the model takes {}",
         batch.size(), inputs_.size());
  }
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i] = convert(batch[i], inputs_[i]);
}

at::Tensor weighted_loss(LossKind kind, const at::Tensor& output, const at::Tensor& target,
                         double weight, LossTerms& terms) {
  const auto loss = kind == LossKind::kCrossEntropy ? cross_entropy(output, target, terms)
                                                    : mean_squared_error(output, target);
  terms.mean_loss = loss.item<double>();
  return loss * weight;
}

}  // namespace funcpipe::nn
