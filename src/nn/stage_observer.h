// Looks at a stage from within while it trains. Only for src/nn.
#pragma once

#include <cstddef>

#include "nn/layer.h"

namespace funcpipe::nn {

// Called on the compute thread, for training only. Layers count within the stage.
class StageObserver {
 public:
  virtual ~StageObserver() = default;

  virtual void forward_begins(std::size_t layer) = 0;
  virtual void forward_ends(std::size_t layer, const LayerValue& output) = 0;
  // The backward pass comes from later layers to this one: the gradient of its output is complete.
  // May be called again in the same pass. Not called for a layer that hands on what it got.
  virtual void backward_begins(std::size_t layer) = 0;
};

}  // namespace funcpipe::nn
