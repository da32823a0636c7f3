#include "nn/model_check.h"

#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "nn/layer.h"
#include "nn/torch_bridge.h"

namespace funcpipe {
namespace {

using nn::Layer;
using nn::LayerValue;

constexpr std::int64_t kSamples = 2;

// A batch of zeros of what `facts` describe.
LayerValue zeros(const std::vector<TensorFacts>& facts, bool is_tuple) {
  LayerValue value({}, is_tuple);
  for (const auto& tensor : facts) {
    auto shape = tensor.shape;
    shape.insert(shape.begin(), kSamples);
    value.tensors.push_back(at::zeros(shape, nn::to_scalar_type(tensor.dtype)));
  }
  return value;
}

void check_output(const Layer& layer, const LayerValue& input, const LayerValue& output) {
  const auto& manifest = layer.manifest();
  const auto expected = zeros(manifest.outputs, manifest.output_is_tuple);
  if (output.is_tuple == expected.is_tuple &&
      nn::describe(output.tensors) == nn::describe(expected.tensors)) {
    return;
  }
  fail(
      ErrorCode::kInvalidArgument,
      "{} returns {} for {}, but the manifest says {}: the layers do not chain as exported; export "
      "the model again",
      layer.describe(), nn::describe(output.tensors), nn::describe(input.tensors),
      nn::describe(expected.tensors));
}

}  // namespace

void check_model(const ModelArchive& archive) {
  const at::NoGradGuard no_grad;
  const auto& manifest = archive.manifest();
  auto value = zeros(manifest.inputs, manifest.input_is_tuple);
  for (int i = 0; i < archive.layer_count(); ++i) {
    Layer layer(manifest.layers[static_cast<std::size_t>(i)], i, archive.layer_file(i).view());
    layer.set_training(false);
    auto output = layer.forward(value);
    check_output(layer, value, output);
    value = std::move(output);
  }
}

}  // namespace funcpipe
