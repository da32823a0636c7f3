// Reads what the last-stage workers of a run write about steps and evaluations, and puts the
// replicas' shares together.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "core/batching.h"
#include "core/run_layout.h"
#include "core/run_record.h"
#include "core/worker_task.h"
#include "store/object_store.h"

namespace funcpipe {

// Not thread-safe. poll() asks for the objects that come next by name; it never lists.
class ProgressFollower {
 public:
  struct Options {
    int replicas = 1;
    bool evaluates = false;  // the job has a test set
    double time_dilation = 1;
    std::int64_t evaluate_every_steps = 0;  // 0: after the last step only
  };
  ProgressFollower(ObjectStore& store, const RunLayout& layout, const StepSequence& steps,
                   const Options& options);

  // Called by poll() in the order of the run.
  std::function<void(const StepSummary&)> on_step;
  std::function<void(const EvaluationSummary&)> on_evaluation;

  // Reads all that is there now; true when something new was.
  bool poll();
  // Whether every step, and every evaluation due, has been seen.
  bool complete() const;

 private:
  bool read_records(int replica);
  bool read_evaluation();
  bool evaluation_due(std::int64_t steps_done) const;
  void emit_step();

  ObjectStore& store_;
  const RunLayout layout_;
  const StepSequence steps_;
  const Options options_;
  std::vector<std::map<std::int64_t, StepRecord>>
      records_;                            // by replica: read, not yet put together
  std::vector<std::int64_t> next_record_;  // by replica
  std::int64_t next_step_ = 0;             // to put together
  bool evaluation_pending_ = false;
  std::int64_t last_end_unix_ns_ = 0;
};

}  // namespace funcpipe
