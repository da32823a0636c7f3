// Step records of a last-stage worker, left in the store in batches for the coordinator to follow.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "core/run_layout.h"
#include "core/worker_task.h"
#include "runtime/background_queue.h"
#include "store/object_store.h"

namespace funcpipe {

// A batch is the object <run>/metrics/<replica>/<its first step>; a reader that has read up to step
// s looks for the batch s + 1. The first record is written at once, later ones at most twice a
// second. Used by one thread.
class StepLog {
 public:
  StepLog(ObjectStore& store, const RunLayout& layout, int replica, BackgroundQueue& background,
          Clock& clock);
  void add(const StepRecord& record);
  void flush();

 private:
  ObjectStore& store_;
  const RunLayout layout_;
  const int replica_;
  BackgroundQueue& background_;
  Clock& clock_;
  std::vector<StepRecord> pending_;
  TimePoint next_flush_{};
};

}  // namespace funcpipe
