#include "core/memory_estimate.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace funcpipe {
namespace {

constexpr std::uint64_t kMegabyte = 1 << 20;  // as the platforms count memory options

// Measured: resident size of a worker with Debian's libtorch 1.13 after its first convolution.
constexpr std::uint64_t kBase = 190 * kMegabyte;

std::uint64_t bytes_of(const TensorFacts& tensor) {
  return static_cast<std::uint64_t>(element_count(tensor.shape)) * size_of(tensor.dtype);
}

std::uint64_t bytes_of(const std::vector<TensorFacts>& tensors) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : tensors) bytes += bytes_of(tensor);
  return bytes;
}

// How many tensors of its output's size a layer keeps for the backward pass: one for each
// sub-module with parameters ("conv1.weight" and "conv1.bias" are one), at least one. Max pooling
// keeps 64-bit positions too.
std::uint64_t kept_outputs(const LayerManifest& layer) {
  if (layer.kind.find("MaxPool") != std::string::npos) return 3;
  std::set<std::string_view> modules;
  for (const auto& parameter : layer.parameters) {
    const std::string_view name = parameter.name;
    modules.insert(name.substr(0, name.rfind('.') == name.npos ? 0 : name.rfind('.')));
  }
  return std::max<std::uint64_t>(1, modules.size());
}

// Bytes of the outputs that are kept beside the layer's inputs. Members that look like the input's
// member at their place pass through or, without parameters, take its place (of ReLU's input and
// output one is kept). Of a layer with parameters at least the largest output is new.
std::uint64_t new_output_bytes(const LayerManifest& layer, const std::vector<TensorFacts>& inputs) {
  std::uint64_t changed = 0, largest = 0;
  for (std::size_t i = 0; i < layer.outputs.size(); ++i) {
    const auto& output = layer.outputs[i];
    const bool same = i < inputs.size() && inputs[i].shape == output.shape;
    changed += same ? 0 : bytes_of(output);
    largest = std::max(largest, bytes_of(output));
  }
  return layer.parameters.empty() ? changed : std::max(changed, largest);
}

}  // namespace

std::uint64_t MemoryEstimate::total() const {
  return base + weights + gradients + optimizer + exchange + activations + workspace;
}

std::string MemoryEstimate::describe() const {
  const std::array<std::pair<const char*, std::uint64_t>, 7> parts = {{{"libtorch", base},
                                                                       {"weights", weights},
                                                                       {"gradients", gradients},
                                                                       {"optimiser", optimizer},
                                                                       {"all-reduce", exchange},
                                                                       {"activations", activations},
                                                                       {"workspace", workspace}}};
  const auto megabytes = [](std::uint64_t bytes) { return (bytes + kMegabyte - 1) / kMegabyte; };
  auto text = fmt::format("about {} MB:", megabytes(total()));
  const char* separator = " ";
  for (const auto& [name, bytes] : parts) {
    if (bytes == 0) continue;
    text += fmt::format("{}{} {}", std::exchange(separator, ", "), name, megabytes(bytes));
  }
  return text;
}

MemoryEstimate estimate_stage_memory(const ModelManifest& manifest,
                                     const StageMemoryOptions& options) {
  MemoryEstimate estimate{.base = kBase};
  const auto micro_batch = static_cast<std::uint64_t>(options.micro_batch_size);
  const auto first = static_cast<std::size_t>(options.first_layer);
  const auto* inputs = first == 0 ? &manifest.inputs : &manifest.layers.at(first - 1).outputs;
  std::uint64_t per_sample = bytes_of(*inputs), largest_parameter = 0;
  for (auto i = first; i < static_cast<std::size_t>(options.last_layer); ++i) {
    const auto& layer = manifest.layers.at(i);
    estimate.weights += layer.parameter_bytes() + layer.buffer_bytes();
    estimate.gradients += layer.parameter_bytes();
    estimate.workspace =
        std::max(estimate.workspace, micro_batch * 2 * (bytes_of(*inputs) + layer.output_bytes()));
    for (const auto& parameter : layer.parameters) {
      largest_parameter = std::max(largest_parameter, bytes_of(parameter));
    }
    per_sample += kept_outputs(layer) * new_output_bytes(layer, *inputs);
    inputs = &layer.outputs;
  }
  estimate.optimizer = estimate.gradients *
                       static_cast<std::uint64_t>(options.optimizer.state_values_per_parameter());
  // A new gradient before it is added; Adam's update has two temporaries.
  const bool is_sgd = options.optimizer.kind == OptimizerSpec::Kind::kSgd;
  estimate.workspace = std::max(estimate.workspace, largest_parameter * (is_sgd ? 1 : 2));
  if (options.replicas > 1) estimate.exchange = estimate.gradients;
  estimate.activations =
      per_sample * micro_batch * static_cast<std::uint64_t>(options.micro_batches_in_flight);
  return estimate;
}

}  // namespace funcpipe
