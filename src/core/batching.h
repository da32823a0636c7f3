// Which samples a step trains on, and who computes them: the data order of a job as a pure function
// of its seed.
//
//   epoch e     ->  a permutation of the dataset                            epoch_order
//   step s      ->  the next batch_size samples of its epoch, or the rest   StepSequence
//   mini-batch  ->  micro-batches of micro_batch_size, or the rest          split_mini_batch
//   replica r   ->  a contiguous run of the micro-batches                   share_of
//
// Every sample weighs the same: a micro-batch of c samples contributes c / (samples of the
// mini-batch) of the loss.
#pragma once

#include <cstdint>
#include <vector>

namespace funcpipe {

// Names of random streams (see derive_seed). Written into no file, but results depend on them:
// never renumber.
enum class RandomStream : std::uint64_t { kShuffle = 1, kDropout = 2, kInitialise = 3 };

struct MicroBatch {
  int index = 0;           // within the mini-batch, over all replicas
  std::int64_t first = 0;  // position of its first sample within the mini-batch
  std::int64_t count = 0;  // samples
};

struct Step {
  std::int64_t index = 0;  // 0-based over the whole job
  std::int64_t epoch = 0;
  std::int64_t first = 0;  // position of its first sample within the epoch's order
  std::int64_t count = 0;  // samples of the mini-batch
};

// The steps of a job: `epochs` passes over `samples`, or exactly `steps` steps when steps > 0.
class StepSequence {
 public:
  // Throws Error(kInvalidArgument) when there are no samples.
  StepSequence(std::int64_t samples, std::int64_t batch_size, std::int64_t epochs,
               std::int64_t steps);
  std::int64_t steps() const { return steps_; }
  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  Step at(std::int64_t index) const;
  bool ends_epoch(std::int64_t index) const;

 private:
  std::int64_t samples_, batch_size_, steps_per_epoch_, steps_;
};

std::int64_t count_micro_batches(std::int64_t samples, std::int64_t micro_batch_size);
std::vector<MicroBatch> split_mini_batch(std::int64_t samples, std::int64_t micro_batch_size);
// Replica r of d computes the micro-batches [r m / d, (r + 1) m / d) of m.
std::vector<MicroBatch> share_of(const std::vector<MicroBatch>& all, int replica, int replicas);

// Record numbers of the dataset in the order of one epoch (identity when not shuffled).
std::vector<std::uint32_t> epoch_order(std::uint32_t samples, std::int64_t epoch,
                                       std::uint64_t seed, bool shuffle);

// The seed set before layer `layer` (index in the whole model) runs forward on one micro-batch.
std::uint64_t dropout_seed(std::uint64_t seed, std::int64_t step, int micro_batch, int layer);

}  // namespace funcpipe
