#include "core/profile_task.h"

#include <array>

#include "base/error.h"

namespace funcpipe {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::string_view kVersionKey = "funcpipe_profile_task";
constexpr std::array<std::string_view, 3> kKindNames = {"start", "links", "layers"};

ProfileTask::Kind kind_from(const ConfigNode& node) {
  const auto name = node.as<std::string>();
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] == name) return static_cast<ProfileTask::Kind>(i);
  }
  node.reject(fmt::format("'{}' is nothing that can be measured", name));
}

}  // namespace

nlohmann::json ProfileTask::to_json() const {
  return {{std::string(kVersionKey), kVersion},
          {"kind", kKindNames.at(static_cast<std::size_t>(kind))},
          {"run", run},
          {"store", store},
          {"job", job.to_json()},
          {"first_layer", first_layer},
          {"last_layer", last_layer},
          {"micro_batches", micro_batches},
          {"warm_up_passes", warm_up_passes},
          {"rounds", rounds},
          {"round_seconds", round_seconds},
          {"burst_bytes", burst_bytes},
          {"transfer_seconds", transfer_seconds}};
}

ProfileTask ProfileTask::from_text(std::string_view text) {
  ConfigReader reader(ConfigNode::from_text(text, "payload"));
  if (reader.required<std::int64_t>(kVersionKey) != kVersion)
    reader.reject(kVersionKey, "unknown version");
  ProfileTask task;
  task.kind = kind_from(reader.required_node("kind"));
  task.run = reader.required<std::string>("run");
  task.store = reader.required<std::string>("store");
  task.job = JobSpec::from_config(reader.required_node("job"));
  task.first_layer = reader.required<int>("first_layer");
  task.last_layer = reader.required<int>("last_layer");
  task.micro_batches = reader.required<int>("micro_batches");
  task.warm_up_passes = reader.required<int>("warm_up_passes");
  task.rounds = reader.required<int>("rounds");
  task.round_seconds = reader.required<double>("round_seconds");
  task.burst_bytes = static_cast<std::uint64_t>(reader.required<std::int64_t>("burst_bytes"));
  task.transfer_seconds = reader.required<double>("transfer_seconds");
  reader.finish();
  if (task.first_layer < 0 || task.last_layer < task.first_layer)
    reader.reject("last_layer", "the layers are no range");
  return task;
}

bool is_profile_task(std::string_view payload) {
  const auto json = nlohmann::json::parse(payload, nullptr, false);
  return json.is_object() && json.contains(kVersionKey);
}

nlohmann::json LayerReport::to_json() const {
  return {{"activation_bytes", activation_bytes},
          {"workspace_bytes", workspace_bytes},
          {"output_bytes", output_bytes},
          {"forward", forward},
          {"backward", backward},
          {"update", update}};
}

LayerReport LayerReport::from_json(const nlohmann::json& json) {
  return {json.at("activation_bytes"), json.at("workspace_bytes"), json.at("output_bytes"),
          json.at("forward"),          json.at("backward"),        json.at("update")};
}

nlohmann::json to_json(const LinkReport& links) {
  return {{"uplink_bytes_per_second", links.uplink_bytes_per_second},
          {"downlink_bytes_per_second", links.downlink_bytes_per_second},
          {"latency_seconds", links.latency_seconds}};
}

LinkReport link_report_from_json(const nlohmann::json& json) {
  return {json.at("uplink_bytes_per_second"), json.at("downlink_bytes_per_second"),
          json.at("latency_seconds")};
}

nlohmann::json ProfileReport::to_json() const {
  auto list = nlohmann::json::array();
  for (const auto& layer : layers) list.push_back(layer.to_json());
  nlohmann::json json = {
      {"layers", std::move(list)}, {"stretch", stretch}, {"usage", usage.to_json()}};
  if (links) json["links"] = funcpipe::to_json(*links);
  return json;
}

ProfileReport ProfileReport::from_text(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    ProfileReport report;
    if (json.contains("links")) report.links = link_report_from_json(json.at("links"));
    for (const auto& layer : json.at("layers"))
      report.layers.push_back(LayerReport::from_json(layer));
    report.stretch = json.at("stretch").get<std::vector<double>>();
    report.usage = StoreUsage::from_json(json.at("usage"));
    return report;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::kDataLoss, "the answer of a profiling function cannot be read: {}",
         error.what());
  }
}

}  // namespace funcpipe
