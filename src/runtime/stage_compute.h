// The mathematics of one stage as the runtime sees it: no libtorch here, only bytes and flat spans
// of float.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/batching.h"
#include "core/tensor.h"

namespace funcpipe {

struct MicroBatchContext {
  std::int64_t step = 0;  // seeds dropout; unused when not training
  MicroBatch micro_batch;
  std::int64_t batch_samples = 0;  // samples of the whole mini-batch, over all replicas: the
                                   // micro-batch weighs count / batch_samples
  bool training =
      true;  // false: evaluation; nothing is kept for backward, no buffer changes, no dropout
  bool recompute = false;  // training: only the input is kept; recompute() comes before backward
  // Training: backward comes in as many parts as the stage has segments, each of which completes the
  // gradients of its layers. `segment` counts them from the last layers to the first.
  bool segmented = false;
  int segment = 0;
};

// Sums over the samples of one or more micro-batches.
struct LossSums {
  double loss = 0;  // sum of per-sample losses (cross-entropy, or squared error averaged over a
                    // sample's outputs)
  std::int64_t correct = 0;  // classification: samples whose largest output is the target
  std::int64_t samples = 0;
  LossSums& operator+=(const LossSums& other) {
    loss += other.loss;
    correct += other.correct;
    samples += other.samples;
    return *this;
  }
};

// One stage of one replica: its layers, their gradients, optimiser and buffers. Used by one thread
// (the compute lane).
//
// A training step:
//   begin_step()
//   for its micro-batches in order:           forward or forward_loss, keeping what backward needs
//   for its micro-batches in reverse order:   backward
//   with replicas:                            synchronised_values(own samples / batch_samples),
//                                             summed in place over the replicas; at any time after
//                                             the last forward: gradients follow with backward
//   apply(...)
// Bundles passed in are consumed (their owner is released when no longer needed); bundles returned
// own their bytes. Throws Error(kInvalidArgument) naming the layer when shapes do not fit or a
// target is out of range.
class StageCompute {
 public:
  virtual ~StageCompute() = default;

  // Sets all gradients to zero.
  virtual void begin_step() = 0;
  // Any stage but the last. The input of the first stage is what the dataset holds; normalising it
  // is the stage's work.
  virtual TensorBundle forward(const MicroBatchContext& context, TensorBundle input) = 0;
  // The last stage: loss against `target`.
  virtual LossSums forward_loss(const MicroBatchContext& context, TensorBundle input,
                                TensorBundle target) = 0;
  // Runs a micro-batch forward again, whose forward had context.recompute: the same bits, and no
  // buffer changes.
  virtual void recompute(const MicroBatchContext& context) = 0;
  // Adds to the gradients. `output_gradient` answers the bundle that forward returned, member by
  // member (empty on the last stage). Returns the gradient of the stage's input, member by member
  // (empty on the first stage). Of a segmented micro-batch only the first part takes a gradient, and
  // only the last part returns one.
  virtual TensorBundle backward(const MicroBatchContext& context, TensorBundle output_gradient) = 0;

  // Where in the synchronised values the gradients of each segment begin, from the last layers'
  // segment (the highest) to the first's (0).
  virtual std::vector<std::size_t> segment_begins() const = 0;
  // What replicas have to sum: all gradients, then for all floating-point buffers what this step has changed them by, times
  // `buffer_weight`. Contiguous; valid and writable until apply(), which adds the summed changes to the buffers the step began
  // with. Without replicas it is not called, and buffers stay as they are.
  virtual std::span<float> synchronised_values(double buffer_weight) = 0;
  // Sum of squares of the (synchronised) gradients of each layer of the stage, in layer order. By
  // layer, so that the global norm is the same sum in the same order wherever the model is cut.
  virtual std::vector<double> squared_gradient_norms() = 0;
  // One optimiser update with gradients times `gradient_scale`; takes summed buffers over.
  virtual void apply(double learning_rate, double gradient_scale) = 0;

  // Parameters and buffers under their state_dict names, e.g. "3.conv1.weight". A snapshot: later
  // steps do not change it.
  virtual NamedTensors weights() const = 0;
  // Weights plus the optimiser's state (names "optimizer/<what>/<parameter>"): all that load_state
  // needs to go on as if nothing had happened, on any stage that holds these layers.
  virtual NamedTensors state() const = 0;
  // Takes what it needs from `state`, which may hold more. Throws Error(kDataLoss) naming a missing
  // or misshapen tensor.
  virtual void load_state(const NamedTensors& state) = 0;
};

}  // namespace funcpipe
