#include "nn/export_result.h"

#include <memory>
#include <sstream>
#include <string>

#include <ATen/ATen.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/api/module.h>

#include "base/error.h"
#include "base/file.h"
#include "nn/layer.h"
#include "nn/stage_optimizer.h"
#include "nn/torch_bridge.h"

namespace funcpipe {
namespace {

using nn::Layer;

// "Tuple[Tensor, Tensor]" for a model that takes a tuple.
std::string input_type(const ModelManifest& manifest) {
  if (!manifest.input_is_tuple) return "Tensor";
  const std::vector<std::string> members(manifest.inputs.size(), "Tensor");
  return fmt::format("Tuple[{}]", fmt::join(members, ", "));
}

// Layers are called through getattr: their names are digits as a rule.
std::string chain_source(const ModelManifest& manifest) {
  auto source = fmt::format("def forward(self, x: {}):\n", input_type(manifest));
  std::string value = "x";
  for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
    auto next = fmt::format("x{}", i);
    source += fmt::format("    {} = getattr(self, \"{}\").forward({})\n", next,
                          manifest.layers[i].name, value);
    value = std::move(next);
  }
  return source + fmt::format("    return {}\n", value);
}

void set_weights(const Layer& layer, const nn::StateReader& weights) {
  for (const auto* list : {&layer.parameters(), &layer.buffers()}) {
    for (const auto& [name, tensor] : *list) {
      const auto value = weights.find(name, tensor.sizes().vec());
      if (!value.defined()) fail(ErrorCode::kDataLoss, "the weights lack '{}'", name);
      at::Tensor(tensor).copy_(value);
    }
  }
}

torch::jit::Module make_chain(const ModelArchive& archive, const NamedTensors& weights) {
  const nn::StateReader reader(weights);
  torch::jit::Module chain("__torch__.funcpipe.Chain",
                           std::make_shared<torch::jit::CompilationUnit>());
  chain.register_attribute("training", c10::BoolType::get(), true);
  for (int i = 0; i < archive.layer_count(); ++i) {
    const Layer layer(archive.manifest().layers[static_cast<std::size_t>(i)], i,
                      archive.layer_file(i).view());
    set_weights(layer, reader);
    chain.register_module(layer.manifest().name, layer.module());
  }
  chain.define(chain_source(archive.manifest()));
  chain.eval();
  return chain;
}

}  // namespace

void export_torchscript(const ModelArchive& archive, const NamedTensors& weights,
                        const std::filesystem::path& path) {
  const at::NoGradGuard no_grad;
  std::ostringstream out;
  try {
    make_chain(archive, weights).save(out);
  } catch (...) {
    nn::rethrow_as_error("cannot make one TorchScript archive of the model");
  }
  write_file(path, as_bytes(out.view()));
}

}  // namespace funcpipe
