// What each layer of a stage takes, measured from within a TorchStage at work: the same code, in
// the same order, on the same data as in training, so that the layers' times add up to the stage's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/units.h"
#include "core/tensor.h"
#include "nn/torch_stage.h"

namespace funcpipe {

struct LayerProfilerOptions {
  TorchStageOptions stage;
  std::int64_t samples = 1;    // of a micro-batch
  int micro_batches = 1;       // forward of all of them, then backward: one pass
  bool measures_norm = false;  // the job clips gradients
  double cpus = 1;             // CPU time per second that the platform grants
  std::function<std::uint64_t(const TensorBundle&)> wire_bytes;  // of a bundle as it is sent
};

// Of one micro-batch.
struct LayerBytes {
  std::uint64_t activation = 0;  // allocated by this layer and kept until backward
  std::uint64_t workspace = 0;   // peak while it runs, above what it and earlier layers keep
  std::uint64_t output = 0;      // as it is sent
};

// Seconds of one micro-batch; of `update` one step: gradients set to zero, norm, optimiser.
struct LayerSeconds {
  double forward = 0;
  double backward = 0;
  double update = 0;
};

struct ProfilingRound {
  std::vector<LayerSeconds> layers;  // while the function runs
  double stretch = 1;  // by which a quota of CPU time makes all of it longer (nn/pass_times.h)
};

// Not thread-safe, and to be used on one thread: the compute lane's. Throws as TorchStage does.
class LayerProfiler {
 public:
  // `input` as the stage before (or the dataset) gives it; `target` is empty unless the stage is
  // the last one.
  LayerProfiler(LayerProfilerOptions options, TensorBundle input, TensorBundle target);
  ~LayerProfiler();

  // Must come first. Gives what the stage sends to the next one; nothing from the last stage.
  TensorBundle first_pass();
  std::vector<LayerBytes> measure_bytes();
  // Whole passes until `at_least` is over. With a quota of CPU time it should last many of the
  // platform's accounting periods.
  ProfilingRound measure_round(Duration at_least);

 private:
  class Recorder;

  void forward(int micro_batch);
  void backward(int micro_batch);
  void update();
  void run_pass(int micro_batches);
  MicroBatchContext context(int micro_batch) const;

  LayerProfilerOptions options_;
  TensorBundle input_, target_, output_gradient_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<StageCompute> stage_;
};

}  // namespace funcpipe
