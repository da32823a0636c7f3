#include "core/memory_estimate.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace funcpipe {
namespace {

constexpr std::uint64_t kMegabyte = 1 << 20;  // as the platforms count memory options

// Measured: resident size of a worker with Debian's libtorch 1.13 after its first convolution.
constexpr std::uint64_t kBase = 190 * kMegabyte;

std::uint64_t bytes_of(const std::vector<TensorFacts>& tensors) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : tensors) {
    bytes += static_cast<std::uint64_t>(element_count(tensor.shape)) * size_of(tensor.dtype);
  }
  return bytes;
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
  std::uint64_t input =
      first == 0 ? bytes_of(manifest.inputs) : manifest.layers.at(first - 1).output_bytes();
  std::uint64_t per_sample = input;
  for (auto i = first; i < static_cast<std::size_t>(options.last_layer); ++i) {
    const auto& layer = manifest.layers.at(i);
    const auto output = layer.output_bytes();
    estimate.weights += layer.parameter_bytes() + layer.buffer_bytes();
    estimate.gradients += layer.parameter_bytes();
    estimate.workspace = std::max(estimate.workspace, micro_batch * 2 * (input + output));
    per_sample += output;
    input = output;
  }
  estimate.optimizer = estimate.gradients *
                       static_cast<std::uint64_t>(options.optimizer.state_values_per_parameter());
  if (options.replicas > 1) estimate.exchange = estimate.gradients;
  estimate.activations =
      per_sample * micro_batch * static_cast<std::uint64_t>(options.micro_batches_in_flight);
  return estimate;
}

}  // namespace funcpipe
