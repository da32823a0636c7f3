// A run's timeline in Chrome's trace format (opens in Perfetto and chrome://tracing): one process a
// worker, one row a lane.
#pragma once

#include <string>
#include <vector>

#include "core/trace.h"

namespace funcpipe {

// Times count from the first event of the run and are divided by `time_dilation`.
std::string chrome_trace(const std::vector<WorkerTrace>& traces, double time_dilation);

}  // namespace funcpipe
