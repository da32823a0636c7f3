#include "nn/layer_profiler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <ATen/ATen.h>

#include "nn/allocation_tracker.h"
#include "nn/pass_times.h"
#include "nn/stage_observer.h"
#include "nn/torch_bridge.h"

namespace funcpipe {
namespace {

// Starting an operation of the optimiser on one tensor takes about as long as so many values.
constexpr std::uint64_t kValuesPerTensor = 32768;

std::uint64_t update_work(const LayerManifest& layer) {
  return layer.parameter_bytes() / sizeof(float) + kValuesPerTensor * layer.parameters.size();
}

std::uint64_t largest_parameter(const LayerManifest& layer) {
  std::uint64_t largest = 0;
  for (const auto& parameter : layer.parameters) {
    const auto values = static_cast<std::uint64_t>(element_count(parameter.shape));
    largest = std::max(largest, values * size_of(parameter.dtype));
  }
  return largest;
}

// An answer to `output` as the next stage would send it, with small random values.
TensorBundle gradient_of(const TensorBundle& output) {
  std::vector<at::Tensor> gradients;
  for (const auto& view : output.tensors) {
    const bool wanted = view.requires_grad && view.alias_of < 0;
    gradients.push_back(wanted ? at::randn(view.shape).mul_(1e-3) : at::Tensor());
  }
  return nn::to_bundle(gradients, gradients.size() != 1);
}

}  // namespace

// Takes the times of passes, and what they allocate while a tracker is set.
class LayerProfiler::Recorder final : public nn::StageObserver {
 public:
  explicit Recorder(const LayerProfilerOptions& options)
      : layers_(options.stage.layers.size()),
        is_first_(options.stage.first_layer == 0),
        is_last_(options.stage.is_last),
        wire_bytes_(options.wire_bytes),
        forward_peak_(layers_),
        backward_peak_(layers_),
        output_bytes_(layers_),
        pass_(2 * layers_ + 2) {}

  void forward_starts() {
    if (tracker_) tracker_->set_owner(is_first_ ? 0 : layers_);
    stopwatch_.restart();
  }
  // Converting the data is the first layer's work; taking in a message is nobody's.
  void forward_begins(std::size_t layer) override {
    if (layer == 0) {
      book(is_first_ ? forward_slot(0) : handling_slot());
      if (tracker_) tracker_->set_owner(0);
    }
    stopwatch_.restart();
  }
  void forward_ends(std::size_t layer, const nn::LayerValue& output) override {
    book(forward_slot(layer));
    if (tracker_) {
      forward_peak_[layer] = tracker_->take_peak();
      output_bytes_[layer] = wire_bytes_(nn::to_bundle(output.tensors, output.is_tuple));
      tracker_->take_peak();
      tracker_->set_owner(std::min(layer + 1, layers_ - 1));
    }
    stopwatch_.restart();
  }
  void forward_stops() { book(is_last_ ? forward_slot(layers_ - 1) : handling_slot()); }

  void backward_starts() {
    backward_layer_ = layers_ - 1;
    stopwatch_.restart();
  }
  void backward_begins(std::size_t layer) override {
    if (layer >= backward_layer_) return;
    backward_stops();
    backward_layer_ = layer;
    stopwatch_.restart();
  }
  void backward_stops() {
    book(backward_slot(backward_layer_));
    if (tracker_) backward_peak_[backward_layer_] = tracker_->take_peak();
  }

  void update_starts() { stopwatch_.restart(); }
  void update_stops() { book(update_slot()); }

  void set_tracker(nn::AllocationTracker* tracker) { tracker_ = tracker; }
  std::uint64_t peak(std::size_t layer) const {
    return std::max(forward_peak_[layer], backward_peak_[layer]);
  }
  std::uint64_t output_bytes(std::size_t layer) const { return output_bytes_[layer]; }

  // The times since the last call, by slot.
  nn::PassTimes take_pass() { return std::exchange(pass_, nn::PassTimes(pass_.wall.size())); }
  std::size_t forward_slot(std::size_t layer) const { return layer; }
  std::size_t backward_slot(std::size_t layer) const { return layers_ + layer; }
  std::size_t update_slot() const { return 2 * layers_; }
  std::size_t handling_slot() const { return 2 * layers_ + 1; }

 private:
  void book(std::size_t slot) {
    const auto [wall, cpu] = stopwatch_.elapsed();
    pass_.wall[slot] += wall;
    pass_.cpu[slot] += cpu;
  }

