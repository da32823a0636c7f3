#include "core/batching.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/rng.h"

namespace funcpipe {

StepSequence::StepSequence(std::int64_t samples, std::int64_t batch_size, std::int64_t epochs,
                           std::int64_t steps)
    : samples_(samples),
      batch_size_(batch_size),
      steps_per_epoch_((samples + batch_size - 1) / batch_size),
      steps_(steps > 0 ? steps : epochs * steps_per_epoch_) {
  if (samples < 1) {
    fail(ErrorCode::kInvalidArgument, "a dataset of {} samples cannot be trained on", samples);
  }
}

Step StepSequence::at(std::int64_t index) const {
  const std::int64_t first = index % steps_per_epoch_ * batch_size_;
  return {index, index / steps_per_epoch_, first, std::min(batch_size_, samples_ - first)};
}

bool StepSequence::ends_epoch(std::int64_t index) const {
  return (index + 1) % steps_per_epoch_ == 0;
}

std::int64_t count_micro_batches(std::int64_t samples, std::int64_t micro_batch_size) {
  return (samples + micro_batch_size - 1) / micro_batch_size;
}

std::vector<MicroBatch> split_mini_batch(std::int64_t samples, std::int64_t micro_batch_size) {
  std::vector<MicroBatch> result;
  for (std::int64_t first = 0; first < samples; first += micro_batch_size) {
    result.push_back(
        {static_cast<int>(result.size()), first, std::min(micro_batch_size, samples - first)});
  }
  return result;
}

std::vector<MicroBatch> share_of(const std::vector<MicroBatch>& all, int replica, int replicas) {
  const auto count = static_cast<std::int64_t>(all.size());
  const auto begin = all.begin() + replica * count / replicas;
  const auto end = all.begin() + (replica + 1) * count / replicas;
  return {begin, end};
}

std::vector<std::uint32_t> epoch_order(std::uint32_t samples, std::int64_t epoch,
                                       std::uint64_t seed, bool shuffle) {
  if (shuffle) {
    return permutation(samples,
                       derive_seed(seed, {static_cast<std::uint64_t>(RandomStream::kShuffle),
                                          static_cast<std::uint64_t>(epoch)}));
  }
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

std::uint64_t dropout_seed(std::uint64_t seed, std::int64_t step, int micro_batch, int layer) {
  return derive_seed(
      seed, {static_cast<std::uint64_t>(RandomStream::kDropout), static_cast<std::uint64_t>(step),
             static_cast<std::uint64_t>(micro_batch), static_cast<std::uint64_t>(layer)});
}

}  // namespace funcpipe
