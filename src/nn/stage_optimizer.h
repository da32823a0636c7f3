// The update rule of a stage: torch::optim behind the job's OptimizerSpec, with its state under
// names that do not depend on how the model is cut. Only for src/nn.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/job.h"
#include "nn/layer.h"

namespace torch::optim {
class Optimizer;
}

namespace funcpipe::nn {

// Named tensors by name. Borrows `state`.
class StateReader {
 public:
  explicit StateReader(const NamedTensors& state);
  // Undefined when there is none. Throws Error(kDataLoss) when it has another shape.
  at::Tensor find(const std::string& name, const Shape& shape) const;

 private:
  const NamedTensors& state_;
  std::map<std::string_view, const TensorView*> by_name_;
};

class StageOptimizer {
 public:
  // The parameters keep their .grad defined from before the first step on.
  StageOptimizer(const OptimizerSpec& spec, NamedTorchTensors parameters);
  ~StageOptimizer();

  void step(double learning_rate);

  // "optimizer/<what>/<parameter>" -> value, in the parameters' order. <what> is PyTorch's name:
  // momentum_buffer; or exp_avg, exp_avg_sq and step.
  NamedTorchTensors state() const;
  // Takes over what `state` has; a parameter of which there is nothing starts afresh. Throws
  // Error(kDataLoss) for a parameter whose state is incomplete.
  void load_state(const StateReader& state);

 private:
  OptimizerSpec spec_;
  std::unique_ptr<NamedTorchTensors> parameters_;       // that are trained
  std::unique_ptr<torch::optim::Optimizer> optimizer_;  // null when there are none
};

}  // namespace funcpipe::nn
