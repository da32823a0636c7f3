// The function's side of profiling: measures what a task says and answers with the figures.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "core/profile_task.h"
#include "store/object_store.h"

namespace funcpipe {

// Collaborators, as of runtime/worker.h.
struct ProfileEnvironment {
  std::function<std::unique_ptr<ObjectStore>(const std::string& url)> open_store;
  std::function<StoreUsage()> usage;
  Clock& clock;
  Deadline deadline;  // when the platform ends the function
  int memory_mb = 0;  // of the function
  int threads = 1;
  double cpus = 1;  // CPU time per second that the platform grants it
};

// Returns before the deadline, with fewer rounds than asked for if need be; with none when not even
// one fits.
ProfileReport run_profile_task(const ProfileTask& task, const ProfileEnvironment& environment);

}  // namespace funcpipe
