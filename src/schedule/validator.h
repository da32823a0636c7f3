// Proof that the task lists of all workers of a plan fit together.
#pragma once

#include <vector>

#include "schedule/step_schedule.h"

namespace funcpipe {

struct WorkerTasks {
  WorkerShape shape;
  TaskList tasks;
};

// Executes the lists symbolically. Throws Error(kInternal) that names worker and task when a
// dependency points forward, a message is sent twice, received without being sent, or sent and
// never received, or when the workers would wait for each other for ever.
void validate(const std::vector<WorkerTasks>& workers);

}  // namespace funcpipe
