// A worker's step as data: tasks on three lanes. Runtime and simulator execute the same lists.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan.h"

namespace funcpipe {

// What a worker does at the same time: computing, sending, receiving. Each lane works its tasks off
// in list order.
enum class Lane { kCompute, kUplink, kDownlink };
constexpr int kLaneCount = 3;
std::string_view to_string(Lane lane);  // "compute", "uplink", "downlink"

enum class TaskKind {
  kLoadInput,          // downlink: a micro-batch of the dataset's inputs (first stage)
  kLoadTarget,         // downlink: its targets (last stage)
  kReceiveActivation,  // downlink: output of the previous stage
  kForward,            // compute
  kSendActivation,     // uplink: to the next stage
  kReceiveGradient,    // downlink: gradient of this stage's output, from the next stage
  kBackward,           // compute
  kSendGradient,       // uplink: gradient of this stage's input, to the previous stage
  kPackValues,         // compute: gradients and buffers made ready for the all-reduce
  kSendSplit,          // uplink: this rank's part of the split that `peer` reduces
  kReceiveSplit,       // downlink: `peer`'s part of the split that this rank reduces
  kReduceSplit,        // compute: sum of all parts in rank order
  kSendMerged,         // uplink: the reduced split, one object for all peers
  kReceiveMerged,      // downlink: the split that `peer` reduced
  kMeasureNorm,        // compute: squared gradient norms of this stage, for clipping
  kSendNorm,           // uplink: these norms, one object for all other stages
  kReceiveNorm,        // downlink: those of stage `peer`
  kUpdate,             // compute: clip, optimiser step
};
std::string_view to_string(TaskKind kind);  // "forward", "send activation", ...
Lane lane_of(TaskKind kind);

struct Task {
  TaskKind kind;
  int micro_batch = -1;    // index within the mini-batch, over all replicas; -1: none
  int peer = -1;           // rank within the stage's replicas, or stage for norms; -1: none
  std::vector<int> after;  // tasks (indices into the list, all smaller than its own) that must be
                           // complete before it starts

  Lane lane() const { return lane_of(kind); }
  bool operator==(const Task&) const = default;
};
using TaskList = std::vector<Task>;

// "forward 3", "send split to 1": for traces and error messages.
std::string describe(const Task& task);
// One line a task with lane and dependencies, for people and literal tests.
std::string print(const TaskList& tasks);

}  // namespace funcpipe
