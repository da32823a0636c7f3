#include "report/chrome_trace.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

namespace funcpipe {
namespace {

constexpr std::array<const char*, 3> kLaneNames = {"compute", "uplink", "downlink"};

// Events are written one a line, so that the file of a long run never exists twice in memory.
class TraceWriter {
 public:
  void add(const nlohmann::json& event) {
    text_ += text_.empty() ? "[\n" : ",\n";
    text_ += event.dump();
  }
  std::string take() { return text_.empty() ? "[]\n" : std::move(text_) + "\n]\n"; }

 private:
  std::string text_;
};

void name_rows(TraceWriter& writer, const WorkerId& worker, int process) {
  writer.add({{"ph", "M"},
              {"name", "process_name"},
              {"pid", process},
              {"args", {{"name", "worker " + worker.text()}}}});
  writer.add({{"ph", "M"},
              {"name", "process_sort_index"},
              {"pid", process},
              {"args", {{"sort_index", process}}}});
  for (std::size_t lane = 0; lane < kLaneNames.size(); ++lane) {
    writer.add({{"ph", "M"},
                {"name", "thread_name"},
                {"pid", process},
                {"tid", lane},
                {"args", {{"name", kLaneNames[lane]}}}});
  }
}

}  // namespace

std::string chrome_trace(const std::vector<WorkerTrace>& traces, double time_dilation) {
  auto origin = std::numeric_limits<std::int64_t>::max();
  std::map<std::pair<int, int>, int> processes;  // (stage, replica) -> row, in that order
  for (const auto& trace : traces) {
    processes.emplace(std::pair(trace.worker.stage, trace.worker.replica), 0);
    for (const auto& event : trace.events) origin = std::min(origin, event.begin_unix_ns);
  }
  TraceWriter writer;
  int next = 0;
  for (auto& [worker, process] : processes) {
    process = next++;
    name_rows(writer, {worker.first, worker.second}, process);
  }
  const auto microseconds = [&](std::int64_t ns) {
    return static_cast<double>(ns) * 1e-3 / time_dilation;
  };
  for (const auto& trace : traces) {
    const int process = processes.at({trace.worker.stage, trace.worker.replica});
    for (const auto& event : trace.events) {
      nlohmann::json json = {{"ph", "X"},
                             {"name", event.name},
                             {"pid", process},
                             {"tid", event.lane},
                             {"ts", microseconds(event.begin_unix_ns - origin)},
                             {"dur", microseconds(event.end_unix_ns - event.begin_unix_ns)}};
      if (event.step >= 0) json["args"] = {{"step", event.step}, {"attempt", trace.attempt}};
      writer.add(json);
    }
  }
  return writer.take();
}

}  // namespace funcpipe
