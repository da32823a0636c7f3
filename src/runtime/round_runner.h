// Performs the tasks of one worker's rounds: glue between the schedule, the lanes, the mailbox and
// the stage's mathematics.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collective/all_reduce.h"
#include "collective/mailbox.h"
#include "core/worker_task.h"
#include "runtime/background_queue.h"
#include "runtime/batch_loader.h"
#include "runtime/round_sequence.h"
#include "runtime/stage_compute.h"
#include "runtime/trace_recorder.h"
#include "schedule/lane_executor.h"
#include "schedule/step_schedule.h"

namespace funcpipe {

// Collaborators of a RoundRunner; all outlive it. A loader is null where the stage needs none.
struct RoundContext {
  StageCompute& compute;
  Mailbox& mailbox;
  LaneExecutor& lanes;
  BackgroundQueue& background;  // removes messages that nobody will read again
  TraceRecorder& trace;
  BatchLoader* inputs;
  BatchLoader* targets;
  Deadline deadline;  // of every wait
};

// Not thread-safe; run() uses the calling thread as compute lane.
class RoundRunner {
 public:
  RoundRunner(const WorkerShape& shape, double clip_norm, const RoundContext& context);

  // Performs one round. On the last stage returns the sums over the replica's own samples.
  // Throws the first error of any lane, e.g. Error(kFailedPrecondition) for a loss that is not a
  // number.
  LossSums run(const Round& round, std::stop_token stop);

 private:
  // What a micro-batch leaves between its tasks. The schedule's dependencies order all accesses.
  struct Slot {
    TensorBundle input, target, output, output_gradient, input_gradient;
  };

  const TaskList& tasks_for(const Round& round);
  void perform(const Task& task, std::stop_token stop);
  void forward(Slot& slot, const MicroBatch& micro_batch);
  void check_loss(const LossSums& sums, const MicroBatch& micro_batch) const;
  void pack_values();
  void send_norms();
  void receive_norms(int stage, std::stop_token stop);
  void update();
  void remove_read_messages();

  Slot& slot(const Task& task);
  MicroBatchContext micro_batch_context(const MicroBatch& micro_batch) const;
  const MicroBatch& micro_batch(const Task& task) const;
  MessageName message(MessageKind kind, int micro_batch, int from_stage, int to_stage) const;
  MessageName norm_message(int stage, std::int64_t step) const;
  AllReduceContext all_reduce_context(std::int64_t step) const;

  const WorkerShape shape_;
  const double clip_norm_;
  const RoundContext context_;

  // The round in progress.
  const Round* round_ = nullptr;
  std::vector<Slot> slots_;
  LossSums sums_;
  std::optional<AllReduce> all_reduce_;
  std::vector<std::vector<double>> norms_;  // squared, by stage and layer

  struct CachedTasks {
    bool training = true;
    std::vector<int> micro_batches;
    TaskList tasks;
  };
  CachedTasks cached_;  // of the latest round: most steps look alike
};

}  // namespace funcpipe
