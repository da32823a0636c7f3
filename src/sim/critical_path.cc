#include "sim/critical_path.h"

#include <algorithm>

namespace funcpipe::sim {
namespace {

PathSegment segment_of(const History& history, std::uint32_t record, SimTime begin) {
  const auto step = history.step_of(record);
  const auto& program = *history.steps[step].program;
  const auto& task = program.tasks[record - history.steps[step].first_record];
  return {program.workers[task.worker].shape.worker, static_cast<std::int64_t>(step), task.task(),
          in_seconds(begin), in_seconds(history.records[record].end - begin)};
}

}  // namespace

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
    if (record.end > begin) path.segments.push_back(segment_of(history, at, begin));
    path.start_seconds = record.cause == kNone ? in_seconds(begin - from) : 0;
    at = record.cause;
  }
  for (const auto& segment : path.segments)
    path.seconds_by_kind[static_cast<std::size_t>(segment.task.kind)] += segment.seconds;
  std::reverse(path.segments.begin(), path.segments.end());
  return path;
}

}  // namespace funcpipe::sim
