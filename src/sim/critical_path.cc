#include "sim/critical_path.h"

#include <algorithm>

namespace funcpipe::sim {

CriticalPath critical_path(const History& history, std::size_t step) {
  CriticalPath path;
  path.step = static_cast<std::int64_t>(step);
  const SimTime from = step > 0 ? history.steps[step - 1].end : SimTime(0);
  for (auto at = history.steps[step].last_record; at != kNone;) {
    const auto& record = history.records[at];
    if (record.end <= from) break;
    const SimTime reached =
        record.cause == kNone ? record.begin : history.records[record.cause].end;
    const SimTime begin = std::max(reached, from);
    const auto& task = history.task_of(at);
    const auto in_step = history.step_of(at);
    const auto& worker = history.steps[in_step].program->workers[task.worker].shape.worker;
    const double seconds = in_seconds(record.end - begin);
    path.segments.push_back(
        {worker, static_cast<std::int64_t>(in_step), task.task(), in_seconds(begin), seconds});
    path.seconds_by_kind[static_cast<std::size_t>(task.kind)] += seconds;
    path.start_seconds = record.cause == kNone ? in_seconds(begin - from) : 0;
    at = record.cause;
  }
  std::reverse(path.segments.begin(), path.segments.end());
  return path;
}

}  // namespace funcpipe::sim
