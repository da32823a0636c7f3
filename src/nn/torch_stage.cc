#include "nn/torch_stage.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>

#include "base/error.h"
#include "nn/input_conversion.h"
#include "nn/stage_layers.h"
#include "nn/stage_optimizer.h"
#include "nn/torch_bridge.h"
#include "nn/torch_runtime.h"

namespace funcpipe {
namespace {

using nn::LayerValue;
using nn::NamedTorchTensors;

// libtorch keeps these settings per thread; a stage may be made on one and used on another.
class ComputeScope {
 public:
  explicit ComputeScope(bool with_gradients)
      : grad_mode_(with_gradients), optimize_(torch::jit::getGraphExecutorOptimize()) {
    torch::jit::setGraphExecutorOptimize(false);
    at::init_num_threads();
  }
  ~ComputeScope() { torch::jit::setGraphExecutorOptimize(optimize_); }
  ComputeScope(const ComputeScope&) = delete;
  ComputeScope& operator=(const ComputeScope&) = delete;

 private:
  const c10::AutoGradMode grad_mode_;
  const bool optimize_;
};

nn::StageLayers load_layers(const TorchStageOptions& options) {
  if (options.layers.empty()) fail(ErrorCode::kInvalidArgument, "a stage needs at least one layer");
  std::vector<nn::Layer> layers;
  for (const auto& layer : options.layers) {
    const auto index = options.first_layer + static_cast<int>(layers.size());
    layers.emplace_back(layer.manifest, index, layer.file.view());
  }
  return nn::StageLayers(std::move(layers), options.seed, options.observer);
}

nn::InputConversion make_conversion(const TorchStageOptions& options) {
  if (options.first_layer > 0) return nn::InputConversion({}, {}, {});
  return nn::InputConversion(options.model_inputs, options.mean, options.scale);
}

std::int64_t value_count(const NamedTorchTensors& tensors) {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : tensors) count += tensor.numel();
  return count;
}

double sum_of_squares(const at::Tensor& tensor) {
  const std::span<const float> values(tensor.data_ptr<float>(),
                                      static_cast<std::size_t>(tensor.numel()));
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

bool occurs_before(const std::vector<at::Tensor>& tensors, std::size_t index) {
  const auto end = tensors.begin() + static_cast<std::ptrdiff_t>(index);
  return std::any_of(tensors.begin(), end,
                     [&](const auto& tensor) { return tensor.is_same(tensors[index]); });
}

class TorchStage final : public StageCompute {
 public:
  explicit TorchStage(const TorchStageOptions& options)
      : layers_(load_layers(options)),
        parameters_(layers_.trained_parameters()),
        buffers_(layers_.floating_point_buffers()),
        optimizer_(options.optimizer, parameters_),
        conversion_(make_conversion(options)),
        loss_(options.loss),
        is_first_(options.first_layer == 0),
        is_last_(options.is_last),
        gradient_count_(value_count(parameters_)),
        synchronised_(at::zeros({gradient_count_ + value_count(buffers_)})) {
    std::int64_t offset = 0;
    for (auto& [name, parameter] : parameters_) {
      parameter.mutable_grad() = slice(offset, parameter);
      offset += parameter.numel();
    }
  }

  void begin_step() override {
    synchronised_.zero_();
    buffers_are_summed_ = false;
    in_flight_.clear();
    buffers_at_start_.clear();
    for (const auto& [name, buffer] : buffers_) buffers_at_start_.push_back(buffer.clone());
  }

  TensorBundle forward(const MicroBatchContext& context, TensorBundle input) override {
    const ComputeScope scope(context.training);
    auto leaves = make_leaves(context, input);
    auto output = layers_.run(context, leaves);
    auto bundle = nn::to_bundle(output.tensors, output.is_tuple);
    if (context.training) keep(context, std::move(leaves.tensors), std::move(output.tensors));
    return bundle;
  }

  LossSums forward_loss(const MicroBatchContext& context, TensorBundle input,
                        TensorBundle target) override {
    const ComputeScope scope(context.training);
    auto leaves = make_leaves(context, input);
    nn::LossTerms terms{};
    auto loss = compute_loss(context, leaves, target, terms);
    if (context.training) keep(context, std::move(leaves.tensors), {std::move(loss)});
    const auto samples = context.micro_batch.count;
    return {terms.mean_loss * static_cast<double>(samples), terms.correct, samples};
  }

  TensorBundle backward(const MicroBatchContext& context, TensorBundle output_gradient) override {
    const ComputeScope scope(false);
    auto node = in_flight_.extract(context.micro_batch.index);
    if (node.empty()) {
      fail(ErrorCode::kFailedPrecondition,
           "backward of micro-batch {} without its forward in this step",
           context.micro_batch.index);
    }
    run_backward(node.mapped().outputs, nn::to_tensors(output_gradient));
    return is_first_ ? TensorBundle{} : input_gradients(node.mapped());
  }

  std::span<float> synchronised_values(double buffer_weight) override {
    const ComputeScope scope(false);
    std::int64_t offset = gradient_count_;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const auto& now = buffers_[i].second;
      const auto& start = buffers_at_start_.at(i);
      // Unchanged values give exactly 0, also when they are infinite.
      slice(offset, now).copy_((now - start).masked_fill_(now.eq(start), 0).mul_(buffer_weight));
      offset += now.numel();
    }
    buffers_are_summed_ = true;
    return {synchronised_.data_ptr<float>(), static_cast<std::size_t>(synchronised_.numel())};
  }

  std::vector<double> squared_gradient_norms() override {
    std::vector<double> norms;
    for (const auto& layer : layers_.layers()) {
      double& sum = norms.emplace_back(0);
      for (const auto& [name, parameter] : layer.parameters()) {
        if (parameter.requires_grad()) sum += sum_of_squares(parameter.grad());
      }
    }
    return norms;
  }

  void apply(double learning_rate, double gradient_scale) override {
    const ComputeScope scope(false);
    if (gradient_scale != 1) synchronised_.narrow(0, 0, gradient_count_).mul_(gradient_scale);
    optimizer_.step(learning_rate);
    if (buffers_are_summed_) take_summed_buffers();
  }

  NamedTensors weights() const override { return nn::to_named_tensors(layers_.all_tensors()); }

  NamedTensors state() const override {
    auto tensors = layers_.all_tensors();
    auto optimizer_state = optimizer_.state();
    tensors.insert(tensors.end(), optimizer_state.begin(), optimizer_state.end());
    return nn::to_named_tensors(tensors);
  }

  void load_state(const NamedTensors& state) override {
    const ComputeScope scope(false);
    const nn::StateReader reader(state);
    for (auto& [name, tensor] : layers_.all_tensors()) {
      const auto value = reader.find(name, tensor.sizes().vec());
      if (!value.defined()) fail(ErrorCode::kDataLoss, "the state lacks '{}'", name);
      tensor.copy_(value);
    }
    optimizer_.load_state(reader);
  }

 private:
  // Leaves and roots of a micro-batch's graph, between its forward and backward.
  struct InFlight {
    std::vector<at::Tensor> inputs, outputs;
  };

  at::Tensor slice(std::int64_t offset, const at::Tensor& like) const {
    return synchronised_.narrow(0, offset, like.numel()).view(like.sizes());
  }

  // The stage's inputs as leaves of a new graph; aliased members are one leaf.
  LayerValue make_leaves(const MicroBatchContext& context, const TensorBundle& input) const {
    LayerValue leaves(nn::to_tensors(input), input.is_tuple);
    if (is_first_) conversion_.apply(leaves.tensors);
    for (std::size_t i = 0; i < leaves.tensors.size(); ++i) {
      if (input.tensors[i].alias_of >= 0) continue;
      leaves.tensors[i].set_requires_grad(context.training && input.tensors[i].requires_grad);
    }
    return leaves;
  }

  at::Tensor compute_loss(const MicroBatchContext& context, const LayerValue& leaves,
                          const TensorBundle& target, nn::LossTerms& terms) {
    const auto output = layers_.run(context, leaves);
    const auto targets = nn::to_tensors(target);
    if (output.is_tuple || targets.size() != 1) {
      fail(ErrorCode::kInvalidArgument,
           "the loss needs one output and one target; {} returns {} and a record has {} targets",
           layers_.last().describe(), nn::describe(output.tensors), targets.size());
    }
    const double weight = static_cast<double>(context.micro_batch.count) /
                          static_cast<double>(std::max<std::int64_t>(1, context.batch_samples));
    return nn::weighted_loss(loss_, output.tensors.front(), targets.front(), weight, terms);
  }

  void keep(const MicroBatchContext& context, std::vector<at::Tensor> inputs,
            std::vector<at::Tensor> outputs) {
    if (is_first_) inputs.clear();
    in_flight_.insert_or_assign(context.micro_batch.index,
                                InFlight{std::move(inputs), std::move(outputs)});
  }

  void run_backward(const std::vector<at::Tensor>& outputs,
                    const std::vector<at::Tensor>& gradients) const {
    if (!is_last_ && gradients.size() != outputs.size()) {
      fail(ErrorCode::kInvalidArgument, "{} gradients came back for {} outputs of {}",
           gradients.size(), outputs.size(), layers_.last().describe());
    }
    std::vector<at::Tensor> roots, root_gradients;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad() || occurs_before(outputs, i)) continue;
      if (!is_last_ && !gradients[i].defined()) continue;
      roots.push_back(outputs[i]);
      root_gradients.push_back(is_last_ ? at::Tensor() : gradients[i]);
    }
    if (roots.empty()) return;
    try {
      torch::autograd::backward(roots, root_gradients);
    } catch (...) {
      nn::rethrow_as_error(fmt::format("backward from {}", layers_.last().describe()));
    }
  }

  static TensorBundle input_gradients(const InFlight& flight) {
    std::vector<at::Tensor> gradients;
    for (std::size_t i = 0; i < flight.inputs.size(); ++i) {
      const bool sent = flight.inputs[i].requires_grad() && !occurs_before(flight.inputs, i);
      gradients.push_back(sent ? flight.inputs[i].grad() : at::Tensor());
    }
    return nn::to_bundle(gradients, gradients.size() != 1);
  }

  void take_summed_buffers() {
    std::int64_t offset = gradient_count_;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      auto& buffer = buffers_[i].second;
      buffer.copy_(buffers_at_start_[i]).add_(slice(offset, buffer));
      offset += buffer.numel();
    }
    buffers_are_summed_ = false;
  }

  nn::StageLayers layers_;
  NamedTorchTensors parameters_;  // that are trained
  NamedTorchTensors buffers_;     // floating point
  nn::StageOptimizer optimizer_;
  nn::InputConversion conversion_;
  LossKind loss_;
  bool is_first_, is_last_;

  std::int64_t gradient_count_;
  at::Tensor synchronised_;  // all gradients, then what each floating-point buffer changed by
  std::vector<at::Tensor> buffers_at_start_;
  bool buffers_are_summed_ = false;
  std::map<int, InFlight> in_flight_;  // by micro-batch
};

}  // namespace

TorchStageOptions torch_stage_options(const ModelArchive& archive, int first, int last,
                                      const JobSpec& job, int threads) {
  const auto& manifest = archive.manifest();
  TorchStageOptions options{.first_layer = first,
                            .is_last = last == archive.layer_count(),
                            .model_inputs = manifest.inputs,
                            .mean = job.data.mean,
                            .scale = job.data.scale,
                            .loss = job.training.loss,
                            .optimizer = job.training.optimizer,
                            .seed = job.seed,
                            .threads = threads};
  for (int i = first; i < last; ++i) {
    options.layers.push_back(
        {manifest.layers.at(static_cast<std::size_t>(i)), archive.layer_file(i)});
  }
  return options;
}

std::unique_ptr<StageCompute> make_torch_stage(const TorchStageOptions& options) {
  configure_torch(options.threads);
  return std::make_unique<TorchStage>(options);
}

}  // namespace funcpipe
