#include "nn/module_blueprint.h"

#include <array>
#include <cmath>

#include <fmt/core.h>

#include "base/error.h"

namespace funcpipe::nn {
namespace {

using Fill = TensorBlueprint::Fill;

// torch.nn's rule for linear and convolution layers: kaiming_uniform with a = sqrt(5) is uniform
// within 1 / sqrt(fan_in), and so is the bias.
TensorBlueprint uniform(std::string name, Shape shape, std::int64_t fan_in) {
  return {std::move(name), std::move(shape), Fill::kUniform,
          1 / std::sqrt(static_cast<double>(fan_in))};
}

ModuleBlueprint stateless(std::string kind, std::string_view expression) {
  return {.kind = std::move(kind),
          .forward = fmt::format("def forward(self, x):\n    return {}\n", expression)};
}

bool needs_projection(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return in != out || stride != 1;
}

ModuleBlueprint projection(std::int64_t in, std::int64_t out, std::int64_t stride) {
  const ConvolutionShape shape{.in = in, .out = out, .kernel = 1, .stride = stride, .bias = false};
  return {.kind = "Shortcut",
          .forward = "def forward(self, x):\n    return self.bn.forward(self.conv.forward(x))\n",
          .children = {{"conv", convolution(shape)}, {"bn", batch_norm(out)}}};
}

ModuleBlueprint fork() {
  return {.kind = "Fork",
          .forward = "def forward(self, x) -> Tuple[Tensor, Tensor]:\n    return x, x\n"};
}

ModuleBlueprint beside(ModuleBlueprint module) {
  return {.kind = "Beside" + module.kind,
          .forward =
              "def forward(self, x: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:\n"
              "    return self.main.forward(x[0]), x[1]\n",
          .children = {{"main", std::move(module)}}};
}

ModuleBlueprint join(std::int64_t in, std::int64_t out, std::int64_t stride) {
  const bool projected = needs_projection(in, out, stride);
  ModuleBlueprint module{.kind = "Join"};
  module.forward = fmt::format(
      "def forward(self, x: Tuple[Tensor, Tensor]):\n    return torch.relu(x[0] + {})\n",
      projected ? "self.shortcut.forward(x[1])" : "x[1]");
  if (projected) module.children = {{"shortcut", projection(in, out, stride)}};
  return module;
}

ConvolutionShape first_convolution(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return {.in = in, .out = out, .kernel = 3, .stride = stride, .padding = 1, .bias = false};
}

}  // namespace

ModuleBlueprint linear(std::int64_t in, std::int64_t out) {
  auto module = stateless("Linear", "torch.linear(x, self.weight, self.bias)");
  module.parameters = {uniform("weight", {out, in}, in), uniform("bias", {out}, in)};
  return module;
}

ModuleBlueprint convolution(const ConvolutionShape& shape) {
  auto module = stateless(
      "Conv2d", fmt::format("torch.conv2d(x, self.weight, {0}, [{1}, {1}], [{2}, {2}], [1, 1], 1)",
                            shape.bias ? "self.bias" : "None", shape.stride, shape.padding));
  const auto fan_in = shape.in * shape.kernel * shape.kernel;
  module.parameters = {
      uniform("weight", {shape.out, shape.in, shape.kernel, shape.kernel}, fan_in)};
  if (shape.bias) module.parameters.push_back(uniform("bias", {shape.out}, fan_in));
  return module;
}

ModuleBlueprint batch_norm(std::int64_t channels) {
  return {.kind = "BatchNorm2d",
          .forward =
              "def forward(self, x):\n"
              "    if self.training:\n"
              "        self.num_batches_tracked.add_(1)\n"
              "    return torch.batch_norm(x, self.weight, self.bias, self.running_mean,\n"
              "                            self.running_var, self.training, 0.1, 1e-05, "
              "True)\n",
          .parameters = {{"weight", {channels}, Fill::kOnes}, {"bias", {channels}}},
          .buffers = {{"running_mean", {channels}},
                      {"running_var", {channels}, Fill::kOnes},
                      {"num_batches_tracked", {}, Fill::kZeros, 0, DType::kInt64}}};
}

ModuleBlueprint activation(const std::string& name) {
  static constexpr std::array<std::array<const char*, 3>, 4> kKnown = {
      {{"relu", "ReLU", "torch.relu(x)"},
       {"tanh", "Tanh", "torch.tanh(x)"},
       {"sigmoid", "Sigmoid", "torch.sigmoid(x)"},
       {"gelu", "GELU", "torch.gelu(x)"}}};
  for (const auto& [key, kind, expression] : kKnown) {
    if (name == key) return stateless(kind, expression);
  }
  fail(ErrorCode::kInvalidArgument, "'{}' is not an activation; choose relu, tanh, sigmoid or gelu",
       name);
}

ModuleBlueprint dropout(double probability) {
  return stateless("Dropout", fmt::format("torch.dropout(x, {:.17g}, self.training)", probability));
}

ModuleBlueprint max_pool(std::int64_t size) {
  return stateless("MaxPool2d", fmt::format("torch.max_pool2d(x, [{0}, {0}], [{0}, {0}])", size));
}

ModuleBlueprint flatten() { return stateless("Flatten", "torch.flatten(x, 1)"); }

ModuleBlueprint global_average_pool() {
  return stateless("AdaptiveAvgPool2d", "torch.adaptive_avg_pool2d(x, [1, 1])");
}

ModuleBlueprint basic_block(std::int64_t in, std::int64_t out, std::int64_t stride) {
  const bool projected = needs_projection(in, out, stride);
  ModuleBlueprint module{.kind = "BasicBlock"};
  module.forward = fmt::format(
      "def forward(self, x):\n"
      "    h = torch.relu(self.bn1.forward(self.conv1.forward(x)))\n"
      "    h = self.bn2.forward(self.conv2.forward(h))\n"
      "    return torch.relu(h + {})\n",
      projected ? "self.shortcut.forward(x)" : "x");
  module.children = {{"conv1", convolution(first_convolution(in, out, stride))},
                     {"bn1", batch_norm(out)},
                     {"conv2", convolution(first_convolution(out, out, 1))},
                     {"bn2", batch_norm(out)}};
  if (projected) module.children.emplace_back("shortcut", projection(in, out, stride));
  return module;
}

std::vector<ModuleBlueprint> basic_block_layers(std::int64_t in, std::int64_t out,
                                                std::int64_t stride) {
  return {fork(),
          beside(convolution(first_convolution(in, out, stride))),
          beside(batch_norm(out)),
          beside(activation("relu")),
          beside(convolution(first_convolution(out, out, 1))),
          beside(batch_norm(out)),
          join(in, out, stride)};
}

}  // namespace funcpipe::nn
