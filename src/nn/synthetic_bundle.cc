#include "nn/synthetic_bundle.h"

#include <ATen/ATen.h>

#include "nn/torch_bridge.h"

namespace funcpipe {

TensorBundle synthetic_bundle(const std::vector<TensorFacts>& outputs, bool is_tuple,
                              std::int64_t samples) {
  std::vector<at::Tensor> tensors;
  for (const auto& facts : outputs) {
    auto shape = facts.shape;
    shape.insert(shape.begin(), samples);
    const auto type = nn::to_scalar_type(facts.dtype);
    auto tensor = at::zeros(shape, type);
    if (c10::isFloatingType(type)) tensor.normal_().set_requires_grad(true);
    tensors.push_back(std::move(tensor));
  }
  return nn::to_bundle(tensors, is_tuple);
}

}  // namespace funcpipe
