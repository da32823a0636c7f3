// One rank's side of an all-reduce (sum) of floats among the replicas of a stage, through the
// store.
//
// The order of the actions is data (schedule/all_reduce_schedule.h); this class performs them. Sums
// are taken in rank order whatever the algorithm and the arrival order, so all ranks end with the
// same bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/mailbox.h"
#include "schedule/lane_executor.h"
#include "schedule/task.h"

namespace funcpipe {

struct AllReduceContext {
  std::int64_t step = 0;
  int stage = 0;
  int rank = 0;
  int ranks = 1;
  Deadline deadline;
};

// Actions on different lanes may run at the same time, in the order their task list allows.
class AllReduce {
 public:
  // `values` is reduced in place and must stay valid and otherwise untouched until the last action
  // is done.
  AllReduce(Mailbox& mailbox, const AllReduceContext& context, std::span<float> values);

  // Performs an all-reduce task (kSendSplit ... kReceiveMerged).
  void perform(const Task& task, std::stop_token stop);
  // Removes the messages of this all-reduce that this rank is the last to need: the parts sent to
  // it, and its merged split. Only when every peer has finished this all-reduce, which a message of
  // a later one from each of them proves.
  static void remove_messages(Mailbox& mailbox, const AllReduceContext& context);

 private:
  std::span<float> split(int index) const;
  void receive_split(int peer, std::stop_token stop);
  void reduce();

  Mailbox& mailbox_;
  const AllReduceContext context_;
  std::span<float> values_;
  std::vector<std::vector<float>> parts_;  // by rank: what the peer sent for our split
};

// The whole all-reduce by itself.
void all_reduce(AllReduceAlgorithm algorithm, Mailbox& mailbox, const AllReduceContext& context,
                std::span<float> values, LaneExecutor& lanes, std::stop_token stop = {});

}  // namespace funcpipe
