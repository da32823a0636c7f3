// One layer of the chain as a TorchScript module. Only for src/nn.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "core/manifest.h"

namespace at {
class Tensor;
}
namespace torch::jit {
struct Module;
}

namespace funcpipe::nn {

using NamedTorchTensors = std::vector<std::pair<std::string, at::Tensor>>;

// A tensor or a tuple of tensors: what layers take and give.
struct LayerValue {
  std::vector<at::Tensor> tensors;
  bool is_tuple = false;
  LayerValue();
  LayerValue(std::vector<at::Tensor> members, bool tuple);
  LayerValue(const LayerValue&);
  LayerValue(LayerValue&&) noexcept;
  LayerValue& operator=(LayerValue&&) noexcept;
  ~LayerValue();
};

// Not thread-safe. Errors of libtorch come out as Error naming the layer.
class Layer {
 public:
  // Throws Error(kDataLoss) when the file is no TorchScript archive or does not hold the tensors
  // the manifest lists, kInvalidArgument for floating-point tensors other than float32 and for
  // tensors that share memory. `index` counts in the whole model.
  Layer(LayerManifest manifest, int index, ByteView file);
  ~Layer();
  Layer(Layer&&) noexcept;

  LayerValue forward(const LayerValue& input);
  void set_training(bool training);

  // Under their names in the whole model ("3.conv1.weight"); the tensors are the layer's own.
  const NamedTorchTensors& parameters() const;
  const NamedTorchTensors& buffers() const;

  // Whether forward writes into its input (ReLU(inplace=True)), and whether its output may share
  // memory with it (Flatten), by TorchScript's alias analysis.
  bool writes_input() const { return writes_input_; }
  bool may_alias_input() const { return may_alias_input_; }

  int index() const { return index_; }
  const LayerManifest& manifest() const { return manifest_; }
  const torch::jit::Module& module() const { return *module_; }
  std::string describe() const;  // "layer 3 ('3', Conv2d)"

 private:
  void check_tensors() const;
  void analyse_aliases();

  LayerManifest manifest_;
  int index_;
  std::unique_ptr<torch::jit::Module> module_;
  std::unique_ptr<NamedTorchTensors> parameters_, buffers_;
  bool writes_input_ = true;
  bool may_alias_input_ = true;
};

}  // namespace funcpipe::nn
