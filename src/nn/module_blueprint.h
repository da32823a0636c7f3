// Layers of the built-in models as plain data: TorchScript source, tensors and sub-modules. No
// libtorch here; module_builder.h makes TorchScript modules of them.
//
// Names and initial values are those of the torch.nn modules of the same kind.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace funcpipe::nn {

struct TensorBlueprint {
  enum class Fill { kZeros, kOnes, kUniform };
  std::string name;
  Shape shape;
  Fill fill = Fill::kZeros;
  double bound = 0;  // kUniform: values are uniform in [-bound, bound)
  DType dtype = DType::kFloat32;
};

struct ModuleBlueprint {
  std::string kind = {};     // class name, for people
  std::string forward = {};  // TorchScript: "def forward(self, x): ..."
  std::vector<TensorBlueprint> parameters = {};
  std::vector<TensorBlueprint> buffers = {};
  std::vector<std::pair<std::string, ModuleBlueprint>> children = {};
};

struct ConvolutionShape {
  std::int64_t in = 1, out = 1, kernel = 3, stride = 1, padding = 0;
  bool bias = true;
};

ModuleBlueprint linear(std::int64_t in, std::int64_t out);
ModuleBlueprint convolution(const ConvolutionShape& shape);
ModuleBlueprint batch_norm(std::int64_t channels);
ModuleBlueprint activation(const std::string& name);  // relu, tanh, sigmoid, gelu
ModuleBlueprint dropout(double probability);
ModuleBlueprint max_pool(std::int64_t size);
ModuleBlueprint flatten();
ModuleBlueprint global_average_pool();

// relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)): He et al. 2016, as one layer. The shortcut
// is a 1x1 convolution with batch norm where shapes differ, else nothing.
ModuleBlueprint basic_block(std::int64_t in, std::int64_t out, std::int64_t stride);

// The same block as a run of layers, the skip connection as the second member of a tuple:
//   fork: x -> (x, x)    beside(m): (x, s) -> (m(x), s)    join: (x, s) -> relu(x + shortcut(s))
std::vector<ModuleBlueprint> basic_block_layers(std::int64_t in, std::int64_t out,
                                                std::int64_t stride);

}  // namespace funcpipe::nn
