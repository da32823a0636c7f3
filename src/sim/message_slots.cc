#include "sim/message_slots.h"

#include "base/error.h"

namespace funcpipe::sim {

MessageSlots::MessageSlots(int stages, int replicas, std::size_t micro_batches)
    : stages_(static_cast<std::size_t>(stages)),
      replicas_(static_cast<std::size_t>(replicas)),
      micro_batches_(micro_batches),
      gradients_(stages_ * micro_batches_),
      splits_(2 * gradients_),
      merged_(splits_ + stages_ * replicas_ * replicas_),
      norms_(merged_ + stages_ * replicas_) {}

std::size_t MessageSlots::slot(const WorkerShape& shape, const Task& task) const {
  const auto stage = static_cast<std::size_t>(shape.worker.stage);
  const auto rank = static_cast<std::size_t>(shape.worker.replica);
  const auto peer = static_cast<std::size_t>(task.peer);
  // What crosses a cut is numbered by the stage before it.
  const auto crossing = [&](std::size_t before) {
    return before * micro_batches_ + static_cast<std::size_t>(task.micro_batch);
  };
  const auto split = [&](std::size_t from, std::size_t to) {
    return splits_ + (stage * replicas_ + from) * replicas_ + to;
  };
  switch (task.kind) {
    case TaskKind::kSendActivation:
      return crossing(stage);
    case TaskKind::kReceiveActivation:
      return crossing(stage - 1);
    case TaskKind::kSendGradient:
      return gradients_ + crossing(stage - 1);
    case TaskKind::kReceiveGradient:
      return gradients_ + crossing(stage);
    case TaskKind::kSendSplit:
      return split(rank, peer);
    case TaskKind::kReceiveSplit:
      return split(peer, rank);
    case TaskKind::kSendMerged:
      return merged_ + stage * replicas_ + rank;
    case TaskKind::kReceiveMerged:
      return merged_ + stage * replicas_ + peer;
    case TaskKind::kSendNorm:
      return norms_ + stage;
    case TaskKind::kReceiveNorm:
      return norms_ + peer;
    default:
      fail(ErrorCode::kInternal, "'{}' is no message", describe(task));
  }
}

}  // namespace funcpipe::sim
