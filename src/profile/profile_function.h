// The function's side of profiling: measures what a task says and answers with the figures.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "core/profile_task.h"
#include "store/object_store.h"

namespace funcpipe {

// Where the objects of a profile lie in the store; every key begins with the run's prefix. The
// model lies as in a training run (core/run_layout.h).
class ProfileLayout {
 public:
  explicit ProfileLayout(std::string prefix) : prefix_(std::move(prefix)) {}
  // What layer `layer` takes: one micro-batch, as the layers before it made it.
  std::string input(int layer) const { return fmt::format("{}/input/{}", prefix_, layer); }
  std::string links(int memory_mb) const { return fmt::format("{}/links/{}", prefix_, memory_mb); }

 private:
  std::string prefix_;
};

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
