// Events of a run: who did what on which lane, and when.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan.h"

namespace funcpipe {

struct TraceEvent {
  int lane = 0;  // 0 compute, 1 uplink, 2 downlink
  std::string name;
  std::int64_t step = -1;  // -1: none
  std::int64_t begin_unix_ns = 0;
  std::int64_t end_unix_ns = 0;
};

struct WorkerTrace {
  WorkerId worker;
  int attempt = 0;
  std::vector<TraceEvent> events;
};

// Compact JSON with a table of names, as workers leave it in the store.
std::string to_text(const WorkerTrace& trace);
WorkerTrace worker_trace_from_text(std::string_view text);  // throws Error(kDataLoss)

}  // namespace funcpipe
