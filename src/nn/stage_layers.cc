#include "nn/stage_layers.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include "core/batching.h"

namespace funcpipe::nn {
namespace {

// For each layer: whether it or one after it writes into its input, as the first one, or after
// layers that pass their input through (Flatten).
std::vector<bool> who_writes_leaves(const std::vector<Layer>& layers) {
  std::vector<bool> result(layers.size());
  bool next = false;
  for (auto i = layers.size(); i-- > 0;) {
    next = layers[i].writes_input() || (layers[i].may_alias_input() && next);
    result[i] = next;
  }
  return result;
}

template <typename Predicate>
void append_if(const NamedTorchTensors& from, NamedTorchTensors& to, Predicate predicate) {
  std::copy_if(from.begin(), from.end(), std::back_inserter(to),
               [&](const auto& named) { return predicate(named.second); });
}

using GraphNodes = std::set<torch::autograd::Node*>;

// The functions of the autograd graph that gave these tensors.
GraphNodes nodes_of(const LayerValue& value) {
  GraphNodes nodes;
  for (const auto& tensor : value.tensors) {
    if (const auto& node = tensor.grad_fn()) nodes.insert(node.get());
  }
  return nodes;
}

class BackwardHook final : public torch::autograd::FunctionPreHook {
 public:
  BackwardHook(StageObserver& observer, std::size_t layer) : observer_(observer), layer_(layer) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    observer_.backward_begins(layer_);
    return gradients;
  }

 private:
  StageObserver& observer_;
  std::size_t layer_;
};

// The engine runs the functions of later layers first, so the first of a layer's own ones to run
// tells that it is the layer's turn.
void watch_backward(const LayerValue& output, const GraphNodes& known, StageObserver& observer,
                    std::size_t layer) {
  for (auto* node : nodes_of(output)) {
    if (!known.contains(node)) node->add_pre_hook(std::make_unique<BackwardHook>(observer, layer));
  }
}

}  // namespace

StageLayers::StageLayers(std::vector<Layer> layers, std::uint64_t seed, StageObserver* observer)
    : layers_(std::move(layers)),
      seed_(seed),
      writes_leaves_(who_writes_leaves(layers_)),
      observer_(observer) {
  for (auto& layer : layers_) layer.set_training(false);
}

NamedTorchTensors StageLayers::trained_parameters() const {
  NamedTorchTensors result;
  for (const auto& layer : layers_) {
    append_if(layer.parameters(), result,
              [](const auto& tensor) { return tensor.requires_grad(); });
  }
  return result;
}

NamedTorchTensors StageLayers::floating_point_buffers() const {
  NamedTorchTensors result;
  for (const auto& layer : layers_) {
    append_if(layer.buffers(), result,
              [](const auto& tensor) { return tensor.is_floating_point(); });
  }
  return result;
}

std::size_t StageLayers::trained_values(std::size_t layer) const {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : layers_.at(layer).parameters()) {
    if (tensor.requires_grad()) count += tensor.numel();
  }
  return static_cast<std::size_t>(count);
}

std::vector<at::Tensor> StageLayers::copy_of_buffers() const {
  std::vector<at::Tensor> copies;
  for (const auto& layer : layers_) {
    for (const auto& [name, buffer] : layer.buffers()) copies.push_back(buffer.clone());
  }
  return copies;
}

// Past the version counter: graphs hold on to running statistics, without using them.
void StageLayers::restore_buffers(const std::vector<at::Tensor>& copies) const {
  auto copy = copies.begin();
  for (const auto& layer : layers_) {
    for (const auto& [name, buffer] : layer.buffers()) buffer.variable_data().copy_(*copy++);
  }
}

NamedTorchTensors StageLayers::all_tensors() const {
  NamedTorchTensors result;
  for (const auto& layer : layers_) {
    for (const auto* list : {&layer.parameters(), &layer.buffers()}) {
      result.insert(result.end(), list->begin(), list->end());
    }
  }
  return result;
}

void StageLayers::set_training(bool training) {
  if (is_training_ == training) return;
  for (auto& layer : layers_) layer.set_training(training);
  is_training_ = training;
}

// In-place layers throw on a leaf, and would change bytes that belong to someone else.
LayerValue StageLayers::working_copy(const LayerValue& leaves, std::size_t first_layer) const {
  auto copy = leaves;
  if (!writes_leaves_.at(first_layer)) return copy;
  const auto& originals = leaves.tensors;
  for (std::size_t i = 0; i < originals.size(); ++i) {
    const auto first = static_cast<std::size_t>(
        std::find_if(originals.begin(), originals.end(),
                     [&](const auto& other) { return other.is_same(originals[i]); }) -
        originals.begin());
    copy.tensors[i] = first < i ? copy.tensors[first] : originals[i].clone();
  }
  return copy;
}

LayerValue StageLayers::run(const MicroBatchContext& context, const LayerValue& leaves,
                            std::size_t first, std::size_t last) {
  set_training(context.training);
  auto value = working_copy(leaves, first);
  auto* observer = context.training ? observer_ : nullptr;
  for (auto i = first; i < last; ++i) {
    auto& layer = layers_[i];
    const auto known = observer ? nodes_of(value) : GraphNodes();
    if (observer) observer->forward_begins(i);
    if (context.training) {
      at::manual_seed(dropout_seed(seed_, context.step, context.micro_batch.index, layer.index()));
    }
    value = layer.forward(value);
    if (!observer) continue;
    observer->forward_ends(i, value);
    watch_backward(value, known, *observer, i);
  }
  return value;
}

}  // namespace funcpipe::nn
