#include "report/simulation_report.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "schedule/task.h"

namespace funcpipe {
namespace {

constexpr std::array<Lane, kLaneCount> kLanes = {Lane::kCompute, Lane::kUplink, Lane::kDownlink};

std::string time_text(double seconds) { return format_duration(from_seconds(seconds)); }

// The replicas of one stage together: they differ in little.
struct StageFigures {
  int memory_mb = 0;
  int replicas = 0;
  std::array<double, kLaneCount> busy{}, waiting{};
  double step_seconds = 0;
};

std::vector<StageFigures> by_stage(const SimulationResult& result) {
  std::vector<StageFigures> stages;
  for (const auto& worker : result.workers) {
    stages.resize(
        std::max<std::size_t>(stages.size(), static_cast<std::size_t>(worker.worker.stage) + 1));
    auto& stage = stages[static_cast<std::size_t>(worker.worker.stage)];
    stage.memory_mb = worker.memory_mb;
    ++stage.replicas;
    stage.step_seconds += worker.step_seconds;
    for (std::size_t lane = 0; lane < stage.busy.size(); ++lane) {
      stage.busy[lane] += worker.lanes[lane].busy;
      stage.waiting[lane] += worker.lanes[lane].waiting;
    }
  }
  return stages;
}

std::string lane_text(const StageFigures& stage, Lane lane) {
  const auto index = static_cast<std::size_t>(lane);
  return fmt::format("{:.0f} %", 100 * stage.busy[index] / std::max(stage.step_seconds, 1e-300));
}

// Kinds of tasks on the critical path, the longest first.
std::vector<std::pair<TaskKind, double>> path_by_kind(const CriticalPath& path) {
  std::vector<std::pair<TaskKind, double>> kinds;
  for (std::size_t i = 0; i < kTaskKinds; ++i) {
    const auto kind = static_cast<TaskKind>(i);
    if (path.seconds(kind) > 0) kinds.emplace_back(kind, path.seconds(kind));
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return kinds;
}

std::string path_text(const SimulationResult& result) {
  std::string text;
  for (const auto& [kind, seconds] : path_by_kind(result.critical_path)) {
    text += fmt::format("{}{} {} ({:.0f} %)", text.empty() ? "" : ", ", to_string(kind),
                        time_text(seconds), 100 * seconds / result.iteration_seconds);
  }
  return text;
}

nlohmann::json worker_json(const SimulatedWorker& worker) {
  nlohmann::json json = {{"worker", worker.worker.text()},
                         {"memory_mb", worker.memory_mb},
                         {"start_seconds", worker.start_seconds},
                         {"step_seconds", worker.step_seconds}};
  for (const auto lane : kLanes) {
    const auto& seconds = worker.lanes[static_cast<std::size_t>(lane)];
    json[std::string(to_string(lane))] = {{"busy_seconds", seconds.busy},
                                          {"waiting_seconds", seconds.waiting}};
  }
  return json;
}

nlohmann::json path_json(const CriticalPath& path) {
  auto segments = nlohmann::json::array();
  for (const auto& segment : path.segments) {
    segments.push_back({{"worker", segment.worker.text()},
                        {"step", segment.step},
                        {"task", describe(segment.task)},
                        {"begin_seconds", segment.begin_seconds},
                        {"seconds", segment.seconds}});
  }
  return {{"step", path.step}, {"segments", std::move(segments)}};
}

}  // namespace

std::string simulation_table(const SimulationResult& result, const PlatformSpec& platform) {
  const auto cost = step_cost(result, platform);
  auto text = fmt::format("{:>5}  {:>8}  {:>6}  {:>8}  {:>8}  {:>8}\n", "stage", "replicas", "MB",
                          "compute", "uplink", "downlink");
  const auto stages = by_stage(result);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const auto& stage = stages[i];
    text += fmt::format("{:>5}  {:>8}  {:>6}  {:>8}  {:>8}  {:>8}\n", i, stage.replicas,
                        stage.memory_mb, lane_text(stage, Lane::kCompute),
                        lane_text(stage, Lane::kUplink), lane_text(stage, Lane::kDownlink));
  }
  text += fmt::format("iteration      {}, ${:.8f} (functions ${:.8f}, storage ${:.8f})\n",
                      time_text(result.iteration_seconds), cost.total_usd(), cost.compute_usd,
                      cost.storage_usd);
  text += fmt::format("bubble         {:.0f} % of the compute lanes' time\n",
                      100 * std::max(0.0, result.bubble));
  text += fmt::format(
      "requests       {:.0f} puts, {:.0f} gets ({:.0f} found nothing), {:.0f} removes; {} up, {} "
      "down\n",
      result.requests.puts, result.requests.gets, result.requests.misses, result.requests.removes,
      format_bytes(result.requests.bytes_up), format_bytes(result.requests.bytes_down));
  text += fmt::format("critical path  {}\n", path_text(result));
  return text;
}

nlohmann::json simulation_json(const SimulationResult& result, const PlatformSpec& platform) {
  const auto cost = step_cost(result, platform);
  auto workers = nlohmann::json::array();
  for (const auto& worker : result.workers) workers.push_back(worker_json(worker));
  return {{"funcpipe_simulation", 1},
          {"iteration_seconds", result.iteration_seconds},
          {"step_ends", result.step_ends},
          {"bubble", result.bubble},
          {"cost",
           {{"prices", platform.name},
            {"compute_usd", cost.compute_usd},
            {"storage_usd", cost.storage_usd},
            {"total_usd", cost.total_usd()},
            {"start_usd", start_usd(result, platform)}}},
          {"requests",
           {{"puts", result.requests.puts},
            {"gets", result.requests.gets},
            {"misses", result.requests.misses},
            {"removes", result.requests.removes},
            {"bytes_up", result.requests.bytes_up},
            {"bytes_down", result.requests.bytes_down}}},
          {"workers", std::move(workers)},
          {"critical_path", path_json(result.critical_path)}};
}

}  // namespace funcpipe
