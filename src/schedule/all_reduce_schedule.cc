#include "schedule/all_reduce_schedule.h"

namespace funcpipe {

SplitRange split_range(std::size_t values, int index, int ranks) {
  const auto at = [&](int i) {
    return values * static_cast<std::size_t>(i) / static_cast<std::size_t>(ranks);
  };
  return {at(index), at(index + 1) - at(index)};
}

TaskList all_reduce_tasks(AllReduceAlgorithm algorithm, int rank, int ranks) {
  TaskList tasks;
  if (ranks < 2) return tasks;
  // A phase of the three-phase algorithm begins when the one before it is complete; the pipelined
  // one has no such barrier.
  const bool phases = algorithm == AllReduceAlgorithm::kThreePhase;
  const auto add = [&](TaskKind kind, int peer, std::vector<int> after) {
    tasks.push_back({kind, -1, peer, std::move(after)});
    return static_cast<int>(tasks.size()) - 1;
  };
  const auto ahead = [&](int i) { return (rank + i) % ranks; };
  const auto behind = [&](int i) { return (rank - i + ranks) % ranks; };

  std::vector<int> sent;
  for (int i = 1; i < ranks; ++i) sent.push_back(add(TaskKind::kSendSplit, ahead(i), {}));
  std::vector<int> received;
  for (int i = 1; i < ranks; ++i) {
    received.push_back(add(TaskKind::kReceiveSplit, behind(i),
                           phases ? std::vector<int>{sent.back()} : std::vector<int>{}));
  }
  const int reduced = add(TaskKind::kReduceSplit, -1, received);
  const int merged = add(TaskKind::kSendMerged, -1, {reduced});
  for (int i = 1; i < ranks; ++i) {
    // The merged split replaces the part that was sent to its owner, so that part must have left.
    const int left = sent[static_cast<std::size_t>(ranks - i) - 1];
    add(TaskKind::kReceiveMerged, behind(i), {phases ? merged : reduced, left});
  }
  return tasks;
}

}  // namespace funcpipe
