#include "runtime/round_sequence.h"

#include <algorithm>
#include <numeric>

#include "core/learning_rate.h"

namespace funcpipe {

RoundSequence::RoundSequence(const TrainingSpec& training, const Sizes& sizes, int replica,
                             int replicas, std::int64_t first_step)
    : training_(training),
      sizes_(sizes),
      replica_(replica),
      replicas_(replicas),
      steps_(sizes.train_records, training.batch_size, training.epochs, training.steps),
      next_step_(first_step),
      evaluate_next_(first_step > 0 && evaluation_due()) {}

std::optional<Round> RoundSequence::next() {
  if (evaluate_next_) {
    evaluate_next_ = false;
    return evaluation_round();
  }
  if (next_step_ >= steps_.steps()) return std::nullopt;
  Round round = training_round();
  ++next_step_;
  evaluate_next_ = evaluation_due();
  return round;
}

Round RoundSequence::training_round() const {
  Round round;
  round.step = steps_.at(next_step_);
  round.samples = round.step.count;
  round.own =
      share_of(split_mini_batch(round.samples, training_.micro_batch_size), replica_, replicas_);
  round.learning_rate = learning_rate(training_.schedule, training_.optimizer.learning_rate,
                                      next_step_, steps_.steps());
  return round;
}

// A replica's part of a mini-batch is in memory during training, with all that backward needs: as
// many samples without that fit in evaluation, and fewer, larger messages travel.
Round RoundSequence::evaluation_round() const {
  const auto micro_batches = count_micro_batches(training_.batch_size, training_.micro_batch_size);
  const auto own = std::max<std::int64_t>(1, micro_batches / replicas_);
  Round round;
  round.training = false;
  round.step.index = next_step_;
  round.samples = sizes_.test_records;
  round.own = share_of(split_mini_batch(round.samples, own * training_.micro_batch_size), replica_,
                       replicas_);
  return round;
}

bool RoundSequence::evaluation_due() const {
  if (sizes_.test_records == 0) return false;
  if (next_step_ == steps_.steps()) return true;
  const auto every = training_.evaluate_every_epochs;
  return every > 0 && next_step_ % (every * steps_.steps_per_epoch()) == 0;
}

RecordOrder::RecordOrder(std::int64_t train_records, std::uint64_t seed, bool shuffle)
    : train_records_(static_cast<std::uint32_t>(train_records)), seed_(seed), shuffle_(shuffle) {}

std::vector<std::uint32_t> RecordOrder::records(const Round& round, const MicroBatch& micro_batch) {
  std::vector<std::uint32_t> result(static_cast<std::size_t>(micro_batch.count));
  if (!round.training) {
    std::iota(result.begin(), result.end(), static_cast<std::uint32_t>(micro_batch.first));
    return result;
  }
  if (round.step.epoch != epoch_) {
    epoch_ = round.step.epoch;
    order_ = epoch_order(train_records_, epoch_, seed_, shuffle_);
  }
  const auto begin = order_.begin() + round.step.first + micro_batch.first;
  std::copy(begin, begin + micro_batch.count, result.begin());
  return result;
}

}  // namespace funcpipe
