// What a worker does from its first step to its last: training steps, and evaluations between them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/batching.h"
#include "core/job.h"

namespace funcpipe {

// One pass of the pipeline over some samples: a training step, or an evaluation of the whole test
// set.
struct Round {
  bool training = true;
  Step step;  // the step trained, or for an evaluation `index` = steps trained so far
  std::int64_t samples = 0;     // of the mini-batch or the test set
  std::vector<MicroBatch> own;  // this replica's share
  double learning_rate = 0;
};

// A pure function of its arguments, so that every worker, and every attempt of one, sees the same
// rounds.
class RoundSequence {
 public:
  struct Sizes {
    std::int64_t train_records = 0;
    std::int64_t test_records = 0;  // 0: no evaluation
  };
  RoundSequence(const TrainingSpec& training, const Sizes& sizes, int replica, int replicas,
                std::int64_t first_step);

  std::optional<Round> next();
  std::int64_t steps() const { return steps_.steps(); }

 private:
  Round training_round() const;
  Round evaluation_round() const;
  bool evaluation_due() const;

  const TrainingSpec training_;
  const Sizes sizes_;
  const int replica_, replicas_;
  const StepSequence steps_;
  std::int64_t next_step_;
  bool evaluate_next_ = false;
};

// The records of a round's micro-batches, in order: from the epoch's order, or one after the other
// for an evaluation.
class RecordOrder {
 public:
  RecordOrder(std::int64_t train_records, std::uint64_t seed, bool shuffle);
  std::vector<std::uint32_t> records(const Round& round, const MicroBatch& micro_batch);

 private:
  const std::uint32_t train_records_;
  const std::uint64_t seed_;
  const bool shuffle_;
  std::int64_t epoch_ = -1;
  std::vector<std::uint32_t> order_;  // of `epoch_`
};

}  // namespace funcpipe
