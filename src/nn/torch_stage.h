// StageCompute on libtorch: the layers of one stage, their gradients, optimiser and buffers.
//
// Each micro-batch is its own autograd graph from detached leaves (the stage's inputs) to roots
// (its outputs, or the weighted loss), freed right after its backward. All gradients are views of
// one contiguous buffer, so that an all-reduce works on them where they are. Random streams and the
// order of all sums depend on the layer, never on the cut: stages of any cut give the same bits as
// the whole model (at equal thread count and CPU).
//
// Batch norm with replicas: floating-point buffers change by the sample-weighted mean of what
// each replica changed them by; integer buffers count each replica's own micro-batches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/job.h"
#include "core/manifest.h"
#include "nn/model_archive.h"
#include "runtime/stage_compute.h"

namespace funcpipe {

namespace nn {
class StageObserver;
}

struct StageLayer {
  LayerManifest manifest;
  Buffer file;  // TorchScript
};

struct TorchStageOptions {
  std::vector<StageLayer> layers = {};
  int first_layer = 0;  // index of layers.front() in the model
  bool is_last = true;  // the stage computes the loss
  // Of the whole model; for the first stage: records are converted to these types (bytes to
  // value / 255 where the model takes floats) and normalised.
  std::vector<TensorFacts> model_inputs;
  std::vector<double> mean, scale;  // as in DataSpec
  LossKind loss = LossKind::kCrossEntropy;
  OptimizerSpec optimizer;
  // Layers, counted within the stage, that begin its segments after the first (MicroBatchContext).
  std::vector<std::size_t> segment_cuts = {};
  std::uint64_t seed = 0;
  int threads = 1;                        // see configure_torch
  nn::StageObserver* observer = nullptr;  // outlives the stage
};

// What a worker needs for layers [first, last) of a job's model.
TorchStageOptions torch_stage_options(const ModelArchive& archive, int first, int last,
                                      const JobSpec& job, int threads);

// Throws Error naming the layer that cannot be loaded or trained (see Layer), or
// kInvalidArgument when the normalisation does not fit the model's input.
// The options' files are not needed afterwards.
std::unique_ptr<StageCompute> make_torch_stage(const TorchStageOptions& options);

}  // namespace funcpipe
