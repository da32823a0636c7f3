#include "nn/torch_stage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>

#include "base/error.h"
#include "nn/input_conversion.h"
#include "nn/micro_batch_graph.h"
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

const std::vector<std::size_t> kOneSegment;

class TorchStage final : public StageCompute {
 public:
  explicit TorchStage(const TorchStageOptions& options)
      : layers_(load_layers(options)),
        parameters_(layers_.trained_parameters()),
        buffers_(layers_.floating_point_buffers()),
        optimizer_(options.optimizer, parameters_),
        conversion_(make_conversion(options)),
        loss_(options.loss),
        segment_cuts_(options.segment_cuts),
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
    auto graph = run_layers(context, input);
    const auto& output = graph.output();
    auto bundle = nn::to_bundle(output.tensors, output.is_tuple);
    keep(context, std::move(graph), std::move(input), {});
    return bundle;
  }

  LossSums forward_loss(const MicroBatchContext& context, TensorBundle input,
                        TensorBundle target) override {
    const ComputeScope scope(context.training);
    auto graph = run_layers(context, input);
    nn::LossTerms terms{};
    graph.end_in(compute_loss(context, graph.output(), target, terms));
    keep(context, std::move(graph), std::move(input), std::move(target));
    const auto samples = context.micro_batch.count;
    return {terms.mean_loss * static_cast<double>(samples), terms.correct, samples};
  }

  void recompute(const MicroBatchContext& context) override {
    const ComputeScope scope(true);
    auto& flight = in_flight(context);
    const auto buffers = layers_.copy_of_buffers();
    auto graph = run_layers(context, flight.input);
    if (is_last_) {
      nn::LossTerms terms{};
      graph.end_in(compute_loss(context, graph.output(), flight.target, terms));
    }
    layers_.restore_buffers(buffers);
    flight = {std::move(graph), {}, {}};
  }

  TensorBundle backward(const MicroBatchContext& context, TensorBundle output_gradient) override {
    const ComputeScope scope(false);
    auto& flight = in_flight(context);
    if (!flight.graph) {
      fail(ErrorCode::kFailedPrecondition, "backward of micro-batch {} without its recompute",
           context.micro_batch.index);
    }
    auto gradients = nn::to_tensors(output_gradient);
    do {
      flight.graph->backward(std::move(gradients));
      gradients.clear();
    } while (!context.segmented && !flight.graph->is_done());
    if (!flight.graph->is_done()) return {};
    const auto node = in_flight_.extract(context.micro_batch.index);
    if (is_first_) return {};
    const auto& result = node.mapped().graph->input_gradients();
    return nn::to_bundle(result, result.size() != 1);
  }

  std::vector<std::size_t> segment_begins() const override {
    std::vector<std::size_t> begins = {0};
    std::size_t layer = 0, offset = 0;
    for (const auto cut : segment_cuts_) {
      for (; layer < cut; ++layer) offset += layers_.trained_values(layer);
      begins.insert(begins.begin(), offset);
    }
    return begins;
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
  // A micro-batch between its forward and its backward: its graph, or what recompute() needs.
  struct InFlight {
    std::optional<nn::MicroBatchGraph> graph;
    TensorBundle input, target;
  };

  InFlight& in_flight(const MicroBatchContext& context) {
    const auto found = in_flight_.find(context.micro_batch.index);
    if (found == in_flight_.end()) {
      fail(ErrorCode::kFailedPrecondition,
           "backward of micro-batch {} without its forward in this step",
           context.micro_batch.index);
    }
    return found->second;
  }

  nn::MicroBatchGraph run_layers(const MicroBatchContext& context, const TensorBundle& input) {
    const auto& cuts = context.segmented ? segment_cuts_ : kOneSegment;
    return {layers_, context, make_leaves(context, input), cuts};
  }

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

  at::Tensor compute_loss(const MicroBatchContext& context, const LayerValue& output,
                          const TensorBundle& target, nn::LossTerms& terms) {
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

  void keep(const MicroBatchContext& context, nn::MicroBatchGraph graph, TensorBundle input,
            TensorBundle target) {
    if (!context.training) return;
    auto& flight = in_flight_[context.micro_batch.index];
    if (context.recompute) {
      flight = {std::nullopt, std::move(input), std::move(target)};
    } else {
      flight = {std::move(graph), {}, {}};
    }
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
  std::vector<std::size_t> segment_cuts_;
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
