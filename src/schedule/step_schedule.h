// The task lists of one worker: a training step in GPipe order, and a forward-only evaluation.
//
//   stage 0   F0 F1 F2 F3 .  .  .  .  .  .  B3 B2 B1 B0 S U
//   stage 1   .  F0 F1 F2 F3 .  .  .  B3 B2 B1 B0 S  U
//   stage 2   .  .  F0 F1 F2 F3 B3 B2 B1 B0 S  U
//
//   F, B: forward, backward of a micro-batch; S: synchronise with the other replicas of the stage;
//   U: update. Source: Liu et al., FuncPipe (SIGMETRICS 2023). S is in all_reduce_schedule.h.
#pragma once

#include <vector>

#include "core/plan.h"
#include "schedule/task.h"

namespace funcpipe {

struct WorkerShape {
  WorkerId worker;
  int stages = 1;
  int replicas = 1;
  AllReduceAlgorithm all_reduce = AllReduceAlgorithm::kPipelined;
  bool clip = false;  // whether the global gradient norm is needed before the update

  bool is_first() const { return worker.stage == 0; }
  bool is_last() const { return worker.stage == stages - 1; }
};

// Downloads run ahead of the computation by at most this many micro-batches: they hide latency, and
// their memory is bounded.
constexpr int kPrefetch = 2;

// `micro_batches`: the replica's own, in order; may be empty (a short last mini-batch): then only
// the synchronisation is left.
TaskList training_step(const WorkerShape& shape, const std::vector<int>& micro_batches);
// Forward only, nothing kept. The last stage computes loss and hits.
TaskList evaluation(const WorkerShape& shape, const std::vector<int>& micro_batches);

}  // namespace funcpipe
