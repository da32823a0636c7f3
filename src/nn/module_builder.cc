#include "nn/module_builder.h"

#include <memory>
#include <sstream>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/jit/api/module.h>

#include "base/rng.h"
#include "core/batching.h"
#include "nn/layer.h"
#include "nn/torch_bridge.h"

namespace funcpipe::nn {
namespace {

using torch::jit::Module;

at::Tensor make_tensor(const TensorBlueprint& blueprint, at::Generator& generator) {
  auto tensor = at::zeros(blueprint.shape, to_scalar_type(blueprint.dtype));
  if (blueprint.fill == TensorBlueprint::Fill::kOnes) tensor.fill_(1);
  if (blueprint.fill == TensorBlueprint::Fill::kUniform) {
    tensor.uniform_(-blueprint.bound, blueprint.bound, generator);
  }
  return tensor;
}

Module make_module(const ModuleBlueprint& blueprint,
                   const std::shared_ptr<torch::jit::CompilationUnit>& unit,
                   at::Generator& generator) {
  Module module("__torch__.funcpipe." + blueprint.kind, unit, /*shouldMangle=*/true);
  module.register_attribute("training", c10::BoolType::get(), true);
  for (const auto& parameter : blueprint.parameters) {
    module.register_parameter(parameter.name,
                              make_tensor(parameter, generator).set_requires_grad(true),
                              /*is_buffer=*/false);
  }
  for (const auto& buffer : blueprint.buffers) {
    module.register_buffer(buffer.name, make_tensor(buffer, generator));
  }
  for (const auto& [name, child] : blueprint.children) {
    module.register_module(name, make_module(child, unit, generator));
  }
  module.define(blueprint.forward);
  return module;
}

Buffer build_layer_file(const ModuleBlueprint& blueprint, std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  const auto unit = std::make_shared<torch::jit::CompilationUnit>();
  std::ostringstream out;
  make_module(blueprint, unit, generator).save(out);
  return Buffer::copy_of(as_bytes(out.view()));
}

void add_facts(const ModuleBlueprint& blueprint, const std::string& prefix, LayerManifest& layer) {
  for (const auto& tensor : blueprint.parameters) {
    layer.parameters.push_back({prefix + tensor.name, tensor.dtype, tensor.shape});
  }
  for (const auto& tensor : blueprint.buffers) {
    layer.buffers.push_back({prefix + tensor.name, tensor.dtype, tensor.shape});
  }
  for (const auto& [name, child] : blueprint.children) {
    add_facts(child, prefix + name + ".", layer);
  }
}

LayerManifest describe_layer(const ModuleBlueprint& blueprint, int index) {
  LayerManifest layer;
  layer.name = std::to_string(index);
  layer.kind = blueprint.kind;
  layer.file = fmt::format("layer_{:03}.pt", index);
  layer.export_method = "built-in";
  add_facts(blueprint, "", layer);
  return layer;
}

// Runs the layer on `value` (a batch of two samples) and notes what comes out.
LayerValue trace_shapes(LayerManifest& manifest, int index, const Buffer& file,
                        const LayerValue& value) {
  Layer layer(manifest, index, file.view());
  layer.set_training(false);
  auto output = layer.forward(value);
  manifest.output_is_tuple = output.is_tuple;
  for (const auto& tensor : output.tensors) {
    manifest.outputs.push_back({"", to_dtype(tensor.scalar_type()), tensor.sizes().slice(1).vec()});
  }
  return output;
}

}  // namespace

ModelArchive build_model(std::string name, TensorFacts input,
                         const std::vector<ModuleBlueprint>& layers, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  auto batch_shape = input.shape;
  batch_shape.insert(batch_shape.begin(), 2);
  LayerValue value({at::zeros(batch_shape, to_scalar_type(input.dtype))}, false);
  ModelManifest manifest;
  manifest.name = std::move(name);
  manifest.inputs = {std::move(input)};
  std::vector<Buffer> files;
  for (const auto& blueprint : layers) {
    const auto index = static_cast<int>(files.size());
    const auto stream = static_cast<std::uint64_t>(RandomStream::kInitialise);
    files.push_back(build_layer_file(
        blueprint, derive_seed(seed, {stream, static_cast<std::uint64_t>(index)})));
    auto layer = describe_layer(blueprint, index);
    value = trace_shapes(layer, index, files.back(), value);
    manifest.layers.push_back(std::move(layer));
  }
  return ModelArchive(std::move(manifest), std::move(files));
}

}  // namespace funcpipe::nn
