// A stage for tests that needs no libtorch: every layer multiplies by its one weight; loss is the
// squared error; SGD.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "runtime/stage_compute.h"
#include "runtime/worker.h"

namespace funcpipe {

class ToyStage : public StageCompute {
 public:
  explicit ToyStage(StageSource source) : is_first_(source.is_first), is_last_(source.is_last) {
    for (std::size_t i = 0; i < source.layers.size(); ++i) {
      names_.push_back(source.layers[i].name);
      float weight = 0;
      std::memcpy(&weight, source.layer_files[i].data(), sizeof(weight));
      weights_.push_back(weight);
    }
    values_.assign(weights_.size(), 0);
  }

  void begin_step() override { values_.assign(weights_.size(), 0); }

  TensorBundle forward(const MicroBatchContext& context, TensorBundle input) override {
    return bundle_of(run_layers(context, floats(input)));
  }

  LossSums forward_loss(const MicroBatchContext& context, TensorBundle input,
                        TensorBundle target) override {
    const auto output = run_layers(context, floats(input));
    const auto wanted = floats(target);
    LossSums sums;
    sums.samples = static_cast<std::int64_t>(output.size());
    std::vector<float> gradient(output.size());
    for (std::size_t i = 0; i < output.size(); ++i) {
      const float error = output[i] - wanted[i];
      sums.loss += static_cast<double>(error) * error;
      gradient[i] = 2 * error / static_cast<float>(context.batch_samples);
    }
    if (context.training) loss_gradients_[context.micro_batch.index] = std::move(gradient);
    return sums;
  }

  TensorBundle backward(const MicroBatchContext& context, TensorBundle output_gradient) override {
    auto gradient = is_last_ ? loss_gradients_.extract(context.micro_batch.index).mapped()
                             : floats(output_gradient);
    auto inputs = inputs_.extract(context.micro_batch.index).mapped();
    for (std::size_t layer = weights_.size(); layer-- > 0;) {
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        values_[layer] += gradient[i] * inputs[layer][i];
        gradient[i] *= weights_[layer];
      }
    }
    return is_first_ ? TensorBundle{} : bundle_of(std::move(gradient));
  }

  // Keeps everything anyway, and has one segment.
  void recompute(const MicroBatchContext&) override {}
  std::vector<std::size_t> segment_begins() const override { return {0}; }

  std::span<float> synchronised_values(double) override { return values_; }

  std::vector<double> squared_gradient_norms() override {
    std::vector<double> norms;
    for (const float value : values_) norms.push_back(static_cast<double>(value) * value);
    return norms;
  }

  void apply(double learning_rate, double scale) override {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      weights_[i] -= static_cast<float>(learning_rate * scale) * values_[i];
    }
  }

  NamedTensors weights() const override {
    NamedTensors result;
    auto memory = std::make_shared<std::vector<float>>(weights_);
    for (std::size_t i = 0; i < memory->size(); ++i) {
      TensorView view;
      view.data = std::as_bytes(std::span(*memory)).subspan(i * sizeof(float), sizeof(float));
      result.tensors.push_back({names_[i] + ".weight", view});
    }
    result.owner = memory;
    return result;
  }
  NamedTensors state() const override { return weights(); }

  void load_state(const NamedTensors& state) override {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      for (const auto& [name, tensor] : state.tensors) {
        if (name == names_[i] + ".weight")
          std::memcpy(&weights_[i], tensor.data.data(), sizeof(float));
      }
    }
  }

 private:
  static std::vector<float> floats(const TensorBundle& bundle) {
    std::vector<float> values(bundle.tensors.at(0).data.size() / sizeof(float));
    std::memcpy(values.data(), bundle.tensors[0].data.data(), values.size() * sizeof(float));
    return values;
  }

  static TensorBundle bundle_of(std::vector<float> values) {
    auto memory = std::make_shared<std::vector<float>>(std::move(values));
    TensorBundle bundle;
    TensorView view;
    view.shape = {static_cast<std::int64_t>(memory->size()), 1};
    view.data = std::as_bytes(std::span(*memory));
    view.requires_grad = true;
    bundle.tensors.push_back(view);
    bundle.owner = memory;
    return bundle;
  }

  std::vector<float> run_layers(const MicroBatchContext& context, std::vector<float> values) {
    std::vector<std::vector<float>> inputs;
    for (const float weight : weights_) {
      inputs.push_back(values);
      for (auto& value : values) value *= weight;
    }
    if (context.training) inputs_[context.micro_batch.index] = std::move(inputs);
    return values;
  }

  const bool is_first_, is_last_;
  std::vector<std::string> names_;
  std::vector<float> weights_, values_;
  std::map<int, std::vector<std::vector<float>>> inputs_;
  std::map<int, std::vector<float>> loss_gradients_;
};

}  // namespace funcpipe