  const std::size_t layers_;
  const bool is_first_, is_last_;
  const std::function<std::uint64_t(const TensorBundle&)> wire_bytes_;
  nn::AllocationTracker* tracker_ = nullptr;
  std::vector<std::uint64_t> forward_peak_, backward_peak_, output_bytes_;
  std::size_t backward_layer_ = 0;
  nn::Stopwatch stopwatch_;
  nn::PassTimes pass_;
};

LayerProfiler::LayerProfiler(LayerProfilerOptions options, TensorBundle input, TensorBundle target)
    : options_(std::move(options)),
      input_(std::move(input)),
      target_(std::move(target)),
      recorder_(std::make_unique<Recorder>(options_)) {
  options_.stage.observer = recorder_.get();
  stage_ = make_torch_stage(options_.stage);
  for (auto& layer : options_.stage.layers) layer.file = {};
}

LayerProfiler::~LayerProfiler() = default;

MicroBatchContext LayerProfiler::context(int micro_batch) const {
  return {0,
          {micro_batch, micro_batch * options_.samples, options_.samples},
          options_.micro_batches * options_.samples,
          true};
}

void LayerProfiler::forward(int micro_batch) {
  recorder_->forward_starts();
  if (options_.stage.is_last) {
    stage_->forward_loss(context(micro_batch), input_, target_);
  } else {
    stage_->forward(context(micro_batch), input_);
  }
  recorder_->forward_stops();
}

void LayerProfiler::backward(int micro_batch) {
  recorder_->backward_starts();
  stage_->backward(context(micro_batch), output_gradient_);
  recorder_->backward_stops();
}

// The weights stay what they are: the learning rate is 0.
void LayerProfiler::update() {
  recorder_->update_starts();
  if (options_.measures_norm) stage_->squared_gradient_norms();
  stage_->apply(0, 1);
  recorder_->update_stops();
}

void LayerProfiler::run_pass(int micro_batches) {
  recorder_->update_starts();
  stage_->begin_step();
  recorder_->update_stops();
  for (int i = 0; i < micro_batches; ++i) forward(i);
  for (int i = micro_batches; i-- > 0;) backward(i);
  update();
}

TensorBundle LayerProfiler::first_pass() {
  TensorBundle output;
  if (!options_.stage.is_last) {
    stage_->begin_step();
    output = stage_->forward(context(0), input_);
    output_gradient_ = gradient_of(output);
    backward(0);
    update();
  } else {
    run_pass(1);
  }
  recorder_->take_pass();
  return output;
}

std::vector<LayerBytes> LayerProfiler::measure_bytes() {
  const auto& layers = options_.stage.layers;
  stage_->begin_step();
  nn::AllocationTracker tracker(layers.size() + 1);
  recorder_->set_tracker(&tracker);
  forward(0);
  const auto kept = tracker.live_by_owner();
  backward(0);
  tracker.take_peak();
  const auto before_update = tracker.take_peak();
  update();
  const auto update_peak = tracker.take_peak() - before_update;
  recorder_->set_tracker(nullptr);
  recorder_->take_pass();

  std::uint64_t largest = 1, kept_so_far = 0;
  for (const auto& layer : layers) largest = std::max(largest, largest_parameter(layer.manifest));
  std::vector<LayerBytes> result;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    kept_so_far += kept[i];
    const auto peak = recorder_->peak(i);
    const auto in_pass = peak - std::min(peak, kept_so_far);
    const auto in_update = update_peak * largest_parameter(layers[i].manifest) / largest;
    result.push_back({kept[i], std::max(in_pass, in_update), recorder_->output_bytes(i)});
  }
  return result;
}

ProfilingRound LayerProfiler::measure_round(Duration at_least) {
  std::vector<nn::PassTimes> passes;
  const nn::Stopwatch together;
  const auto end = std::chrono::steady_clock::now() + at_least;
  do {
    run_pass(options_.micro_batches);
    passes.push_back(recorder_->take_pass());
  } while (std::chrono::steady_clock::now() < end);
  const auto typical =
      nn::typical_pass(passes, together.elapsed(), {options_.stage.threads, options_.cpus});
  const auto& seconds = typical.seconds;

  const auto& layers = options_.stage.layers;
  std::uint64_t work = 0;
  for (const auto& layer : layers) work += update_work(layer.manifest);
  ProfilingRound round{.layers = {}, .stretch = typical.stretch};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double share = work == 0 ? 0
                                   : static_cast<double>(update_work(layers[i].manifest)) /
                                         static_cast<double>(work);
    round.layers.push_back({seconds[recorder_->forward_slot(i)] / options_.micro_batches,
                            seconds[recorder_->backward_slot(i)] / options_.micro_batches,
                            seconds[recorder_->update_slot()] * share});
  }
  return round;
}

}  // namespace funcpipe
