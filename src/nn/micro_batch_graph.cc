#include "nn/micro_batch_graph.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/error.h"
#include "nn/torch_bridge.h"

namespace funcpipe::nn {
namespace {

using Tensors = std::vector<at::Tensor>;

std::size_t first_same(const Tensors& tensors, std::size_t index) {
  const auto same = std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) {
    return tensor.is_same(tensors[index]);
  });
  return static_cast<std::size_t>(same - tensors.begin());
}

// The same values as leaves of a new graph; a member that occurs twice is one leaf.
LayerValue cut_off(const LayerValue& value) {
  LayerValue leaves = value;
  for (std::size_t i = 0; i < value.tensors.size(); ++i) {
    const auto first = first_same(value.tensors, i);
    leaves.tensors[i] =
        first < i ? leaves.tensors[first]
                  : value.tensors[i].detach().set_requires_grad(value.tensors[i].requires_grad());
  }
  return leaves;
}

// Leaves that wait for a gradient; the others need not be kept.
Tensors waiting(Tensors leaves) {
  for (auto& leaf : leaves)
    if (!leaf.requires_grad()) leaf = at::Tensor();
  return leaves;
}

Tensors gradients_of(const Tensors& inputs) {
  Tensors gradients;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool counts = inputs[i].defined() && first_same(inputs, i) == i;
    gradients.push_back(counts ? inputs[i].grad() : at::Tensor());
  }
  return gradients;
}

void run_backward(const Tensors& outputs, const Tensors& gradients, const Layer& last_layer) {
  Tensors roots, root_gradients;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad() || first_same(outputs, i) < i || !gradients[i].defined())
      continue;
    roots.push_back(outputs[i]);
    root_gradients.push_back(gradients[i]);
  }
  if (roots.empty()) return;
  try {
    torch::autograd::backward(roots, root_gradients);
  } catch (...) {
    rethrow_as_error(fmt::format("backward from {}", last_layer.describe()));
  }
}

}  // namespace

MicroBatchGraph::MicroBatchGraph(StageLayers& layers, const MicroBatchContext& context,
                                 LayerValue leaves, const std::vector<std::size_t>& cuts)
    : output_(std::move(leaves)) {
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const auto first = i == 0 ? 0 : cuts[i - 1];
    const auto last = i < cuts.size() ? cuts[i] : layers.layers().size();
    auto inputs = i == 0 ? output_ : cut_off(output_);
    output_ = layers.run(context, inputs, first, last);
    segments_.push_back(
        {waiting(std::move(inputs.tensors)), output_.tensors, &layers.layers()[last - 1]});
  }
}

void MicroBatchGraph::end_in(at::Tensor loss) {
  has_loss_ = true;
  segments_.back().outputs = {std::move(loss)};
}

void MicroBatchGraph::backward(std::vector<at::Tensor> gradients) {
  if (segments_.empty()) fail(ErrorCode::kInternal, "backward beyond the first segment of a stage");
  const auto segment = std::move(segments_.back());
  segments_.pop_back();
  if (!output_.tensors.empty()) {
    gradients_ = has_loss_ ? Tensors{at::ones({})} : std::move(gradients);
    output_ = {};
  }
  if (gradients_.size() != segment.outputs.size()) {
    fail(ErrorCode::kInvalidArgument, "{} gradients came back for {} outputs of {}",
         gradients_.size(), segment.outputs.size(), segment.last_layer->describe());
  }
  run_backward(segment.outputs, gradients_, *segment.last_layer);
  gradients_ = gradients_of(segment.inputs);
}

}  // namespace funcpipe::nn
