#include "nn/stage_optimizer.h"

#include <tuple>

#include <ATen/ATen.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "base/error.h"
#include "nn/torch_bridge.h"

namespace funcpipe::nn {
namespace {

using torch::optim::OptimizerParamState;

template <typename Options>
Options adam_options(const OptimizerSpec& spec) {
  return Options(spec.learning_rate)
      .betas(std::tuple(spec.beta1, spec.beta2))
      .eps(spec.epsilon)
      .weight_decay(spec.weight_decay);
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerSpec& spec,
                                                        std::vector<at::Tensor> parameters) {
  switch (spec.kind) {
    case OptimizerSpec::Kind::kSgd:
      return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                                 torch::optim::SGDOptions(spec.learning_rate)
                                                     .momentum(spec.momentum)
                                                     .dampening(spec.dampening)
                                                     .weight_decay(spec.weight_decay)
                                                     .nesterov(spec.nesterov));
    case OptimizerSpec::Kind::kAdam:
      return std::make_unique<torch::optim::Adam>(std::move(parameters),
                                                  adam_options<torch::optim::AdamOptions>(spec));
    case OptimizerSpec::Kind::kAdamW:
      return std::make_unique<torch::optim::AdamW>(std::move(parameters),
                                                   adam_options<torch::optim::AdamWOptions>(spec));
  }
  fail(ErrorCode::kInternal, "unknown optimizer kind {}", static_cast<int>(spec.kind));
}

// torch::optim's own key of a parameter's state.
std::string key_of(const at::Tensor& parameter) {
  return c10::guts::to_string(parameter.unsafeGetTensorImpl());
}

std::string name_of(std::string_view what, const std::string& parameter) {
  return fmt::format("optimizer/{}/{}", what, parameter);
}

void add_state(const torch::optim::SGDParamState& state, const std::string& name,
               NamedTorchTensors& out) {
  if (state.momentum_buffer().defined()) {
    out.emplace_back(name_of("momentum_buffer", name), state.momentum_buffer());
  }
}

template <typename AdamState>
void add_state(const AdamState& state, const std::string& name, NamedTorchTensors& out) {
  out.emplace_back(name_of("step", name), at::scalar_tensor(state.step(), at::kLong));
  out.emplace_back(name_of("exp_avg", name), state.exp_avg());
  out.emplace_back(name_of("exp_avg_sq", name), state.exp_avg_sq());
}

std::unique_ptr<OptimizerParamState> load_sgd(const std::string& name, const at::Tensor& parameter,
                                              const StateReader& reader) {
  const auto buffer = reader.find(name_of("momentum_buffer", name), parameter.sizes().vec());
  if (!buffer.defined()) return nullptr;
  auto state = std::make_unique<torch::optim::SGDParamState>();
  state->momentum_buffer(buffer.clone());
  return state;
}

template <typename AdamState>
std::unique_ptr<OptimizerParamState> load_adam(const std::string& name, const at::Tensor& parameter,
                                               const StateReader& reader) {
  const auto step = reader.find(name_of("step", name), {});
  if (!step.defined()) return nullptr;
  const auto required = [&](std::string_view what) {
    auto tensor = reader.find(name_of(what, name), parameter.sizes().vec());
    if (!tensor.defined()) fail(ErrorCode::kDataLoss, "the state lacks '{}'", name_of(what, name));
    return tensor.clone();
  };
  auto state = std::make_unique<AdamState>();
  state->step(step.item<std::int64_t>());
  state->exp_avg(required("exp_avg"));
  state->exp_avg_sq(required("exp_avg_sq"));
  return state;
}

}  // namespace

StateReader::StateReader(const NamedTensors& state) : state_(state) {
  for (const auto& named : state.tensors) by_name_.emplace(named.name, &named.tensor);
}

at::Tensor StateReader::find(const std::string& name, const Shape& shape) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return {};
  if (found->second->shape != shape) {
    fail(ErrorCode::kDataLoss, "the state holds '{}' with shape {}, but the model needs {}", name,
         to_string(found->second->shape), to_string(shape));
  }
  return to_tensor(*found->second, state_.owner);
}

StageOptimizer::StageOptimizer(const OptimizerSpec& spec, NamedTorchTensors parameters)
    : spec_(spec), parameters_(std::make_unique<NamedTorchTensors>(std::move(parameters))) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : *parameters_) tensors.push_back(tensor);
  if (!tensors.empty()) optimizer_ = make_optimizer(spec_, std::move(tensors));
}

StageOptimizer::~StageOptimizer() = default;

void StageOptimizer::step(double learning_rate) {
  if (!optimizer_) return;
  for (auto& group : optimizer_->param_groups()) group.options().set_lr(learning_rate);
  optimizer_->step();
}

NamedTorchTensors StageOptimizer::state() const {
  NamedTorchTensors out;
  for (const auto& [name, tensor] : *parameters_) {
    const auto found = optimizer_->state().find(key_of(tensor));
    if (found == optimizer_->state().end()) continue;
    if (const auto* sgd = dynamic_cast<torch::optim::SGDParamState*>(found->second.get())) {
      add_state(*sgd, name, out);
    } else if (const auto* adam =
                   dynamic_cast<torch::optim::AdamParamState*>(found->second.get())) {
      add_state(*adam, name, out);
    } else {
      add_state(dynamic_cast<const torch::optim::AdamWParamState&>(*found->second), name, out);
    }
  }
  return out;
}

void StageOptimizer::load_state(const StateReader& reader) {
  for (const auto& [name, tensor] : *parameters_) {
    std::unique_ptr<OptimizerParamState> state;
    switch (spec_.kind) {
      case OptimizerSpec::Kind::kSgd:
        state = load_sgd(name, tensor, reader);
        break;
      case OptimizerSpec::Kind::kAdam:
        state = load_adam<torch::optim::AdamParamState>(name, tensor, reader);
        break;
      case OptimizerSpec::Kind::kAdamW:
        state = load_adam<torch::optim::AdamWParamState>(name, tensor, reader);
        break;
    }
    optimizer_->state().erase(key_of(tensor));
    if (state) optimizer_->state()[key_of(tensor)] = std::move(state);
  }
}

}  // namespace funcpipe::nn
