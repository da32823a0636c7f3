#include "core/trace.h"

#include <map>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace funcpipe {

std::string to_text(const WorkerTrace& trace) {
  std::map<std::string_view, std::size_t> index;
  auto names = nlohmann::json::array();
  auto events = nlohmann::json::array();
  for (const auto& event : trace.events) {
    const auto [entry, added] = index.emplace(event.name, names.size());
    if (added) names.push_back(event.name);
    events.push_back(
        {event.lane, entry->second, event.step, event.begin_unix_ns, event.end_unix_ns});
  }
  return nlohmann::json{{"stage", trace.worker.stage},
                        {"replica", trace.worker.replica},
                        {"attempt", trace.attempt},
                        {"names", std::move(names)},
                        {"events", std::move(events)}}
      .dump();
}

WorkerTrace worker_trace_from_text(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    WorkerTrace trace;
    trace.worker = {json.at("stage"), json.at("replica")};
    trace.attempt = json.at("attempt");
    const auto& names = json.at("names");
    for (const auto& event : json.at("events")) {
      trace.events.push_back({event.at(0), names.at(event.at(1).get<std::size_t>()), event.at(2),
                              event.at(3), event.at(4)});
    }
    return trace;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::kDataLoss, "a worker's trace cannot be read: {}", error.what());
  }
}

}  // namespace funcpipe
