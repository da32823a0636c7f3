// The update rule of a stage: torch::optim behind the job's OptimizerSpec, with its state under
// names that do not depend on how the model is cut. Only for src/nn.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/job.h"
#include "nn/layer.h"

namespace torch::optim {
class Optimizer;
}

namespace funcpipe::nn {

class StageOptimizer {
 public:
  // The parameters keep their .grad defined from before the first step on.
  StageOptimizer(const OptimizerSpec& spec, NamedTorchTensors parameters);
  ~StageOptimizer();

  void step(double learning_rate);

  // "optimizer/<what>/<parameter>" -> value, in the parameters' order. <what> is PyTorch's name:
  // momentum_buffer; or exp_avg, exp_avg_sq and step.
  NamedTorchTensors state() const;
  // Finds a tensor by its name and checks its shape; an undefined one when there is none.
  using Lookup = std::function<at::Tensor(const std::string& name, const Shape& shape)>;
  // Takes over what `lookup` has; a parameter of which there is nothing starts afresh. Throws
  // Error(kDataLoss) for a parameter whose state is incomplete.
  void load_state(const Lookup& lookup);

 private:
  OptimizerSpec spec_;
  std::unique_ptr<NamedTorchTensors> parameters_;       // that are trained
  std::unique_ptr<torch::optim::Optimizer> optimizer_;  // null when there are none
};

}  // namespace funcpipe::nn
