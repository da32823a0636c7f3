// The layers of one stage, run one after the other. Only for src/nn.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/layer.h"
#include "nn/stage_observer.h"
#include "runtime/stage_compute.h"

namespace funcpipe::nn {

// Not thread-safe.
class StageLayers {
 public:
  // `seed` is the job's, for dropout. At least one layer. `observer` may be null.
  StageLayers(std::vector<Layer> layers, std::uint64_t seed, StageObserver* observer);

  // Runs layers [first, last) on the leaves of a new autograd graph (none when not training). Leaves
  // are never written into.
  LayerValue run(const MicroBatchContext& context, const LayerValue& leaves, std::size_t first,
                 std::size_t last);

  const std::vector<Layer>& layers() const { return layers_; }
  const Layer& last() const { return layers_.back(); }
  NamedTorchTensors trained_parameters() const;
  NamedTorchTensors floating_point_buffers() const;
  std::size_t trained_values(std::size_t layer) const;  // elements of its trained parameters
  // For a forward pass that must leave no trace.
  std::vector<at::Tensor> copy_of_buffers() const;
  void restore_buffers(const std::vector<at::Tensor>& copies) const;
  NamedTorchTensors all_tensors() const;  // parameters and buffers, layer by layer

 private:
  void set_training(bool training);
  LayerValue working_copy(const LayerValue& leaves, std::size_t first_layer) const;

  std::vector<Layer> layers_;
  std::uint64_t seed_;
  std::vector<bool> writes_leaves_;  // whether a graph that begins with this layer would
  StageObserver* observer_;
  bool is_training_ = false;
};

}  // namespace funcpipe::nn
