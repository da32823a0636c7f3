// The autograd graphs of one micro-batch within a stage, between its forward and its backward. Only
// for src/nn.
#pragma once

#include <cstddef>
#include <vector>

#include "nn/layer.h"
#include "nn/stage_layers.h"
#include "runtime/stage_compute.h"

namespace funcpipe::nn {

// One graph for each segment of the stage's layers: from detached leaves to roots, so that backward
// can be run segment by segment, with the bits of a single graph. Not thread-safe.
class MicroBatchGraph {
 public:
  // Runs forward from `leaves`. `cuts`: the layers, counted within the stage, that begin the segments
  // after the first.
  MicroBatchGraph(StageLayers& layers, const MicroBatchContext& context, LayerValue leaves,
                  const std::vector<std::size_t>& cuts);

  // Of the last segment.
  const LayerValue& output() const { return output_; }
  // Makes a scalar that was computed from the output the one root, with gradient 1.
  void end_in(at::Tensor loss);

  // Runs backward through the last segment left and forgets its graph. `gradients` answers the
  // output member by member (undefined: none), and counts for the first call only, when there is no
  // loss. Throws Error naming the layer.
  void backward(std::vector<at::Tensor> gradients);
  bool is_done() const { return segments_.empty(); }
  // Of the stage's input, member by member, when all segments are done. Undefined: none was asked
  // for, or it belongs to a member before that is the same tensor.
  const std::vector<at::Tensor>& input_gradients() const { return gradients_; }

 private:
  struct Segment {
    std::vector<at::Tensor> inputs, outputs;
    const Layer* last_layer;
  };

  std::vector<Segment> segments_;
  LayerValue output_;  // empty once backward has begun
  bool has_loss_ = false;
  std::vector<at::Tensor> gradients_;  // of the input of the segment that was last done
};

}  // namespace funcpipe::nn
