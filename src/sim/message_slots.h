// Numbers for the messages of a step: the sender's and the receivers' tasks of one message get the
// same one.
#pragma once

#include <cstddef>

#include "schedule/step_schedule.h"

namespace funcpipe::sim {

constexpr bool is_send(TaskKind kind) {
  return kind == TaskKind::kSendActivation || kind == TaskKind::kSendGradient ||
         kind == TaskKind::kSendSplit || kind == TaskKind::kSendMerged ||
         kind == TaskKind::kSendNorm;
}
constexpr bool is_receive(TaskKind kind) {
  return kind == TaskKind::kReceiveActivation || kind == TaskKind::kReceiveGradient ||
         kind == TaskKind::kReceiveSplit || kind == TaskKind::kReceiveMerged ||
         kind == TaskKind::kReceiveNorm;
}

class MessageSlots {
 public:
  // Of a step of `micro_batches` micro-batches over all replicas.
  MessageSlots(int stages, int replicas, std::size_t micro_batches);

  std::size_t count() const { return norms_ + stages_; }
  // `task` is a send or a receive of a worker of shape `shape`.
  std::size_t slot(const WorkerShape& shape, const Task& task) const;

 private:
  std::size_t stages_, replicas_, micro_batches_;
  std::size_t gradients_, splits_, merged_, norms_;  // where these kinds begin; activations at 0
};

}  // namespace funcpipe::sim
