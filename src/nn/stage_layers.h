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

  // Runs all layers on the leaves of a new autograd graph (none when not training). Leaves are
  // never written into.
  LayerValue run(const MicroBatchContext& context, const LayerValue& leaves);

  const std::vector<Layer>& layers() const { return layers_; }
  const Layer& last() const { return layers_.back(); }
  NamedTorchTensors trained_parameters() const;
  NamedTorchTensors floating_point_buffers() const;
  NamedTorchTensors all_tensors() const;  // parameters and buffers, layer by layer

 private:
  void set_training(bool training);
  LayerValue working_copy(const LayerValue& leaves) const;

  std::vector<Layer> layers_;
  std::uint64_t seed_;
  bool clone_input_;
  StageObserver* observer_;
  bool is_training_ = false;
};

}  // namespace funcpipe::nn
